"""Request bodies on their way to an origin: whole, slow, cut, unwanted, and answered before they have come."""
import socket
import threading

import gyre_server as gs
from raw_origin import Closed, RawOrigin, response

ASAN = True
LIMIT_S = 4


class Client:
    """A connection on which a test writes a request in parts."""

    def __init__(self, server):
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S)
        self.held = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def head(self):
        while b"\r\n\r\n" not in self.held:
            got = self.sock.recv(65536)
            if not got:
                raise EOFError(self.held)
            self.held += got
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        return head

    def status(self):
        return int(self.head().split(b" ", 2)[1])


def put(path, length):
    return f"PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n".encode()


class Uploads:
    """A script that keeps what came, and whether it was whole."""

    def __init__(self, answer=response(b"ok", "201 Created")):
        self.answer, self.bodies, self.cut = answer, [], threading.Event()

    def __call__(self, conn, request):
        try:
            self.bodies.append(conn.body(request))
        except Closed:
            self.cut.set()
            raise
        conn.send(self.answer)
        return True


def whole(server, origin):
    body = gs.bytes_of(3 << 20)
    uploads = Uploads()
    origin.on("/whole", uploads)
    gs.check_eq("a body with a length", server.request("PUT", "/whole", body).status, 201)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:100000], body[100000:])) + b"0\r\n\r\n"
    gs.check_eq("in chunks", server.request("POST", "/whole", chunks, {"Transfer-Encoding": "chunked"}).status, 201)
    gs.check_eq("none", server.request("POST", "/whole", b"").status, 201)
    gs.check_eq("all arrive", [len(got) for got in uploads.bodies], [len(body), len(body), 0])
    gs.check("as they were", uploads.bodies[0] == body == uploads.bodies[1])


def in_parts(server, origin):
    uploads = Uploads()
    origin.on("/parts", uploads)
    with Client(server) as client:
        client.send(put("/parts", 40) + b"Expect: 100-continue\r\n\r\n")
        gs.check_eq("the client is told to go on", client.status(), 100)
        for _ in range(4):
            client.send(b"0123456789")
            threading.Event().wait(0.02)
        gs.check_eq("a slow body", client.status(), 201)
    gs.check_eq("is whole", uploads.bodies, [b"0123456789" * 4])


def refused_early(server, origin):
    """The origin says no to the head, and reads on or not."""
    def refuse(fields):
        def script(conn, _request):
            conn.send(response(b"too large", "413 Content Too Large", **fields))
            if fields:
                return False
            conn.wait_end()
        return script
    for path, fields in (("/kept", {}), ("/closed", {"Connection": "close"})):
        origin.on(path, refuse(fields))
        with Client(server) as client:
            client.send(put(path, 1 << 20) + b"\r\n" + b"x" * 1000)
            gs.check_eq(f"an early refusal is passed on at once: {path}", client.status(), 413)
            while len(client.held) < 9:
                client.held += client.sock.recv(100)
            gs.check_eq("with its body", client.held, b"too large")
        with Client(server) as client:
            client.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".encode())
            gs.check_eq(f"in chunks, too: {path}", client.status(), 413)


def accepted_early(server, origin):
    """The origin answers before the body has come, and reads it all the same."""
    uploads = Uploads(b"")

    def script(conn, request):
        conn.send(response(b"fine"))
        return uploads(conn, request)
    origin.on("/early", script)
    with Client(server) as client:
        client.send(put("/early", 20) + b"\r\n0123456789")
        gs.check("the origin has answered", gs.wait_until(lambda: origin.requests("/early")))
        client.send(b"0123456789")
        gs.check_eq("the answer comes", client.status(), 200)
    gs.check("and so did the body", gs.wait_until(lambda: uploads.bodies == [b"0123456789" * 2]), uploads.bodies)


def cut_by_client(server, origin):
    for path, head in (("/length", put("/length", 1000) + b"\r\n"),
                       ("/chunks", b"POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n")):
        uploads = Uploads()
        origin.on(path, uploads)
        with Client(server) as client:
            client.send(head + b"abc")
            gs.check("the origin is asked", gs.wait_until(lambda: origin.requests(path)))
        gs.check(f"a body that is cut short never looks whole: {path}", uploads.cut.wait(LIMIT_S) and not uploads.bodies, uploads.bodies)


def malformed(server, origin):
    uploads = Uploads()
    origin.on("/malformed", uploads)
    with Client(server) as client:
        client.send(b"POST /malformed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")
        gs.check_eq("bad chunks", client.status(), 400)
    gs.check("nothing whole reaches the origin", not origin.requests("/malformed") or uploads.cut.wait(LIMIT_S))
    gs.check_eq("really", uploads.bodies, [])


def broken_by_origin(server, origin):
    def script(conn, _request):
        conn.read(3)
        conn.reset()
    origin.on("/reset", script)
    with Client(server) as client:
        client.send(put("/reset", 1000) + b"\r\nabc")
        gs.check_eq("an origin that breaks off", client.status(), 502)
    gs.check_eq("is not asked twice", len(origin.requests("/reset")), 1)


def unread(server, origin):
    """The origin never reads, nor answers: the answer is bounded in time."""
    origin.on("/unread", lambda conn, _request: threading.Event().wait(LIMIT_S))
    with Client(server) as client:
        client.send(put("/unread", 1 << 30) + b"\r\n")
        try:
            while True:
                client.sock.settimeout(0.2)
                client.send(b"x" * (1 << 16))
        except TimeoutError:
            client.sock.settimeout(LIMIT_S)
        except OSError:
            pass
        gs.check_eq("a body that nobody takes", client.status(), 504)


def over_h2(server, origin):
    uploads = Uploads()
    origin.on("/h2", uploads)
    body = gs.bytes_of(2 << 20, 2)
    path = gs.tmpdir() / "body"
    path.write_bytes(body)
    done = gs.curl("--http2-prior-knowledge", "-T", path, "-w", "%{http_code} %{http_version}", "-o", "/dev/null", f"{server.url}/h2")
    gs.check_eq("over HTTP/2", done.stdout, b"201 2")
    gs.check("whole", uploads.bodies == [body])


the_origin = RawOrigin()
with gs.Server("--origin", the_origin.url, "--origin-between-bytes-timeout", "1s", "--drain-timeout", "1s", "--origin-first-byte-timeout", "1s") as the_server:
    gs.run(*(lambda test=test: test(the_server, the_origin) for test in (whole, broken_by_origin)))
gs.finish()
