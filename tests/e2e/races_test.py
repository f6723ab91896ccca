"""Many clients at once, through one gateway and through two on the same store: one creator wins, whoever reads sees one whole body, and an
upload that a kill interrupts is either completed or still there."""
import json
import re
import threading
import time
import urllib.parse

import gyre_server as gs

ROUNDS = 200 if gs.FULL else 8
READ_S = 60 if gs.FULL else 1
KILLS = 60 if gs.FULL else 3
PARTS = (5 << 20, 5 << 20, 777)


def pair(size="256M", config=None):
    """Two gateways on one store."""
    more = ("--config", config) if config else ()
    one = gs.Server(*more, size=size)
    two = gs.Server("--admin", "off", *more, data=one.data, size=size)
    for bucket, server in (("race", one), ("moving", two)):
        gs.check_eq("bucket", server.request("PUT", f"/{bucket}").status, 200)
    return one, two


def buckets_of_the_other():
    """What one gateway does to buckets the other knows at once."""
    tags = b"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"
    one, two = pair()
    with one, two:
        for turn, (here, there) in enumerate(((one, two), (two, one)) * 3):
            path = f"/made-{turn % 2}"
            gs.check_eq("unknown", there.request("PUT", f"{path}/k", b"x").status, 404)
            gs.check_eq("made", here.request("PUT", path).status, 200)
            gs.check_eq("known", there.request("PUT", f"{path}/k", b"x").status, 200)
            gs.check("in the list", f"<Name>{path[1:]}</Name>".encode() in there.request("GET", "/").body)
            gs.check_eq("tagged", here.request("PUT", f"{path}?tagging", tags).status, 204)
            gs.check("tags", b"<Value>v</Value>" in there.request("GET", f"{path}?tagging").body)
            gs.check_eq("an object of the other's", here.request("DELETE", path).status, 409)
            gs.check_eq("emptied", here.request("DELETE", f"{path}/k").status, 204)
            gs.check_eq("removed", here.request("DELETE", path).status, 204)
            gs.check_eq("gone", there.request("GET", f"{path}/k").status, 404)
            gs.check("not in the list", f"<Name>{path[1:]}</Name>".encode() not in there.request("GET", "/").body)


def one_creator(servers, what):
    """20 at once say If-None-Match: *. One is answered 200, and its body is there."""
    for turn in range(ROUNDS):
        connections = [servers[i % len(servers)].connection() for i in range(20)]
        for connection in connections:
            connection.connect()
        start = threading.Barrier(20)

        def put(i):
            start.wait()
            return servers[i % len(servers)].request("PUT", f"/race/{what}-{turn}", b"%d" % i * 1000, {"If-None-Match": "*"}, connections[i])

        answers = gs.in_parallel(put, range(20), threads=20)
        for connection in connections:
            connection.close()
        winners = [i for i, answer in enumerate(answers) if answer.status == 200]
        gs.check_eq(f"{what}: one creates, the others are told why", ([answer.status for answer in answers].count(200),
                                                                     {answer.status for answer in answers} - {200, 412, 409}), (1, set()))
        for server in servers:
            got = server.request("GET", f"/race/{what}-{turn}")
            gs.check(f"{what}: what it stored is there", got.body == b"%d" % winners[0] * 1000, got)


def body_of(key, version, size):
    """A body of which every 16 bytes name the key and the version."""
    return (b"%5d %9d\n" % (key, version)) * (size // 16)


def judge(key, answer, problems):
    """200 with one version from end to end and as long as announced, or 404."""
    if answer.status == 404:
        return False
    first = answer.body[:16]
    whole = answer.status == 200 and len(answer.body) == int(answer.headers["content-length"]) > 0 and \
        answer.body == first * (len(answer.body) // 16) and int(first[:5]) == key
    if not whole:
        problems.append(f"key {key}: {answer.status}, {len(answer.body)} of {answer.headers.get('content-length')} bytes, {first}")
    return True


def readers_and(servers, change, what, keys=6):
    """Readers of whole bodies and of ranges while change(server, key, version) goes on."""
    problems, reads, stop = [], [0], threading.Event()

    def run(work):
        def guarded(*arguments):
            try:
                work(*arguments)
            except Exception as error:
                problems.append(f"{type(error).__name__} {error}")
        return guarded

    @run
    def read(i):
        server, turn = servers[i % len(servers)], 0
        connection = server.connection()
        while not stop.is_set():
            key, turn = (turn + i) % keys, turn + 1
            if turn % 3:
                reads[0] += judge(key, server.request("GET", f"/moving/{key}", connection=connection), problems)
                continue
            answer = server.request("GET", f"/moving/{key}", None, {"Range": "bytes=160-81919"}, connection)
            if answer.status not in (404, 416) and (answer.status != 206 or answer.body != answer.body[:16] * (81760 // 16)):
                problems.append(f"range of key {key}: {answer.status}, {len(answer.body)} bytes")

    @run
    def write(i):
        version = 0
        while not stop.is_set():
            version += 1
            change(servers[i % len(servers)], version % keys, version * 2 + i)

    threads = [threading.Thread(target=work, args=(i,)) for work, count in ((read, 4), (write, 2)) for i in range(count)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + READ_S
    gs.wait_until(lambda: problems or (time.monotonic() > until and reads[0] > 20), limit_s=READ_S + 120)
    stop.set()
    for thread in threads:
        thread.join()
    gs.check(f"{what}: bodies are whole and of one version", not problems, problems[:4])
    gs.check(f"{what}: some were read", reads[0] > 20, reads[0])


def put(server, key, version):
    size = (82000 + version * 7919 % 900000) & ~15
    status = server.request("PUT", f"/moving/{key}", body_of(key, version, size)).status
    if status not in (200, 503):  # 503: come again
        gs.check_eq("PUT", status, 200)


def put_and_delete(server, key, version):
    put(server, key, version)
    if version % 3 == 0:
        gs.check_eq("DELETE", server.request("DELETE", f"/moving/{key}").status, 204)


def slow_reader(server, what, change):
    """A reader that takes its time still gets the body that it began with, whole, or a connection that ends before its announced end."""
    size = 24 << 20
    connection, response = server.connection(), None
    while response is None or response.status != 200:  # on a slow machine it may expire first
        gs.check_eq(f"{what}: PUT", server.request("PUT", "/moving/slow", body_of(99, 1, size)).status, 200)
        connection.request("GET", "/moving/slow")
        response = connection.getresponse()
        if response.status != 200:
            response.read()
    body = response.read(1 << 20)
    change()
    try:
        body += response.read()
    except (OSError, ValueError):
        pass  # cut off, as its sender must say when it cannot go on
    except Exception as error:  # http.client.IncompleteRead
        body += getattr(error, "partial", b"")
    gs.check(f"{what}: begun is finished", body == body_of(99, 1, size), f"{len(body)} bytes, {body[-16:]}")
    connection.close()


def changes_while_read():
    config = gs.tmpdir() / "ttl.json"
    config.write_text(json.dumps({"buckets": {"moving": {"ttl": "1s"}}}), encoding="utf-8")
    one, two = pair()
    with one, two:
        gs.run(lambda: one_creator([one], "one-gateway"), lambda: one_creator([one, two], "two-gateways"),
               lambda: readers_and([one, two], put_and_delete, "overwritten and deleted"),
               lambda: slow_reader(one, "deleted", lambda: two.request("DELETE", "/moving/slow")),
               lambda: slow_reader(one, "overwritten", lambda: two.request("PUT", "/moving/slow", b"other")))
    one, two = pair("64M", config)
    with one, two:
        gs.run(lambda: readers_and([one, two], put, "expired and evicted"),
               lambda: slow_reader(one, "expired", lambda: gs.wait_until(lambda: two.request("GET", "/moving/slow").status == 404)))


def evicted_while_read():
    """A store that is written over several times while its objects are read."""
    with gs.Server(size="64M") as server:
        stop = threading.Event()

        def flood():
            connection, i = server.connection(), 0
            while not stop.is_set():
                i += 1
                server.request("PUT", f"/moving/flood-{i}", body_of(1, i, 1 << 20), connection=connection)

        server.request("PUT", "/moving")
        thread = threading.Thread(target=flood)
        thread.start()
        readers_and([server], put, "evicted")
        stop.set()
        thread.join()


# ---- Uploads and kills ----

def begin(server, key):
    answer = server.request("POST", f"/uploads/{key}?uploads", b"")
    upload = urllib.parse.quote(re.search(rb"<UploadId>([^<]+)", answer.body).group(1).decode())
    tags = []
    for number, size in enumerate(PARTS, 1):
        stored = server.request("PUT", f"/uploads/{key}?partNumber={number}&uploadId={upload}", body_of(number, 7, size + 16)[:size])
        gs.check_eq("part", stored.status, 200)
        tags.append(stored.headers["etag"])
    return upload, ("<CompleteMultipartUpload>" + "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
                                                          for number, tag in enumerate(tags, 1)) + "</CompleteMultipartUpload>").encode()


def killed_completions():
    """kill -9 at some moment of a completion: the object is whole, or the upload is there and completes."""
    whole = b"".join(body_of(number, 7, size + 16)[:size] for number, size in enumerate(PARTS, 1))
    server = gs.Server(size="256M")
    server.request("PUT", "/uploads")
    outcomes = {"object": 0, "upload": 0}
    upload, document = begin(server, "timed")
    began = time.monotonic()
    gs.check_eq("a completion", server.request("POST", f"/uploads/timed?uploadId={upload}", document).status, 200)
    took_s = time.monotonic() - began
    for turn in range(KILLS):
        upload, document = begin(server, turn)
        answers = []

        def complete():
            try:
                answers.append(server.request("POST", f"/uploads/{turn}?uploadId={upload}", document).status)
            except (OSError, ValueError):
                pass
            except Exception:  # http.client's, when the connection ends
                pass

        thread = threading.Thread(target=complete)
        thread.start()
        thread.join(gs.rng.random() * took_s * 1.5)
        server.kill()
        thread.join()
        server.start()
        got = server.request("GET", f"/uploads/{turn}")
        listed = server.request("GET", f"/uploads/{turn}?uploadId={upload}")
        if got.status == 200:
            outcomes["object"] += 1
            gs.check("the object is whole", got.body == whole, len(got.body))
        else:
            outcomes["upload"] += 1
            gs.check("what was answered 200 is there", answers != [200], answers)
            gs.check("the upload has its parts", listed.status == 200 and listed.body.count(b"<PartNumber>") == len(PARTS), listed)
            done = server.request("POST", f"/uploads/{turn}?uploadId={upload}", document)
            gs.check("and completes", done.status == 200, done)
            gs.check("to the whole object", server.request("GET", f"/uploads/{turn}").body == whole)
        names = []  # the index may be catching up
        gs.wait_until(lambda: names.append(server.request("GET", f"/uploads?prefix={turn}")) or names[-1].status == 200)
        gs.check("it is listed with its size", f"<Size>{len(whole)}</Size>".encode() in names[-1].body, names[-1])
        again = server.request("POST", f"/uploads/{turn}?uploadId={upload}", document)
        gs.check("completing once more is the same", again.status == 200, again)
        server.request("DELETE", f"/uploads/{turn}")
    print("kills that left", outcomes)
    gs.check_eq("the server exits with 0 on SIGTERM", server.stop(), 0)


if __name__ == "__main__":
    gs.run(buckets_of_the_other, changes_while_read, evicted_while_read, killed_completions)
    gs.finish()
