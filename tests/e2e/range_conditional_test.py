"""Ranges and conditional requests against a running gateway: one table, each row a request and what RFC 9110 (or S3, where it is
stricter) makes of it. Every row runs over HTTP/1.1 on one connection; the rows marked ranges run over h2c with curl as well."""

import http.client
import subprocess
import tempfile
import time

import gyre_server as gs

BODY = bytes((i * 7 + i // 256) & 0xFF for i in range(10000))
PAST = "Mon, 01 Jan 2001 00:00:00 GMT"
FUTURE = "Fri, 01 Jan 2100 00:00:00 GMT"

# (name, method, headers, status, first, last): first..last are the body bytes expected back; None: no body is compared.
# {E} is the object's ETag, {L} its Last-Modified.
WHOLE = (0, 9999)
RANGES = [
    ("first ten", "bytes=0-9", 206, 0, 9),
    ("one byte", "bytes=0-0", 206, 0, 0),
    ("last byte by number", "bytes=9999-9999", 206, 9999, 9999),
    ("middle", "bytes=4096-8191", 206, 4096, 8191),
    ("open end", "bytes=9990-", 206, 9990, 9999),
    ("all, open end", "bytes=0-", 206, 0, 9999),
    ("all, closed", "bytes=0-9999", 206, 0, 9999),
    ("last past the end is clamped", "bytes=9000-99999", 206, 9000, 9999),
    ("huge last is clamped", "bytes=5-99999999999999999999", 206, 5, 9999),
    ("suffix", "bytes=-10", 206, 9990, 9999),
    ("suffix of one", "bytes=-1", 206, 9999, 9999),
    ("suffix as long as all", "bytes=-10000", 206, 0, 9999),
    ("suffix longer than all", "bytes=-20000", 206, 0, 9999),
    ("suffix zero", "bytes=-0", 416, None, None),
    ("begins at the end", "bytes=10000-", 416, None, None),
    ("begins past the end", "bytes=10001-10002", 416, None, None),
    ("begins far past the end", "bytes=99999999999999999999-", 416, None, None),
    ("backwards is not a range", "bytes=9-0", 200, 0, 9999),
    ("empty set", "bytes=", 200, 0, 9999),
    ("no digits", "bytes=-", 200, 0, 9999),
    ("letters", "bytes=a-b", 200, 0, 9999),
    ("negative first", "bytes=--5", 200, 0, 9999),
    ("plus sign", "bytes=+1-2", 200, 0, 9999),
    ("hex", "bytes=0x1-0x2", 200, 0, 9999),
    ("unit in capitals", "Bytes=0-9", 206, 0, 9),
    ("other unit", "lines=0-9", 200, 0, 9999),
    ("no unit", "0-9", 200, 0, 9999),
    ("space after the sign", "bytes= 0-9", 206, 0, 9),
    ("several ranges are answered whole", "bytes=0-1,4-5", 200, 0, 9999),
    ("several, one senseless", "bytes=0-1,x", 200, 0, 9999),
    ("leading zeros", "bytes=000-009", 206, 0, 9),
    ("page boundary", "bytes=4095-4096", 206, 4095, 4096),
]

CONDITIONS = [
    ("If-Match the tag", {"If-Match": "{E}"}, 200),
    ("If-Match star", {"If-Match": "*"}, 200),
    ("If-Match another", {"If-Match": '"nope"'}, 412),
    ("If-Match list with it", {"If-Match": '"a", {E}, "b"'}, 200),
    ("If-Match list without it", {"If-Match": '"a", "b"'}, 412),
    ("If-Match weak never matches", {"If-Match": "W/{E}"}, 412),
    ("If-Match unquoted, as S3 takes it", {"If-Match": "{U}"}, 200),
    ("If-None-Match the tag", {"If-None-Match": "{E}"}, 304),
    ("If-None-Match weak form of it", {"If-None-Match": "W/{E}"}, 304),
    ("If-None-Match star", {"If-None-Match": "*"}, 304),
    ("If-None-Match another", {"If-None-Match": '"nope"'}, 200),
    ("If-None-Match list with it", {"If-None-Match": '"a",{E}'}, 304),
    ("If-None-Match list without it", {"If-None-Match": '"a","b"'}, 200),
    ("If-None-Match unquoted", {"If-None-Match": "{U}"}, 304),
    ("If-Modified-Since long ago", {"If-Modified-Since": PAST}, 200),
    ("If-Modified-Since its date", {"If-Modified-Since": "{L}"}, 304),
    ("If-Modified-Since not a date", {"If-Modified-Since": "yesterday"}, 200),
    ("If-Modified-Since RFC 850 form", {"If-Modified-Since": "Monday, 01-Jan-01 00:00:00 GMT"}, 200),
    ("If-Modified-Since asctime form", {"If-Modified-Since": "Mon Jan  1 00:00:00 2001"}, 200),
    ("If-Unmodified-Since long ago", {"If-Unmodified-Since": PAST}, 412),
    ("If-Unmodified-Since its date", {"If-Unmodified-Since": "{L}"}, 200),
    ("If-Unmodified-Since the future", {"If-Unmodified-Since": FUTURE}, 200),
    ("If-Unmodified-Since not a date", {"If-Unmodified-Since": "soon"}, 200),
    ("If-Match wins over If-Unmodified-Since", {"If-Match": "{E}", "If-Unmodified-Since": PAST}, 200),
    ("If-Match fails whatever the date", {"If-Match": '"x"', "If-Unmodified-Since": FUTURE}, 412),
    ("If-None-Match wins over If-Modified-Since, new", {"If-None-Match": '"x"', "If-Modified-Since": "{L}"}, 200),
    ("If-None-Match wins over If-Modified-Since, same", {"If-None-Match": "{E}", "If-Modified-Since": PAST}, 304),
    ("If-Match true, If-None-Match same", {"If-Match": "{E}", "If-None-Match": "{E}"}, 304),
    ("If-Match true, If-None-Match other", {"If-Match": "{E}", "If-None-Match": '"x"'}, 200),
    ("If-Match false beats If-None-Match", {"If-Match": '"x"', "If-None-Match": "{E}"}, 412),
    ("If-Unmodified-Since false beats If-None-Match", {"If-Unmodified-Since": PAST, "If-None-Match": "{E}"}, 412),
    ("If-Modified-Since same and If-Unmodified-Since same", {"If-Modified-Since": "{L}", "If-Unmodified-Since": "{L}"}, 304),
]

RANGE_CONDITIONS = [
    ("If-Range the tag", {"Range": "bytes=0-9", "If-Range": "{E}"}, 206, 0, 9),
    ("If-Range another tag", {"Range": "bytes=0-9", "If-Range": '"x"'}, 200, 0, 9999),
    ("If-Range weak never matches", {"Range": "bytes=0-9", "If-Range": "W/{E}"}, 200, 0, 9999),
    ("If-Range its date", {"Range": "bytes=0-9", "If-Range": "{L}"}, 206, 0, 9),
    ("If-Range an older date", {"Range": "bytes=0-9", "If-Range": PAST}, 200, 0, 9999),
    ("If-Range a later date is no match", {"Range": "bytes=0-9", "If-Range": FUTURE}, 200, 0, 9999),
    ("If-Range without Range", {"If-Range": '"x"'}, 200, 0, 9999),
    ("If-Range false hides an unsatisfiable range", {"Range": "bytes=20000-", "If-Range": '"x"'}, 200, 0, 9999),
    ("If-Range true, unsatisfiable", {"Range": "bytes=20000-", "If-Range": "{E}"}, 416, None, None),
    ("Range with If-Match", {"Range": "bytes=5-6", "If-Match": "{E}"}, 206, 5, 6),
    ("Range with failing If-Match", {"Range": "bytes=5-6", "If-Match": '"x"'}, 412, None, None),
    ("Range with If-None-Match same", {"Range": "bytes=5-6", "If-None-Match": "{E}"}, 304, None, None),
    ("Unsatisfiable Range with If-None-Match same", {"Range": "bytes=20000-", "If-None-Match": "{E}"}, 304, None, None),
    ("Unsatisfiable Range with failing If-Match", {"Range": "bytes=20000-", "If-Match": '"x"'}, 412, None, None),
    ("If-Match, If-Range and Range together", {"Range": "bytes=1-2", "If-Match": "{E}", "If-Range": "{E}"}, 206, 1, 2),
]

EMPTY = [
    ("empty: from zero", {"Range": "bytes=0-"}, 416),
    ("empty: first byte", {"Range": "bytes=0-0"}, 416),
    ("empty: suffix", {"Range": "bytes=-5"}, 200),
    ("empty: plain", {}, 200),
]


def filled(headers, etag, modified):
    return {
        name: value.replace("{E}", etag).replace("{U}", etag.strip('"')).replace("{L}", modified)
        for name, value in headers.items()
    }


def ask(conn, method, path, headers):
    conn.request(method, path, headers=headers)
    res = conn.getresponse()
    return res, res.read()


def judge(conn, path, etag, modified, row):
    name, headers, status, first, last = row
    headers = filled(headers, etag, modified)
    for method in ("GET", "HEAD"):
        if method == "HEAD" and "Range" in headers:
            # Range is defined for GET alone (RFC 9110, 14.2); only the preconditions still count.
            first, last = WHOLE
            status = status if status in (304, 412) else 200
        res, body = ask(conn, method, path, headers)
        what = f"{method} {name}"
        problems = []
        if res.status != status:
            problems.append(f"status {res.status}, wanted {status}")
        if method == "HEAD" and body:
            problems.append("HEAD with a body")
        if status in (200, 206) and first is not None:
            wanted = BODY[first : last + 1]
            if res.getheader("Content-Length") != str(len(wanted)):
                problems.append(f"Content-Length {res.getheader('Content-Length')}, wanted {len(wanted)}")
            if method == "GET" and body != wanted:
                problems.append("wrong bytes")
        if status == 206 and res.getheader("Content-Range") != f"bytes {first}-{last}/{len(BODY)}":
            problems.append(f"Content-Range {res.getheader('Content-Range')}")
        if status == 200 and res.getheader("Content-Range"):
            problems.append("Content-Range in a 200")
        if status == 416 and res.getheader("Content-Range") != f"bytes */{len(BODY)}":
            problems.append(f"Content-Range {res.getheader('Content-Range')}")
        if status == 304 and (body or res.getheader("ETag") != etag):
            problems.append("304 with a body or without its ETag")
        if status in (200, 206) and (res.getheader("ETag") != etag or res.getheader("Accept-Ranges") != "bytes"):
            problems.append("ETag or Accept-Ranges missing")
        gs.check(what, not problems, "; ".join(problems))


def put_conditions(conn):
    """Conditional writes: what is there decides, and a refused write changes nothing."""
    def put(headers, body=b"new"):
        conn.request("PUT", "/sem/put", body=body, headers=headers)
        res = conn.getresponse()
        res.read()
        return res

    def current():
        return ask(conn, "GET", "/sem/put", {})

    gs.check_eq("PUT If-Match on a missing key", put({"If-Match": '"x"'}).status, 404)
    gs.check_eq("PUT If-None-Match star on a missing key", put({"If-None-Match": "*"}, b"one").status, 200)
    gs.check_eq("PUT If-None-Match star on a present key", put({"If-None-Match": "*"}, b"two").status, 412)
    res, body = current()
    gs.check_eq("a refused PUT changes nothing", body, b"one")
    etag = res.getheader("ETag")
    gs.check_eq("PUT If-Match another", put({"If-Match": '"x"'}, b"two").status, 412)
    gs.check_eq("PUT If-Match the tag", put({"If-Match": etag}, b"three").status, 200)
    gs.check_eq("an allowed PUT replaces", current()[1], b"three")
    gs.check_eq("PUT If-Match star on a present key", put({"If-Match": "*"}, b"four").status, 200)
    gs.check_eq("PUT If-Match a former tag", put({"If-Match": etag}, b"five").status, 412)
    gs.check_eq("and the object stays", current()[1], b"four")
    conn.request("DELETE", "/sem/put")
    res = conn.getresponse()
    res.read()
    gs.check_eq("DELETE", res.status, 204)
    gs.check_eq("PUT If-Match star after a delete", put({"If-Match": "*"}, b"six").status, 404)


def over_h2c(server, etag):
    """The ranges once more over HTTP/2, with curl."""
    for name, value, status, first, last in RANGES[:16]:
        with tempfile.NamedTemporaryFile() as out:
            got = subprocess.run(
                ["curl", "-sS", "--http2-prior-knowledge", "-H", f"Range: {value}", "-o", out.name,
                 "-w", "%{http_code} %{http_version}", server.url + "/sem/obj"],
                capture_output=True, text=True, timeout=30, check=False)
            body = open(out.name, "rb").read()
        gs.check_eq(f"h2c {name}: status", got.stdout, f"{status} 2")
        if first is not None:
            gs.check(f"h2c {name}: bytes", body == BODY[first : last + 1])


def main():
    with gs.Server() as server:
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        for path, body in (("/sem", b""), ("/sem/obj", BODY), ("/sem/empty", b"")):
            conn.request("PUT", path, body=body)
            res = conn.getresponse()
            res.read()
            gs.check_eq(f"PUT {path}", res.status, 200)
        res, _ = ask(conn, "HEAD", "/sem/obj", {})
        etag, modified = res.getheader("ETag"), res.getheader("Last-Modified")
        time.sleep(1.1)  # within its own second a date is a weak validator, which If-Range must not use
        for name, value, status, first, last in RANGES:
            judge(conn, "/sem/obj", etag, modified, (name, {"Range": value}, status, first, last))
        for name, headers, status in CONDITIONS:
            first, last = WHOLE if status == 200 else (None, None)
            judge(conn, "/sem/obj", etag, modified, (name, headers, status, first, last))
        for row in RANGE_CONDITIONS:
            judge(conn, "/sem/obj", etag, modified, row)
        for name, headers, status in EMPTY:
            res, body = ask(conn, "GET", "/sem/empty", headers)
            gs.check_eq(name, (res.status, body if res.status == 200 else b""), (status, b""))
        put_conditions(conn)
        over_h2c(server, etag)
    gs.finish()


if __name__ == "__main__":
    main()
