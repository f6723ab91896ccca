"""Origins that reset, stall, lie about lengths and never end: nothing cut short is ever stored or looks whole, and SIGTERM ends it all."""
import signal
import socket
import threading
import time

import gyre_server as gs
from raw_origin import RawOrigin, response

ASAN = True
LIMIT_S = 60
FRESH = b"Cache-Control: max-age=600\r\n"


def outcome(server, path, version=b"1.1"):
    """What a client makes of the answer: (status, body) if its framing says that it is whole, else None."""
    got = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as sock:
        sock.sendall(b"GET %b HTTP/%b\r\nHost: a\r\nConnection: close\r\n\r\n" % (path.encode(), version))
        try:
            while part := sock.recv(1 << 16):
                got += part
        except ConnectionResetError:
            return None
    head, _, body = got.partition(b"\r\n\r\n")
    if not head:
        return None
    status, lower = int(head.split(b" ", 2)[1]), head.lower()
    if b"transfer-encoding: chunked" in lower:
        if not body.endswith(b"0\r\n\r\n"):
            return None
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            whole, body = whole + body[:int(size, 16)], body[int(size, 16) + 2:]
        return status, whole
    length = next((int(line.split(b":")[1]) for line in lower.split(b"\r\n") if line.startswith(b"content-length:")), None)
    return (status, body) if length in (len(body), None) else None


def breaks(*parts, reset=False):
    """A script that sends the parts and ends, or resets, the connection."""
    def script(conn, _request):
        for part in parts:
            conn.send(part)
        if reset:
            conn.reset()
    return script


def refused(server, origin):
    """What is no response, or none that is whole, is an error with a body of its own, each time anew."""
    cases = {
        "reset at once": breaks(reset=True),
        "end at once": breaks(),
        "half a status line": breaks(b"HTTP/1.1 2"),
        "half a head": breaks(b"HTTP/1.1 200 OK\r\nContent-Le"),
        "reset in the head": breaks(b"HTTP/1.1 200 OK\r\nContent-Le", reset=True),
        "no HTTP": breaks(b"SSH-2.0-none\r\n\r\n"),
        "HTTP/0.9": breaks(b"<html>"),
        "two lengths": breaks(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n" + FRESH + b"\r\nabcd"),
        "no length": breaks(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n" + FRESH + b"\r\nabcd"),
        "negative": breaks(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n" + FRESH + b"\r\nabcd"),
        "a head without end": breaks(b"HTTP/1.1 200 OK\r\n", *[b"X-%d: %b\r\n" % (i, b"x" * 1000) for i in range(200)]),
        "switching protocols unasked": breaks(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    }
    for i, (what, script) in enumerate(cases.items()):
        path = f"/refused{i}"
        origin.on(path, script)
        got = outcome(server, path)
        gs.check(f"{what}: 502", got is not None and got[0] == 502, got)


def cut(server, origin):
    """Bodies that are cut short are seen to be, and never stored."""
    part = gs.bytes_of(100000)
    chunk = b"%x\r\n%b\r\n" % (len(part), part)
    head = b"HTTP/1.1 200 OK\r\n" + FRESH
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    cases = {
        "a length that is not reached": breaks(head + b"Content-Length: 200000\r\n\r\n" + part),
        "by reset": breaks(head + b"Content-Length: 200000\r\n\r\n" + part, reset=True),
        "by one byte": breaks(head + b"Content-Length: 100001\r\n\r\n" + part),
        "without any": breaks(head + b"Content-Length: 100000\r\n\r\n"),
        "chunks without the last": breaks(chunked + chunk),
        "chunks by reset": breaks(chunked + chunk, reset=True),
        "in a chunk": breaks(chunked + chunk[:500]),
        "in a chunk's size": breaks(chunked + chunk + b"1"),
        "a size that is none": breaks(chunked + chunk + b"zz\r\n"),
        "a size beyond 64 bits": breaks(chunked + chunk + b"fffffffffffffffff\r\n"),
    }
    for i, (what, script) in enumerate(cases.items()):
        path = f"/cut{i}"
        origin.on(path, script)
        for version in (b"1.1", b"1.1"):
            got = outcome(server, path, version)
            gs.check(f"{what}: is seen", got is None or got[0] >= 500, got)
        gs.check_eq(f"{what}: is not stored", len(origin.requests(path)), 2)


def stalls(server, origin):
    def stall(sent):
        def script(conn, _request):
            conn.send(sent)
            conn.wait_end()
        return script
    origin.on("/silent", stall(b""))
    origin.on("/half", stall(b"HTTP/1.1 200 OK\r\n"))
    origin.on("/body", stall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n" + FRESH + b"\r\nabc"))
    got = gs.in_parallel(lambda path: outcome(server, path), ["/silent", "/half", "/body", "/body"])
    gs.check_eq("an origin that is silent", [g and g[0] for g in got[:2]], [504, 504])
    gs.check_eq("one that stops within a body", got[2:], [None, None])
    gs.check_eq("that is not stored", outcome(server, "/body"), None)


def too_much(server, origin):
    """More bytes than were announced are nobody's, least of all the next one's answer."""
    body = b"0123456789"
    extra = response(b"EVIL", Cache_Control="max-age=600")

    def script(conn, _request):
        conn.send(response(body + extra, length=10, Cache_Control="max-age=600"))
        return True
    origin.on("/much", script)
    origin.on("/next", breaks(response(b"next", Connection="close")))
    for _ in range(3):
        gs.check_eq("as long as announced", outcome(server, "/much"), (200, body))
        gs.check_eq("the next answer is its own", outcome(server, "/next"), (200, b"next"))


def endless(server, origin):
    """A body without end goes as far as its client, and not much further."""
    ended = threading.Event()

    def script(conn, _request):
        try:
            conn.send(b"HTTP/1.1 200 OK\r\n" + FRESH + b"Transfer-Encoding: chunked\r\n\r\n")
            while True:
                conn.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        finally:
            ended.set()
    origin.on("/endless", script)
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as sock:
        sock.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        n = 0
        while n < 4 << 20:
            n += len(sock.recv(1 << 20))
        before = server.memory()
        for _ in range(30):
            n += len(sock.recv(1 << 20))
        gs.check("it takes no memory", server.memory() - before < 8 << 20, server.memory() - before)
    gs.check("once nobody reads, it ends", ended.wait(LIMIT_S))


def over_h2(server, origin):
    """The same over TLS and HTTP/2: whole bodies of either kind, and those cut short end with an error of the stream."""
    body = gs.bytes_of(300000, 2)
    dated = b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    origin.on("/h2/length", breaks(dated + b"Content-Length: 300000\r\n\r\n" + body))
    origin.on("/h2/chunks", breaks(dated + b"Transfer-Encoding: chunked\r\n\r\n493e0\r\n" + body + b"\r\n0\r\n\r\n"))
    for path in ("/h2/length", "/h2/chunks"):
        got = gs.curl("-k", "--http2", "-i", f"{server.tls_url}{path}")
        head, _, whole = got.stdout.partition(b"\r\n\r\n")
        gs.check_eq(f"whole: {path}", (got.returncode, head[:10], whole == body), (0, b"HTTP/2 200", True))
        gs.check("with the origin's date, once", head.lower().count(b"date: ") == 1 and b"1994" in head, head)
    for path in ("/cut0", "/cut1", "/cut4", "/cut5", "/cut8"):
        got = gs.curl("-k", "--http2", f"{server.tls_url}{path}")
        gs.check(f"cut short: {path}", got.returncode == 92, (got.returncode, got.stderr))


def ends_with_sigterm(origin):
    """Whatever is being fetched, the program ends soon after its --drain-timeout."""
    go_on = threading.Event()

    def script(conn, request):
        if request.target == "/slow?body":
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n" + FRESH + b"\r\nabc")
        if request.target == "/slow?behind" and len(origin.requests(request.target)) == 1:
            conn.send(response(b"old", ETag='"a"', Cache_Control="max-age=0, stale-while-revalidate=600"))
            return True
        conn.send(b"" if request.target != "/slow?trickle" else b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + FRESH + b"\r\n")
        while not go_on.wait(0.05):
            conn.send(b"1\r\nx\r\n" if request.target == "/slow?trickle" else b"")
    origin.on("/slow", script)
    with gs.Server("--origin", origin.url, "--drain-timeout", "500ms") as server:
        for _ in range(2):
            gs.check_eq("stale ones are answered", outcome(server, "/slow?behind"), (200, b"old"))
        socks = []
        for target in (b"/slow?head", b"/slow?body", b"/slow?trickle"):
            socks.append(socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S))
            socks[-1].sendall(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target)
            gs.check("it is asked", gs.wait_until(lambda: origin.requests(target.decode())))
        gs.check("behind, too", gs.wait_until(lambda: len(origin.requests("/slow?behind")) == 2))
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(LIMIT_S)
        gs.check_eq("it ends", status, 0)
        gs.check("soon", time.monotonic() - began < 20, time.monotonic() - began)
        server._ended()
        for sock in socks:
            sock.close()
    go_on.set()


the_origin = RawOrigin()
with gs.Server("--origin", the_origin.url, tls=True) as the_server:
    gs.run(*(lambda test=test: test(the_server, the_origin) for test in (refused, cut, too_much, over_h2, endless)))
with gs.Server("--origin", the_origin.url, "--origin-connect-timeout", "500ms", "--origin-first-byte-timeout", "500ms",
               "--origin-between-bytes-timeout", "500ms") as the_server:
    gs.run(lambda: stalls(the_server, the_origin))
gs.run(lambda: ends_with_sigterm(the_origin))
gs.finish()
