"""A cache in front of a scripted origin: hits, validation, what is passed, and bodies that break off."""
import http.server
import json
import socket
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


def raw(server, request):
    """What the server sends for one request that asks it to close, as bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(request)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def interim(server, origin):
    def script(handler, n):
        handler.send_response_only(100)
        handler.end_headers()
        handler.send_response_only(102)
        handler.end_headers()
        handler.send_response_only(103)
        handler.send_header("Link", "</a.css>; rel=preload")
        handler.send_header("Connection", "X-Hop")
        handler.send_header("X-Hop", "1")
        handler.end_headers()
        answer(body=b"final", Cache_Control="max-age=60")(handler, n)
    origin.on("/interim", script)
    head = b"GET /interim HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    got = raw(server, head)
    gs.check_eq("interim responses come first, without fields of one hop", got.partition(b"HTTP/1.1 200")[0],
                b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n")
    gs.check("then the final one", got.endswith(b"\r\n\r\nfinal"), got)
    again = raw(server, head)
    gs.check("a hit has none, nor their fields", again.startswith(b"HTTP/1.1 200 ") and b"link" not in again, again)
    origin.on("/interim?10", script)
    old = raw(server, head.replace(b"/interim", b"/interim?10").replace(b"HTTP/1.1", b"HTTP/1.0"))
    gs.check("none for HTTP/1.0", old.startswith(b"HTTP/1.1 200 "), old)


def strange_coding(server, origin):
    def script(coding, *fields):
        def send(handler, _n):
            handler.send_response(200)
            for name, value in (("Transfer-Encoding", coding), ("Cache-Control", "max-age=60"), *fields):
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(b"strange")
            handler.close_connection = True
        return send
    origin.on("/strange", script("nobody-knows"))
    origin.on("/gzip", script("gzip"))
    origin.on("/both", script("nobody-knows", ("Content-Length", "3")))
    for what in ("as it comes", "from the store"):
        got = server.request("GET", "/strange")
        gs.check_eq(f"an unknown transfer coding, {what}", (got.status, got.body), (200, b"strange"))
        gs.check("its name is not passed on", "strange" not in got.headers.get("transfer-encoding", ""), got)
    gs.check_eq("one request", len(origin.requests("/strange")), 1)
    gs.check_eq("one that would have to be undone is no answer", server.request("GET", "/gzip").status, 502)
    gs.check_eq("nor one beside a length", server.request("GET", "/both").status, 502)


def refreshed_behind(server, origin):
    go_on = threading.Event()

    def script(handler, n):
        if n == 2:
            go_on.wait(60)
        if n == 3:
            handler.close_connection = True  # a refresh that breaks
            return
        answer(body=b"%d" % n, Cache_Control="max-age=1, stale-while-revalidate=600")(handler, n)
    origin.on("/behind", script)
    server.request("GET", "/behind")
    time.sleep(1.1)
    gs.check_eq("stale ones are answered at once", [server.request("GET", "/behind").body for _ in range(5)], [b"1"] * 5)
    gs.check("the origin is asked behind", gs.wait_until(lambda: len(origin.requests("/behind")) == 2))
    go_on.set()
    gs.check("what came is what is stored", gs.wait_until(lambda: int(server.request("GET", "/behind").body) >= 2))
    gs.check("one that breaks is followed by another", gs.wait_until(lambda: int(server.request("GET", "/behind").body) >= 4, step_s=0.2))


def told_by_head(server, origin):
    fields = {"ETag": '"v"', "X_New": "1", "Cache_Control": "max-age=1"}

    def script(handler, n):
        own = fields if n == 1 else {**fields, "X_New": "2", "Cache_Control": "max-age=600"} if n == 2 else {**fields, "ETag": '"w"'}
        answer(body=b"head", **own)(handler, n)
    origin.on("/head", script)
    server.request("GET", "/head")
    time.sleep(1.1)
    server.request("HEAD", "/head")
    got = server.request("GET", "/head")
    gs.check_eq("a HEAD freshens", (got.body, got.headers.get("x-new"), len(origin.requests("/head"))), (b"head", "2", 2))
    server.request("HEAD", "/head", headers={"Cache-Control": "no-cache"})
    server.request("GET", "/head")
    gs.check_eq("or tells that another is there", [r[0] for r in origin.requests("/head")], ["GET", "HEAD", "HEAD", "GET"])


def varies_anew(server, origin):
    def script(handler, n):
        if n == 2:
            answer(304, ETag='"v"', Vary="Foo", Cache_Control="max-age=600")(handler, n)
        else:
            answer(body=(handler.headers.get("Foo") or "none").encode(), ETag='"v"', Cache_Control="no-cache" if n == 1 else "max-age=600",
                   **({} if n == 1 else {"Vary": "Foo"}))(handler, n)
    origin.on("/anew", script)
    gs.check_eq("first, without Vary", server.request("GET", "/anew", headers={"Foo": "1"}).body, b"1")
    gs.check_eq("a 304 adds one", server.request("GET", "/anew", headers={"Foo": "1"}).body, b"1")
    gs.check_eq("others do not get what is not theirs", server.request("GET", "/anew", headers={"Foo": "2"}).body, b"2")


def wrong_lengths(server, origin):
    def script(handler, _n):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Cache-Control", "max-age=60")
        handler.end_headers()
        handler.wfile.write(b"3\r\nabc\r\n0\r\n\r\n")
    origin.on("/chunks", script)
    for _ in range(2):
        gs.check_eq("chunks win over a length", server.request("GET", "/chunks").body, b"abc")


def logged(origin):
    """The access log's word for what became of a request."""
    log = gs.tmpdir() / "access.log"
    origin.on("/logged", answer(body=b"l", Cache_Control="max-age=1, stale-while-revalidate=600"))
    with gs.Server("--origin", f"http://127.0.0.1:{origin.server_address[1]}", "--access-log", str(log), "--access-log-format", "json") as server:
        server.request("GET", "/logged"), server.request("GET", "/logged")
        time.sleep(1.1)
        server.request("GET", "/logged"), server.request("POST", "/logged", b"1")
    entries = [entry for entry in map(json.loads, log.read_text().splitlines()) if entry["target"] == "/logged"]
    # Each loop writes the lines of its own connections, some at a time.
    gs.check_eq("results", sorted(entry["result"] for entry in entries), ["hit", "miss", "ok", "stale"])
    gs.check_eq("roles", {entry["role"] for entry in entries}, {"site"})


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
gs.run(lambda: logged(the_origin))
with gs.Server("--origin", f"http://127.0.0.1:{the_origin.server_address[1]}") as the_server:
    gs.run(*(lambda test=test: test(the_server, the_origin) for test in (hit_and_miss, chunked, validated, varied, passed, invalidated,
                                                                          broken, interim, strange_coding, refreshed_behind, told_by_head,
                                                                          varies_anew, wrong_lengths, stale_without_origin)))
gs.finish()
