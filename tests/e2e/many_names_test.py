"""Lists among very many names: any prefix, delimiter and page while others store and delete, quickly, and without memory for them all. A
million names with --full."""
import bisect
import pathlib
import random
import socket
import statistics
import threading
import time
import urllib.parse
import xml.etree.ElementTree as tree

import gyre_server as gs

SANITIZED = b"__asan_init" in pathlib.Path(gs.GYRE).read_bytes()  # then it is slow, and what is freed is kept for a while
NAMES = 8000 if not gs.FULL else 100_000 if SANITIZED else 1_000_000
QUESTIONS = 3000 if gs.FULL else 60
PAGE_MS = 20
NS = "{http://s3.amazonaws.com/doc/2006-03-01/}"
BATCH = 100  # requests on their way at once on a connection


def name_of(i):
    """In no order; some 250 directories of 1,000 others with a few names each, and names within names."""
    mixed = i * 2654435761 & 0xFFFFFFFF
    return f"{mixed >> 24:02x}/{mixed >> 14 & 1023:04d}/name-{i}" + ("/leaf" if i % 10 == 0 else "")


def fill(server, names):
    """Stores empty objects with many requests on their way, over four connections."""
    def store(part):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            answers = sock.makefile("rb")
            for at in range(0, len(part), BATCH):
                batch = part[at:at + BATCH]
                sock.sendall(b"".join(f"PUT /many/{name} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".encode() for name in batch))
                for name in batch:
                    status = answers.readline()
                    while answers.readline() != b"\r\n":
                        pass
                    if not status.startswith(b"HTTP/1.1 200 "):
                        return f"{name}: {status}"
        return None
    gs.check_eq("all are stored", gs.in_parallel(store, [names[part::4] for part in range(4)], threads=4), [None] * 4)


def page(server, connection, query):
    """Entries in order, whether more follow, and the token for them."""
    for _ in range(600):
        answer = server.request("GET", "/many?" + urllib.parse.urlencode({"list-type": "2", **query}), connection=connection)
        if answer.status != 503:
            break
        time.sleep(0.1)
    if answer.status != 200:
        raise AssertionError(f"{query}: {answer}")
    root = tree.fromstring(answer.body)
    entries = [entry.text for group in ("Contents/" + NS + "Key", "CommonPrefixes/" + NS + "Prefix")
               for entry in root.findall(NS + group)]
    return sorted(entries), root.findtext(NS + "IsTruncated") == "true", root.findtext(NS + "NextContinuationToken")


def expected(names, prefix, delimiter, after, last):
    """The entries after one and up to another (None: to the end)."""
    at = bisect.bisect_left(names, prefix)
    if after is not None:
        at = max(at, bisect.bisect_right(names, after if not (delimiter and after.endswith(delimiter)) else after + "\U0010ffff"))
    found = []
    while at < len(names) and names[at].startswith(prefix):
        entry = names[at]
        cut = entry.find(delimiter, len(prefix)) if delimiter else -1
        if cut >= 0:
            entry = entry[:cut + len(delimiter)]
        if last is not None and entry > last:
            break
        found.append(entry)
        at = bisect.bisect_right(names, entry + "\U0010ffff") if cut >= 0 else at + 1
    return found


def ask(server, connection, names, rng):
    """A question, up to three pages long, against the model; None or what differs."""
    name = rng.choice(names)
    prefix = name[:rng.choice([0, 1, 2, 3, 4, 7, 8, 12, len(name)])]
    delimiter = rng.choice([None, "/", "-", "e", "none such"])
    query = {"prefix": prefix, "max-keys": rng.choice([1, 7, 100, 1000])}
    if delimiter:
        query["delimiter"] = delimiter
    after = None
    if not delimiter and rng.random() < 0.5:
        after = query["start-after"] = rng.choice(names)
    for _ in range(3):
        entries, is_truncated, token = page(server, connection, query)
        last = entries[-1] if is_truncated else None
        want = expected(names, prefix, delimiter, after, last)
        got = [entry for entry in entries if "churn" not in entry]
        if got != want or len(entries) > query["max-keys"]:
            return f"{query} after {after}: {len(got)} entries, {sorted(set(got) ^ set(want))[:4]}"
        if not is_truncated:
            return None
        after, query["continuation-token"] = last, token
    return None


def churn(server, names, stop):
    """Names beside those that stay, so that no common prefix is theirs alone."""
    connection, i = server.connection(), 0
    while not stop.is_set():
        i += 1
        target = f"/many/{names[i % 5000 * 7919 % len(names)].rpartition('/')[0]}/churn-{i % 5000}"
        if i // 5000 % 2 and i % 3 == 0:
            server.request("DELETE", target, connection=connection)
        else:
            server.request("PUT", target, b"", connection=connection)
        if i % 4 == 0:  # one that is there for a moment
            server.request("DELETE", target, connection=connection)


def any_page(server, names):
    def work(part):
        connection, rng = server.connection(), random.Random(f"{gs.SEED}/{part}")
        answers = [ask(server, connection, names, rng) for _ in range(QUESTIONS // 3)]
        return [answer for answer in answers if answer]
    stop = threading.Event()
    changing = threading.Thread(target=churn, args=(server, names, stop))
    changing.start()
    wrong = gs.in_parallel(work, range(3), threads=3)
    stop.set()
    changing.join()
    gs.check(f"{QUESTIONS} questions while names come and go", wrong == [[], [], []], wrong)


def page_ms(server, names):
    """The median time of a page of 1,000 names, at random places, asked twice, the second time counted."""
    connection, times = server.connection(), []
    for _ in range(30):
        target = "/many?" + urllib.parse.urlencode({"list-type": "2", "start-after": gs.rng.choice(names)})
        server.request("GET", target, connection=connection)
        began = time.monotonic()
        server.request("GET", target, connection=connection)
        times.append((time.monotonic() - began) * 1000)
    return statistics.median(times)


def memory_stays(server, names):
    """All pages, one after the other: the server needs no more for the last than for the first."""
    connection, query, count = server.connection(), {"max-keys": "1000"}, 0
    page(server, connection, query)
    before = server.memory()
    while True:
        entries, is_truncated, token = page(server, connection, query)
        count += sum("churn" not in entry for entry in entries)
        if not is_truncated:
            break
        query["continuation-token"] = token
    grown = server.memory() - before
    gs.check_eq("all names in all pages", count, len(names))
    gs.check("listing them all takes no more memory", grown < (64 if SANITIZED else 8) << 20, f"{grown >> 10} KiB")
    return grown


def main():
    names = [name_of(i) for i in range(NAMES)]
    with gs.Server("--object-size", "512", size="2G" if gs.FULL else "256M") as server:
        server.request("PUT", "/many")
        empty = server.memory()
        began = time.monotonic()
        fill(server, names)
        took_s = time.monotonic() - began
        full = server.memory()
        names.sort()
        gs.run(lambda: any_page(server, names))
        ms = min(page_ms(server, names) for _ in range(3))
        gs.check(f"a page of 1,000 names among {NAMES} takes less than {PAGE_MS} ms", ms < PAGE_MS or SANITIZED or not gs.FULL, f"{ms:.1f} ms")
        grown = memory_stays(server, names)
        # Per name this is far less than the name itself: the index is a file, and the cache of its pages has a bound.
        gs.check("memory does not grow with the names", full - empty < (1024 if SANITIZED else 64) << 20, f"{(full - empty) >> 20} MiB")
        print(f"{NAMES} names stored in {took_s:.0f} s; a page {ms:.2f} ms; memory {empty >> 20} MiB, {full >> 20} MiB with the names, "
              f"{grown >> 10} KiB more after all pages", flush=True)
    gs.finish()


if __name__ == "__main__":
    main()
