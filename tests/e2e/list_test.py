"""Lists over a running gyre: page by page against what was stored, while others store and delete; after a kill, and with the index gone."""

import os
import threading
import time
import urllib.parse
import xml.etree.ElementTree as tree

import gyre_server as gs

ASAN = True
NS = "{http://s3.amazonaws.com/doc/2006-03-01/}"
KEYS = 20000 if gs.FULL else 1500


def key_of(i):
    return f"{i * 7919 % 31:02d}/{i * 104729 % 97:02d}/é {i}"


def target_of(key, bucket="many"):
    return f"/{bucket}/" + urllib.parse.quote(key)


def page(server, query, bucket="many"):
    """Keys, prefixes and the root of one answer; waits while the index is being made."""
    for _ in range(600):
        answer = server.request("GET", f"/{bucket}?" + urllib.parse.urlencode(query))
        if answer.status != 503:
            break
        gs.check("a list that cannot be says when to come again", answer.headers.get("retry-after"))
        time.sleep(0.1)
    gs.check_eq("list", answer.status, 200)
    root = tree.fromstring(answer.body)
    return ([e.findtext(NS + "Key") for e in root.iter(NS + "Contents")],
            [e.findtext(NS + "Prefix") for e in root.iter(NS + "CommonPrefixes")], root)


def list_all(server, bucket="many", **query):
    keys, prefixes, token = [], [], None
    while True:
        ask = {"list-type": "2", **{name.replace("_", "-"): value for name, value in query.items()}}
        if token is not None:
            ask["continuation-token"] = token
        more_keys, more_prefixes, root = page(server, ask, bucket)
        keys += more_keys
        prefixes += more_prefixes
        gs.check_eq("KeyCount", root.findtext(NS + "KeyCount"), str(len(more_keys) + len(more_prefixes)))
        if root.findtext(NS + "IsTruncated") == "false":
            return keys, prefixes
        token = root.findtext(NS + "NextContinuationToken")


def fill(server, first, end):
    def work(part):
        for i in range(first + part, end, 4):
            status = server.request("PUT", target_of(key_of(i)), b"x" * (i % 50)).status
            if status != 200:
                gs.check_eq("PUT", status, 200)
    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_bytes(keys):
    return sorted(keys, key=lambda key: key.encode())


def pages(server):
    expected = by_bytes(key_of(i) for i in range(KEYS))
    keys, prefixes = list_all(server)
    gs.check_eq("all keys, in the order of their bytes", (keys, prefixes), (expected, []))
    keys, prefixes = list_all(server, max_keys=7, prefix="05/")
    gs.check_eq("a prefix, in short pages", keys, [key for key in expected if key.startswith("05/")])
    keys, prefixes = list_all(server, max_keys=4, delimiter="/")
    gs.check_eq("common prefixes, in short pages", (keys, prefixes), ([], [f"{i:02d}/" for i in range(31)]))
    _, prefixes = list_all(server, max_keys=5, delimiter="/", prefix="07/")
    gs.check_eq("common prefixes below one", prefixes, by_bytes({key[:6] for key in expected if key.startswith("07/")}))
    _, prefixes = list_all(server, delimiter=" ")
    gs.check_eq("another delimiter", prefixes, by_bytes({key.split(" ")[0] + " " for key in expected}))
    keys, marker = [], ""
    while True:
        more, _, root = page(server, {"marker": marker, "max-keys": "400"})
        keys += more
        if root.findtext(NS + "IsTruncated") == "false":
            break
        marker = root.findtext(NS + "NextMarker")
    gs.check_eq("version 1, by markers", keys, expected)
    keys, _, root = page(server, {"list-type": "2", "encoding-type": "url", "max-keys": "1"})
    gs.check_eq("encoded keys", keys, [urllib.parse.quote(expected[0], safe="/")])


def changing(server):
    """Keys that are there all the time are in every list, those that never are in none, and each once."""
    stay = {key_of(i) for i in range(KEYS)}
    stop = threading.Event()

    def churn(part):
        i = 0
        while not stop.is_set():
            target = target_of(f"{part:02d}/churn {i % 40}")
            server.request("PUT", target, b"x")
            if i % 2:
                server.request("DELETE", target)
            i += 1
    threads = [threading.Thread(target=churn, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        keys, _ = list_all(server, max_keys=200)
        gs.check("sorted, and each once", all(a.encode() < b.encode() for a, b in zip(keys, keys[1:])))
        gs.check_eq("what stays is listed", set(key for key in keys if "churn" not in key), stay)
    stop.set()
    for thread in threads:
        thread.join()


def own_writes(server):
    for i in range(50):
        target = target_of(f"own/{i}")
        server.request("PUT", target, b"x")
        keys, _, _ = page(server, {"prefix": "own/"})
        gs.check("a list after a PUT shows it", keys == [f"own/{i}"], keys)
        server.request("DELETE", target)
        gs.check("and after a DELETE does not", page(server, {"prefix": "own/"})[0] == [])


def damaged(server, damage, what):
    """Kills the server, does something to the index, and lists."""
    server.kill()
    path = server.data / "names.sqlite"
    damage(path)
    server.start()
    keys, _ = list_all(server)
    gs.check_eq(f"with the index {what}", keys, by_bytes(key_of(i) for i in range(KEYS)))


def an_old_index(server):
    """One that a week of changes has passed by: names came and went, and others were stored again."""
    server.stop()
    old = (server.data / "names.sqlite").read_bytes()
    server.start()
    fill(server, KEYS, KEYS + 200)
    for i in range(100):
        server.request("DELETE", target_of(key_of(i)))
        server.request("PUT", target_of(key_of(200 + i)), b"again" * 20)
    server.stop()
    (server.data / "names.sqlite").write_bytes(old)
    for suffix in ("-wal", "-shm"):
        (server.data / ("names.sqlite" + suffix)).unlink(missing_ok=True)
    server.start()
    keys, _ = list_all(server)
    gs.check_eq("with the index of a week ago", keys, by_bytes(key_of(i) for i in range(100, KEYS + 200)))
    _, _, root = page(server, {"prefix": key_of(200)})
    gs.check_eq("what was stored again has its new size", root.findtext(f"{NS}Contents/{NS}Size"), "100")


def flip(path):
    data = bytearray(path.read_bytes())
    for _ in range(5):
        data[gs.rng.randrange(len(data))] ^= 1 << gs.rng.randrange(8)
    path.write_bytes(data)
    for suffix in ("-wal", "-shm"):
        (path.parent / (path.name + suffix)).unlink(missing_ok=True)


with gs.Server(size="256M") as gyre:
    gs.check_eq("bucket", gyre.request("PUT", "/many").status, 200)
    fill(gyre, 0, KEYS)
    gs.run(lambda: pages(gyre), lambda: own_writes(gyre), lambda: changing(gyre))
    for key in list_all(gyre)[0]:
        if "churn" in key:
            gyre.request("DELETE", target_of(key))
    for damage, what in ((lambda path: None, "as it was"), (lambda path: path.unlink(), "gone"),
                         (lambda path: os.truncate(path, path.stat().st_size // 2), "cut in half"), (flip, "with flipped bits"),
                         (lambda path: path.write_bytes(b"no index at all" * 1000), "overwritten")):
        gs.run(lambda: damaged(gyre, damage, what))
    gs.run(lambda: an_old_index(gyre))
    gs.check_eq("a bucket with objects stays", gyre.request("DELETE", "/many").status, 409)
gs.finish()
