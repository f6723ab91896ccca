"""A cache in front of a scripted origin: hits, validation, what is passed, and bodies that break off."""
import http.server
import socketserver
import threading
import time

import gyre_server as gs

ASAN = True


class Origin(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Answers each path by the function that a test has set for it; counts and keeps requests."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts, self.seen, self.lock, self.is_down = {}, {}, threading.Lock(), False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def on(self, path, script):
        self.scripts[path] = script

    def requests(self, path):
        with self.lock:
            return list(self.seen.get(path, []))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_any(self):
        if self.server.is_down:
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        path = self.path.partition("?")[0]
        with self.server.lock:
            seen = self.server.seen.setdefault(self.path, [])
            seen.append((self.command, {k.lower(): v for k, v in self.headers.items()}, body))
            n = len(seen)
        self.server.scripts.get(self.path, self.server.scripts.get(path, answer(404)))(self, n)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any


def answer(status=200, body=b"", chunked=False, cut=None, **fields):
    """A script that always answers so; `cut` bytes of the body come, then the connection ends."""
    def script(handler, _n):
        handler.send_response(status)
        for name, value in fields.items():
            handler.send_header(name.replace("_", "-"), value)
        if status not in (204, 304):
            if chunked:
                handler.send_header("Transfer-Encoding", "chunked")
            else:
                handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command == "HEAD":
            return
        data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked and body else b"0\r\n\r\n" if chunked else body
        handler.wfile.write(data if cut is None else data[:cut])
        if cut is not None:
            handler.close_connection = True
    return script


def hit_and_miss(server, origin):
    origin.on("/hit", answer(body=b"x" * 5000, Cache_Control="max-age=60", X_Own="1", Connection="x-hop", X_Hop="1"))
    first, second = server.request("GET", "/hit"), server.request("GET", "/hit")
    gs.check_eq("status", (first.status, second.status), (200, 200))
    gs.check_eq("the body of a hit", second.body, b"x" * 5000)
    gs.check_eq("one request reaches the origin", len(origin.requests("/hit")), 1)
    gs.check("a miss says so", "fwd=uri-miss" in first.headers["cache-status"] and "stored" in first.headers["cache-status"], first)
    gs.check("a hit says so", first.headers["date"] == second.headers["date"] and "hit" in second.headers["cache-status"], second)
    gs.check("a hit has an age", "age" in second.headers and "age" not in first.headers, second)
    gs.check_eq("fields are kept, hop-by-hop ones not", (second.headers.get("x-own"), second.headers.get("x-hop")), ("1", None))
    gs.check_eq("a part of it", server.request("GET", "/hit", headers={"Range": "bytes=1-3"}).headers.get("content-range"), "bytes 1-3/5000")
    gs.check_eq("HEAD", server.request("HEAD", "/hit").headers.get("content-length"), "5000")
    gs.check_eq("another query is another response", server.request("GET", "/hit?a").status, 200)
    gs.check_eq("at the origin too", len(origin.requests("/hit?a")), 1)


def chunked(server, origin):
    origin.on("/chunked", answer(body=b"y" * 300000, chunked=True, Cache_Control="max-age=60"))
    first, second = server.request("GET", "/chunked"), server.request("GET", "/chunked")
    gs.check_eq("bodies of unknown length", (first.body, second.body), (b"y" * 300000,) * 2)
    gs.check_eq("its length is known once it is stored", second.headers.get("content-length"), "300000")
    gs.check_eq("stored", len(origin.requests("/chunked")), 1)


def validated(server, origin):
    def script(handler, n):
        if handler.headers.get("If-None-Match") == '"v1"':
            answer(304, ETag='"v1"', Cache_Control="max-age=60", X_New="2")(handler, n)
        else:
            answer(body=b"stored", ETag='"v1"', Cache_Control="max-age=0", X_New="1")(handler, n)
    origin.on("/validated", script)
    first, second, third = (server.request("GET", "/validated") for _ in range(3))
    gs.check_eq("bodies", [first.body, second.body, third.body], [b"stored"] * 3)
    gs.check_eq("fields of the 304", [r.headers.get("x-new") for r in (first, second, third)], ["1", "2", "2"])
    gs.check_eq("fresh anew", len(origin.requests("/validated")), 2)
    gs.check_eq("the client's own condition", server.request("GET", "/validated", headers={"If-None-Match": '"v1"'}).status, 304)


def varied(server, origin):
    def script(handler, n):
        answer(body=(handler.headers.get("Foo") or "none").encode(), Cache_Control="max-age=60", Vary="Foo")(handler, n)
    origin.on("/varied", script)
    for value in ("1", "2", "1", "2"):
        gs.check_eq("a variant", server.request("GET", "/varied", headers={"Foo": value}).body, value.encode())
    gs.check_eq("without the field", server.request("GET", "/varied").body, b"none")
    gs.check_eq("each was fetched once", len(origin.requests("/varied")), 3)


def passed(server, origin):
    origin.on("/passed", answer(body=b"z", Cache_Control="no-store"))
    for _ in range(2):
        gs.check_eq("no-store", server.request("GET", "/passed").body, b"z")
    gs.check_eq("is not stored", len(origin.requests("/passed")), 2)
    body = bytes(range(256)) * 4096
    origin.on("/posted", answer(201, b"done"))
    gs.check_eq("POST", server.request("POST", "/posted", body).status, 201)
    gs.check("its body arrives whole", origin.requests("/posted")[0][2] == body)


def invalidated(server, origin):
    origin.on("/changed", answer(body=b"a", Cache_Control="max-age=60"))
    for method in ("GET", "GET", "DELETE", "GET"):
        server.request(method, "/changed")
    gs.check_eq("a DELETE makes invalid", [r[0] for r in origin.requests("/changed")], ["GET", "DELETE", "GET"])


def broken(server, origin):
    origin.on("/cut", answer(body=b"w" * 100000, cut=50000, Cache_Control="max-age=60"))
    for _ in range(2):
        try:
            response = server.request("GET", "/cut")
            gs.check("a body cut short does not look whole", response.status >= 500, response.status)
        except Exception:  # the connection ends early, as it must
            gs.check("a body cut short is seen to be", True)
    gs.check_eq("and is not stored", len(origin.requests("/cut")), 2)


def stale_without_origin(server, origin):
    origin.on("/stale", answer(body=b"old", Cache_Control="max-age=1"))
    origin.on("/strict", answer(body=b"old", Cache_Control="max-age=1, must-revalidate"))
    server.request("GET", "/stale"), server.request("GET", "/strict")
    time.sleep(1.1)
    origin.is_down = True  # for connections that are open
    origin.shutdown()
    origin.server_close()
    response = server.request("GET", "/stale")
    gs.check_eq("stale content stands in", (response.status, response.body), (200, b"old"))
    gs.check_eq("unless that is forbidden", server.request("GET", "/strict").status, 502)
    gs.check_eq("only-if-cached", server.request("GET", "/none", headers={"Cache-Control": "only-if-cached"}).status, 504)


the_origin = Origin()
with gs.Server("--origin", f"http://127.0.0.1:{the_origin.server_address[1]}") as the_server:
    gs.run(*(lambda test=test: test(the_server, the_origin) for test in (hit_and_miss, chunked, validated, varied, passed, invalidated,
                                                                          broken, stale_without_origin)))
gs.finish()
