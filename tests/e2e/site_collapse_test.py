"""Many who want the same at once: one asks the origin, in one process and in two; nobody waits for what is not theirs."""
import subprocess
import threading
import time

import gyre_server as gs
from raw_origin import RawOrigin, response

ASAN = True
N = 20
HOST = {"Host": "a"}  # of the same URL, whichever server is asked
origin_s = 0.2  # more where a busy machine needs it
LIMIT_S = 60


def slow(answer):
    """A script that takes its time; `answer` is bytes, or makes them of the request and how many have come."""
    lock, seen = threading.Lock(), [0]

    def script(conn, request):
        with lock:
            seen[0] += 1
            n = seen[0]
        time.sleep(origin_s)
        conn.send(answer(request, n) if callable(answer) else answer)
        return True
    return script


def get_all(servers, path, headers=None):
    """N answers at once, by turns from the servers, and how many seconds they took."""
    began = time.monotonic()
    got = gs.in_parallel(lambda i: servers[i % len(servers)].request("GET", path, headers={**HOST, **(headers(i) if headers else {})}),
                         range(N), N)
    return got, time.monotonic() - began


def in_time(run, times):
    """What `run` returns; tried again, with a slower origin, if a busy machine took longer."""
    global origin_s
    for attempt in range(6):
        got, seconds = run(attempt)
        if is_good := seconds < (times + 0.8) * origin_s:
            break
        origin_s *= 2
    gs.check(f"it takes {times} origin times", is_good, f"{seconds:.3f} s of {origin_s} s")
    origin_s = 0.2
    return got, attempt


def cacheable(servers, origin):
    body = gs.bytes_of(100000)
    for kind, answer in (("length", response(body, Cache_Control="max-age=60")),
                         ("chunks", b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + body + b"\r\n0\r\n\r\n")):
        path = f"/shared/{len(servers)}/{kind}"
        origin.on(path, slow(answer))
        got, attempt = in_time(lambda i: get_all(servers, f"{path}?{i}"), 1)
        gs.check_eq("all get it whole", [(r.status, r.body == body) for r in got], [(200, True)] * N)
        gs.check_eq("it is fetched once", len(origin.requests(f"{path}?{attempt}")), 1)
        gs.check_eq("the others are told so", sum("collapsed" in r.headers["cache-status"] or "hit" in r.headers["cache-status"] for r in got), N - 1)


def passed(servers, origin):
    path = f"/own/{len(servers)}"
    origin.on(path, slow(lambda _request, n: response(b"%d" % n, Cache_Control="private")))
    got, attempt = in_time(lambda i: get_all(servers, f"{path}?{i}"), 2)
    gs.check_eq("each gets its own", len({r.body for r in got}), N)
    gs.check_eq("all are fetched", len(origin.requests(f"{path}?{attempt}")), N)
    if len(servers) == 1:
        again, _ = in_time(lambda _: get_all(servers, f"{path}?{attempt}"), 1)
        gs.check_eq("and next time nobody waits", len({r.body for r in again}), N)


def variants(servers, origin):
    path = f"/variants/{len(servers)}"
    origin.on(path, slow(lambda request, _n: response(request.fields["foo"].encode(), Vary="Foo", Cache_Control="max-age=60")))
    got, _ = get_all(servers, path, lambda i: {"Foo": str(i % 4 // 2)})
    gs.check_eq("each gets its variant", [r.body for r in got], [str(i % 4 // 2).encode() for i in range(N)])
    gs.check("they are fetched apart", 2 <= len(origin.requests(path)) <= 4, len(origin.requests(path)))


def authorized(servers, origin):
    """Concurrent requests, one with Authorization: each gets its own."""
    path = f"/user/{len(servers)}"
    origin.on(path, slow(lambda request, _n: response(request.fields.get("authorization", "nobody").encode(), Cache_Control="private")))
    got, _ = get_all(servers, path, lambda i: {"Authorization": f"u{i}"} if i % 2 else {})
    gs.check_eq("answers to users are theirs", [r.body for r in got], [b"u%d" % i if i % 2 else b"nobody" for i in range(N)])


def stale_on_arrival(servers, origin):
    path = f"/stale/{len(servers)}"
    origin.on(path, slow(response(b"s", ETag='"s"', Cache_Control="max-age=0")))
    got, _ = get_all(servers, path)
    gs.check_eq("all get it", [r.body for r in got], [b"s"] * N)
    gs.check("without a storm", len(origin.requests(path)) <= 2, len(origin.requests(path)))
    origin.on(f"{path}/strict", slow(response(b"s", ETag='"s"', Cache_Control="no-cache")))
    get_all(servers, f"{path}/strict")
    gs.check_eq("no-cache: each is asked for", len(origin.requests(f"{path}/strict")), N)


def broken(servers, origin):
    """An origin that fails, fails all at once and not one after the other; where a connection was kept, once more on a new one."""
    path = f"/broken/{len(servers)}"

    def script(conn, _request):
        time.sleep(origin_s)
        conn.reset()
    origin.on(path, script)
    got, seconds = get_all(servers, path)
    gs.check("not one after the other", seconds < N / 2 * origin_s, seconds)
    gs.check_eq("all are told", [r.status for r in got], [502] * N)


def read_along(servers, origin):
    """Those who wait see what has come before all has; what breaks off then is not whole for anybody."""
    go_on, broken_off = threading.Event(), threading.Event()

    def script(conn, request):
        conn.send(response(b"first", length=10, Cache_Control="max-age=60"))
        go_on.wait(LIMIT_S)
        if request.target == "/along":
            conn.send(b"-last")
        broken_off.wait(0 if request.target == "/along" else LIMIT_S)
    origin.on("/along", script)
    origin.on("/off", script)
    for path in ("/along", "/off"):
        go_on.clear()
        connections = [servers[0].connection() for _ in range(3)]
        for connection in connections:
            connection.request("GET", path)
        responses = [connection.getresponse() for connection in connections]
        gs.check_eq("the first bytes come to all but, of one, the last of them", [r.read(4) for r in responses], [b"firs"] * 3)
        gs.check_eq("of one request", len(origin.requests(path)), 1)
        go_on.set()
        broken_off.set()
        whole = []
        for r in responses:
            try:
                whole.append(r.read())
            except Exception:
                whole.append(None)
        gs.check_eq(path, whole, [b"t-last" if path == "/along" else None] * 3)
        for connection in connections:
            connection.close()
    gs.check("what broke off is not stored", len(origin.requests("/off")) == 1 and servers[0].request("GET", "/along").body == b"first-last")


def gone(servers, origin):
    """Whoever fetches leaves, or its process dies: another one does it."""
    first, asked = threading.Event(), threading.Event()

    def script(conn, request):
        if len(origin.requests(request.target)) == 1:
            asked.set()
            first.wait(LIMIT_S)
            return False
        conn.send(response(b"mine", Cache_Control="max-age=60"))
        return True
    for path in ("/gone", "/dead"):
        asked.clear()
        origin.on(path, script)
        # Over HTTP/2, where one that has sent its request and then closes is known to want no answer.
        client = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", "-H", "Host: a", f"{servers[1].url}{path}"], stdout=subprocess.DEVNULL)
        gs.check("it is asked for", asked.wait(LIMIT_S))
        result = []
        waiting = threading.Thread(target=lambda: result.append(servers[0].request("GET", path, headers=HOST)))
        waiting.start()
        time.sleep(0.1)
        if path == "/dead":
            servers[1].kill()
        client.kill()
        client.wait()
        waiting.join(LIMIT_S)
        gs.check_eq(f"another fetches it: {path}", [r.body for r in result], [b"mine"])
    first.set()


the_origin = RawOrigin()
with gs.Server("--origin", the_origin.url) as one:
    two = gs.Server("--origin", the_origin.url, data=one.data)
    gs.run(*(lambda test=test: test([one, two], the_origin) for test in (cacheable, passed, variants)))
    gs.run(*(lambda test=test: test([one], the_origin) for test in (broken, cacheable, passed, authorized, stale_on_arrival)))
    gs.run(lambda: read_along([one], the_origin), lambda: gone([one, two], the_origin))
gs.finish()
