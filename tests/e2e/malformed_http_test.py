"""HTTP/1 that is not quite HTTP/1, over raw sockets: each row has one decided answer within the timeout, the connection does not outlive
what makes its framing doubtful, and other connections notice nothing."""

import socket
import ssl
import time

import gyre_server as gs

ASAN = True
HOST = b"Host: x\r\n"


def put(*fields, body=b"", version=b"1.1"):
    return b"PUT /mal/k HTTP/" + version + b"\r\n" + HOST + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


def get(*fields, target=b"/mal/k", version=b"1.1", host=HOST):
    return b"GET " + target + b" HTTP/" + version + b"\r\n" + host + b"".join(field + b"\r\n" for field in fields) + b"\r\n"


CHUNKED = b"Transfer-Encoding: chunked"
# (name, bytes, statuses allowed): the first status line that comes back; the connection must then close.
REFUSED = [
    ("Content-Length and Transfer-Encoding", put(b"Content-Length: 3", CHUNKED, body=b"3\r\nabc\r\n0\r\n\r\n"), {400}),
    ("Transfer-Encoding and Content-Length", put(CHUNKED, b"Content-Length: 3", body=b"3\r\nabc\r\n0\r\n\r\n"), {400}),
    ("two equal Content-Lengths", put(b"Content-Length: 3", b"Content-Length: 3", body=b"abc"), {400}),
    ("two Content-Lengths", put(b"Content-Length: 3", b"Content-Length: 4", body=b"abcd"), {400}),
    ("Content-Length with a sign", put(b"Content-Length: +3", body=b"abc"), {400}),
    ("negative Content-Length", put(b"Content-Length: -1"), {400}),
    ("hex Content-Length", put(b"Content-Length: 0x3", body=b"abc"), {400}),
    ("empty Content-Length", put(b"Content-Length:"), {400}),
    ("Content-Length list", put(b"Content-Length: 3, 3", body=b"abc"), {400}),
    ("Content-Length of 2^64", put(b"Content-Length: 18446744073709551616"), {400}),
    ("Content-Length with letters", put(b"Content-Length: 3a", body=b"abc"), {400}),
    ("identity before chunked", put(b"Transfer-Encoding: identity", CHUNKED, body=b"0\r\n\r\n"), {400, 501}),
    ("gzip, chunked", put(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), {400, 501}),
    ("chunked twice", put(CHUNKED, CHUNKED, body=b"0\r\n\r\n"), {400, 501}),
    ("unknown coding", put(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), {400, 501}),
    ("empty Transfer-Encoding", put(b"Transfer-Encoding:", body=b"0\r\n\r\n"), {400, 501}),
    ("Transfer-Encoding in HTTP/1.0", put(CHUNKED, body=b"0\r\n\r\n", version=b"1.0"), {400}),
    ("folded line", get(b"X-A: b\r\n c: d"), {400}),
    ("first line folded", b"GET /mal/k HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n", {400}),
    ("bare LF", b"GET /mal/k HTTP/1.1\nHost: x\n\n", {400}),
    ("bare LF in a field", b"GET /mal/k HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", {400}),
    ("bare CR", get(b"X-A: b\rc"), {400}),
    ("NUL in a value", get(b"X-A: b\0c"), {400}),
    ("NUL in a name", get(b"X\0A: b"), {400}),
    ("vertical tab in a value", get(b"X-A: b\x0bc"), {400}),
    ("space before the colon", get(b"X-A : b"), {400}),
    ("no colon", get(b"nonsense"), {400}),
    ("empty name", get(b": b"), {400}),
    ("name with a quote", get(b'X"A: b'), {400}),
    ("space in the target", get(target=b"/mal/a b"), {400}),
    ("no Host in 1.1", get(host=b""), {400}),
    ("two Hosts", get(b"Host: y"), {400}),
    ("Host with a path", get(host=b"Host: a/b@c\r\n"), {400}),
    ("HTTP/1.2", get(version=b"1.2"), {400, 505}),
    ("HTTP/2.0 in a request line", get(version=b"2.0"), {400, 505}),
    ("HTTP/9", b"GET / HTTP/9\r\n" + HOST + b"\r\n", {400, 505}),
    ("lower-case protocol", b"GET / http/1.1\r\n" + HOST + b"\r\n", {400}),
    ("no version", b"GET /\r\n\r\n", {400}),
    ("target without slash", get(target=b"echo"), {400}),
    ("two spaces in the request line", b"GET  /mal/k HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    ("method with a control", b"G\x01T / HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    ("TLS to a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n", {400}),
    ("request line of 100 KB", get(target=b"/mal/" + b"a" * 100000), {414}),
    ("head of 100 KB", get(*[b"X-%d: " % n + b"v" * 1500 for n in range(66)]), {431}),
    ("200 fields", get(*[b"X-%d: v" % n for n in range(200)]), {431}),
    ("other expectation", put(b"Expect: the unexpected", b"Content-Length: 1"), {417}),
    ("chunk size 0x3", put(CHUNKED, body=b"0x3\r\nabc\r\n0\r\n\r\n"), {400}),
    ("chunk size with a sign", put(CHUNKED, body=b"+3\r\nabc\r\n0\r\n\r\n"), {400}),
    ("chunk size with a space", put(CHUNKED, body=b"3 \r\nabc\r\n0\r\n\r\n"), {400}),
    ("empty chunk size", put(CHUNKED, body=b"\r\nabc\r\n0\r\n\r\n"), {400}),
    ("chunk size beyond 64 bits", put(CHUNKED, body=b"1" + b"0" * 16 + b"\r\nabc"), {400}),
    ("chunk line ended by LF", put(CHUNKED, body=b"3\nabc\r\n0\r\n\r\n"), {400}),
    ("chunk data too long", put(CHUNKED, body=b"3\r\nabcd\r\n0\r\n\r\n"), {400}),
    ("chunk data ended by LF", put(CHUNKED, body=b"3\r\nabc\n0\r\n\r\n"), {400}),
    ("trailer without colon", put(CHUNKED, body=b"3\r\nabc\r\n0\r\nnonsense\r\n\r\n"), {400}),
]
# (name, bytes, statuses of all answers in order)
ACCEPTED = [
    ("spaces around a length", put(b"Content-Length:  3 ", body=b"abc"), [200]),
    ("chunked in capitals", put(b"Transfer-Encoding: CHUNKED", body=b"3\r\nabc\r\n0\r\n\r\n"), [200]),
    ("chunks", put(CHUNKED, body=b"1\r\na\r\n0000000000000002\r\nbc\r\n0\r\n\r\n"), [200]),
    ("upper- and lower-case hex", put(CHUNKED, body=b"A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n"), [200]),
    ("trailers", put(CHUNKED, body=b"3\r\nabc\r\n0\r\nX-T: v\r\n\r\n"), [200]),
    ("pipelined", put(b"Content-Length: 3", body=b"abc") + get() + put(CHUNKED, body=b"3\r\nabc\r\n0\r\n\r\n") + get(), [200, 200, 200, 200]),
    ("a body on GET is skipped", get(b"Content-Length: 3") + b"abc" + get(), [200, 200]),
    ("100 fields at most", get(*[b"X-%d: v" % n for n in range(98)]), [200]),
    ("HTTP/1.0 without Host", get(version=b"1.0", host=b""), [200]),
    ("an unknown method", b"FROB /mal/k HTTP/1.1\r\n" + HOST + b"\r\n", [405]),
    ("a method in lower case", b"get /mal/k HTTP/1.1\r\n" + HOST + b"\r\n", [405]),
    ("CONNECT", b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n", [501]),
    ("absolute form", get(target=b"http://x/mal/k"), [200]),
    ("two slashes are bytes of a key", get(target=b"/mal//k"), [404]),
    ("dots and encoded dots are, too", get(target=b"/mal/../mal/k") + get(target=b"/mal/%2e%2e/mal/k"), [404, 404]),
    ("an empty line first", b"\r\n" + get(), [200]),
]


def statuses(answer):
    """Status codes of all final responses, by walking them with their Content-Length."""
    found = []
    while answer.startswith(b"HTTP/1.1 "):
        head, _, rest = answer.partition(b"\r\n\r\n")
        status = int(head[9:12])
        if status == 100:
            answer = rest
            continue
        found.append(status)
        length = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        answer = rest[length[0] if length else 0 :]
    return found


def refused(server, bystander):
    for name, data, allowed in REFUSED:
        for _ in range(3):  # a busy machine may be slow once
            began = time.monotonic()
            answer = server.raw(data, limit_s=12)
            took = time.monotonic() - began
            if took < 8:
                break
        found = statuses(answer)
        gs.check(name, len(found) == 1 and found[0] in allowed, f"{found} {answer[:120]!r}")
        gs.check(f"{name}: closed in time", took < 8, f"{took:.1f} s")
    gs.check_eq("a connection opened before all that still works", server.request("GET", "/mal/k", connection=bystander).status, 200)


def accepted(server):
    for name, data, wanted in ACCEPTED:
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
            sock.sendall(data)
            answer = b""
            while len(statuses(answer)) < len(wanted):
                piece = sock.recv(65536)
                if not piece:
                    break
                answer += piece
        gs.check_eq(name, statuses(answer), wanted)
    # The same in single bytes: no decision may depend on how the bytes arrive.
    for name, data, wanted in ACCEPTED[:7]:
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for index in range(len(data)):
                sock.sendall(data[index : index + 1])
            answer = b""
            while len(statuses(answer)) < len(wanted):
                piece = sock.recv(65536)
                if not piece:
                    break
                answer += piece
        gs.check_eq(f"{name}, byte by byte", statuses(answer), wanted)


def smuggled(server):
    """What hides behind a doubtful body is never taken for a request."""
    hidden = b"PUT /mal/hidden HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
    for data in (put(b"Content-Length: 5", CHUNKED, body=b"0\r\n\r\n" + hidden),
                 put(CHUNKED, body=b"0x3\r\nabc\r\n0\r\n\r\n" + hidden),
                 put(b"Content-Length: 0", b"Content-Length: %d" % len(hidden), body=hidden),
                 put(CHUNKED, body=b"0\n\n" + hidden)):
        server.raw(data, limit_s=10)
    gs.check_eq("nothing was smuggled", server.request("GET", "/mal/hidden").status, 404)


def expectations(server):
    """100 Continue comes once the request is accepted, and not at all when it is refused."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
        sock.sendall(put(b"Content-Length: 3", b"Expect: 100-continue"))
        gs.check("100 Continue is sent", sock.recv(100).startswith(b"HTTP/1.1 100 "))
        sock.sendall(b"abc")
        gs.check("then 200", sock.recv(1000).startswith(b"HTTP/1.1 200 "))
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
        sock.sendall(put(b"Content-Length: 0", b"Expect: 100-continue"))
        answer = b""
        while b"HTTP/1.1 200 " not in answer and (piece := sock.recv(4096)):
            answer += piece
        gs.check("an empty body that is announced gets its 100", answer.startswith(b"HTTP/1.1 100 "), answer)
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
        sock.sendall(b"PUT /nobucket/k HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        gs.check("a refused request gets no 100", sock.recv(1000).startswith(b"HTTP/1.1 404 "))


def early_answer(server):
    """A refusal, by a handler or by the gate, can be read by a client that sends all of its 12 MB first; through TLS, too."""
    for what, head, status in (("a handler's", b"PUT /nobucket/k HTTP/1.1\r\n" + HOST, b"404"),
                               ("the gate's", b"PUT /mal/k HTTP/1.1\r\n" + HOST + b"Content-Length: +1\r\n", b"400")):
        for port in (server.port, server.tls_port):
            with socket.create_connection(("127.0.0.1", port), timeout=120) as sock:
                answer = b""
                if port == server.tls_port:
                    sock = ssl._create_unverified_context().wrap_socket(sock)
                try:
                    sock.sendall(head + b"Content-Length: 12000000\r\n\r\n")
                    for _ in range(120):
                        sock.sendall(bytes(100000))
                    answer = sock.recv(65536)
                except OSError as error:
                    answer = repr(error).encode()
                gs.check(f"{what} {status} arrives", answer.startswith(b"HTTP/1.1 " + status + b" "), answer[:100])


def cut_off(server):
    """A body that ends early stores nothing."""
    server.request("PUT", "/mal/cut", b"before")
    server.raw(b"PUT /mal/cut HTTP/1.1\r\n" + HOST + b"Content-Length: 100000\r\n\r\n" + bytes(5000), limit_s=2, half_close=True)
    server.raw(b"PUT /mal/cut HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n\r\n5\r\nafter\r\n", limit_s=2, half_close=True)
    gs.check_eq("the old object stays", server.request("GET", "/mal/cut").body, b"before")


def main():
    with gs.Server(size="128M", tls=True) as server:
        server.request("PUT", "/mal")
        server.request("PUT", "/mal/k", b"abc")
        bystander = server.connection()
        gs.check_eq("bystander", server.request("GET", "/mal/k", connection=bystander).status, 200)
        gs.run(lambda: refused(server, bystander), lambda: accepted(server), lambda: smuggled(server), lambda: expectations(server),
               lambda: early_answer(server), lambda: cut_off(server))
    gs.finish()


if __name__ == "__main__":
    main()
