"""Objects put and got byte for byte with real curl over HTTP/1.1, h2c and TLS h2; awkward keys; headers that come back; buckets."""

import hashlib
import http.client
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse

import gyre_server as gs

SIZES = [0, 1, 4096, 65535, 65536, 65537, 1 << 20, (8 << 20) + 1, 300 << 20]
PROTOCOLS = {
    "HTTP/1.1": (["--http1.1"], False, "1.1"),
    "h2c": (["--http2-prior-knowledge"], False, "2"),
    "TLS h2": (["--http2", "-k"], True, "2"),
}
KEYS = [
    b"plain", b"with space", b"a+b", b"100%", b"a%2Fb", b"double//slash", b"/leading", b"trailing/", b"..", b"../up", b"a/../b",
    b"./here", b".", b"question?mark", b"hash#mark", b"amp&lt<gt>\"'", b"back\\slash", "schlüssel/日本語/🗝".encode(),
    b"c0\x01\x1f", b"tab\tnew\nline", b"{}[]|^`~", b"=;,:@!$*()", b"x" * 1024, b"\xc3\xa9" * 512,
]


def curl(*args):
    return subprocess.run(["curl", "-sS", "--max-time", "300", *args], capture_output=True, text=True, check=False)


def make_file(path, size, seed):
    """Bytes that repeat only by the MiB and name their place, made quickly."""
    block = gs.bytes_of(min(size, 1 << 20), seed)
    with open(path, "wb") as file:
        for index in range(0, size, 1 << 20):
            file.write((index.to_bytes(8, "little") + block[8:])[: size - index])


class Watch(threading.Thread):
    """Notes a server's highest RssAnon until it is told to stop."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.peak, self.going = server, server.memory(), True

    def run(self):
        while self.going:
            self.peak = max(self.peak, self.server.memory())
            time.sleep(0.01)


def md5_of(path):
    digest = hashlib.md5()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def round_trips(server, tmp):
    for name, (flags, tls, version) in PROTOCOLS.items():
        for size in SIZES:
            source, got = f"{tmp}/source", f"{tmp}/got"
            make_file(source, size, seed=size)
            url = (server.tls_url if tls else server.url) + f"/sizes/{urllib.parse.quote(name)}-{size}"
            put = curl(*flags, "-T", source, "-w", "%{http_code} %{http_version}", "-o", os.devnull, "-D", f"{tmp}/head", url)
            gs.check_eq(f"{name} PUT {size}", put.stdout, f"200 {version}")
            etag = re.search(r'(?im)^etag: "([0-9a-f]{32})"', open(f"{tmp}/head").read())
            gs.check(f"{name} PUT {size}: ETag is the MD5", etag and etag.group(1) == md5_of(source))
            get = curl(*flags, "-o", got, "-w", "%{http_code} %{http_version} %{size_download}", url)
            gs.check_eq(f"{name} GET {size}", get.stdout, f"200 {version} {size}")
            same = subprocess.run(["cmp", "-s", source, got], check=False).returncode == 0
            gs.check(f"{name} GET {size}: same bytes", same or size == 0 and os.path.getsize(got) == 0)
            head = curl(*flags, "-I", "-o", os.devnull, "-D", f"{tmp}/head", "-w", "%{http_code}", url)
            length = re.search(r"(?im)^content-length: (\d+)", open(f"{tmp}/head").read())
            gs.check(f"{name} HEAD {size}", head.stdout == "200" and length and int(length.group(1)) == size)


def chunked_upload(server, tmp):
    """A body of unknown length, from a pipe."""
    source, got = f"{tmp}/source", f"{tmp}/got"
    for size in (0, 10, 70000, 20 << 20):
        make_file(source, size, seed=3 + size)
        with open(source, "rb") as stdin:
            put = subprocess.run(["curl", "-sS", "-T", "-", "-w", "%{http_code}", "-o", os.devnull, server.url + "/sizes/piped"],
                                 stdin=stdin, capture_output=True, text=True, check=False)
        curl("-o", got, server.url + "/sizes/piped")
        same = open(source, "rb").read() == open(got, "rb").read()
        gs.check(f"piped PUT of {size}", put.stdout == "200" and same, put.stdout + put.stderr)


def keys(server, tmp):
    """Every key is its own object: all are written before any is read."""
    def url(key):
        return server.url + "/keys/" + urllib.parse.quote(key, safe="")

    for index, key in enumerate(KEYS):
        put = curl("--path-as-is", "-X", "PUT", "--data-binary", f"value {index}", "-w", "%{http_code}", url(key))
        gs.check_eq(f"PUT key {key!r:.40}", put.stdout, "200")
    for index, key in enumerate(KEYS):
        gs.check_eq(f"GET key {key!r:.40}", curl("--path-as-is", url(key)).stdout, f"value {index}")
    # Bytes that need no coding may come as they are.
    for path, index in (("a+b", 2), ("double//slash", 5), ("/leading", 6), ("../up", 9), ("a/../b", 10), ("=;,:@!$*()", 21)):
        gs.check_eq(f"GET raw key {path}", curl("--path-as-is", "-g", server.url + "/keys/" + path).stdout, f"value {index}")
    too_long = curl("-X", "PUT", "--data-binary", "x", url(b"y" * 1025))
    gs.check("a key of 1025 bytes is refused", "KeyTooLongError" in too_long.stdout, too_long.stdout)
    not_utf8 = curl("-w", "%{http_code}", "-o", os.devnull, "-X", "PUT", "--data-binary", "x", server.url + "/keys/%ff%fe")
    gs.check_eq("a key that is not UTF-8 is refused", not_utf8.stdout, "400")
    bad_coding = curl("-w", "%{http_code}", "-o", os.devnull, server.url + "/keys/%zz")
    gs.check_eq("a bad percent code is refused", bad_coding.stdout, "400")


def headers(server):
    sent = {
        "Content-Type": "text/x-thing; charset=utf-8", "Content-Encoding": "gzip", "Content-Disposition": 'attachment; filename="a b"',
        "Content-Language": "de, en", "Cache-Control": "max-age=60, public", "Expires": "Fri, 01 Jan 2100 00:00:00 GMT",
        "x-amz-meta-one": "1", "X-Amz-Meta-Two": "zwei zwei", "x-amz-meta-empty": "",
    }
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    conn.request("PUT", "/sizes/headers", body=b"abc", headers=sent)
    conn.getresponse().read()
    for method in ("GET", "HEAD"):
        conn.request(method, "/sizes/headers")
        res = conn.getresponse()
        res.read()
        for name, value in sent.items():
            gs.check_eq(f"{method} gives back {name}", res.getheader(name), value)
        for name in ("Date", "Server", "x-amz-request-id", "Last-Modified", "ETag"):
            gs.check(f"{method} has {name}", res.getheader(name))
    conn.request("PUT", "/sizes/plain", body=b"abc")
    conn.getresponse().read()
    conn.request("GET", "/sizes/plain")
    res = conn.getresponse()
    res.read()
    gs.check_eq("the default Content-Type", res.getheader("Content-Type"), "binary/octet-stream")
    conn.request("PUT", "/sizes/md5", body=b"abc", headers={"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="})
    res = conn.getresponse()
    gs.check("a wrong Content-MD5 is refused", res.status == 400 and b"BadDigest" in res.read())
    conn.request("GET", "/sizes/md5")
    res = conn.getresponse()
    gs.check("and nothing was stored", res.status == 404 and b"NoSuchKey" in res.read())
    conn.request("PUT", "/sizes/md5", body=b"abc", headers={"x-amz-meta-big": "v" * 3000})
    res = conn.getresponse()
    gs.check("more than 2 KiB of x-amz-meta- is refused", res.status == 400 and b"MetadataTooLarge" in res.read())


def errors(server):
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    for method, path, status, code in (
        ("GET", "/nobucket/key", 404, "NoSuchBucket"), ("PUT", "/nobucket/key", 404, "NoSuchBucket"),
        ("DELETE", "/nobucket/key", 404, "NoSuchBucket"), ("GET", "/sizes/none", 404, "NoSuchKey"),
        ("PUT", "/UPPER", 400, "InvalidBucketName"), ("PUT", "/ab", 400, "InvalidBucketName"), ("PUT", "/a..b", 400, "InvalidBucketName"),
        ("PUT", "/192.168.0.1", 400, "InvalidBucketName"), ("DELETE", "/nobucket", 404, "NoSuchBucket"),
        ("GET", "/sizes/x?acl", 404, "NoSuchKey"), ("PUT", "/sizes/x?tagging", 404, "NoSuchKey"),
        ("PATCH", "/sizes/x", 405, "MethodNotAllowed"), ("GET", "/sizes?delete", 501, "NotImplemented"),
    ):
        conn.request(method, path)
        res = conn.getresponse()
        text = res.read().decode()
        request_id = res.getheader("x-amz-request-id")
        gs.check(f"{method} {path} is {status} {code}", res.status == status and f"<Code>{code}</Code>" in text and f"<RequestId>{request_id}</RequestId>" in text
                     and res.getheader("Content-Type") == "application/xml", f"{res.status} {text}")
    conn.request("HEAD", "/sizes/none")
    res = conn.getresponse()
    gs.check("HEAD of a missing key has no body", res.status == 404 and res.read() == b"")
    conn.request("DELETE", "/sizes/none")
    res = conn.getresponse()
    res.read()
    gs.check_eq("DELETE of a missing key", res.status, 204)


def buckets(server):
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def ask(method, path, body=None):
        conn.request(method, path, body=body)
        res = conn.getresponse()
        return res.status, res.read().decode()

    gs.check_eq("HEAD of a bucket that is not there", ask("HEAD", "/fresh")[0], 404)
    gs.check_eq("PUT bucket", ask("PUT", "/fresh")[0], 200)
    gs.check_eq("PUT bucket again", ask("PUT", "/fresh")[0], 200)
    gs.check_eq("HEAD bucket", ask("HEAD", "/fresh")[0], 200)
    listing = ask("GET", "/")[1]
    gs.check("GET / lists it", "<Name>fresh</Name>" in listing and "ListAllMyBucketsResult" in listing, listing)
    ask("PUT", "/fresh/k", b"v")
    gs.check_eq("DELETE of a bucket with an object", ask("DELETE", "/fresh")[0], 409)
    ask("DELETE", "/fresh/k")
    gs.check_eq("DELETE bucket", ask("DELETE", "/fresh")[0], 204)
    gs.check_eq("it is gone", ask("HEAD", "/fresh")[0], 404)
    gs.check("and from the list", "<Name>fresh</Name>" not in ask("GET", "/")[1])


def aws(server, tmp):
    """The CLI, both ways, below its multipart threshold."""
    env = dict(os.environ, AWS_EC2_METADATA_DISABLED="true", AWS_DEFAULT_REGION="us-east-1")
    source, got = f"{tmp}/source", f"{tmp}/got"
    for size in (0, 5, 7 << 20):
        make_file(source, size, seed=9)
        base = ["aws", "--endpoint-url", server.url, "--no-sign-request", "s3", "cp", "--only-show-errors"]
        up = subprocess.run([*base, source, "s3://sizes/by aws"], env=env, capture_output=True, text=True, timeout=120, check=False)
        down = subprocess.run([*base, "s3://sizes/by aws", got], env=env, capture_output=True, text=True, timeout=120, check=False)
        same = down.returncode == 0 and open(source, "rb").read() == open(got, "rb").read()
        gs.check(f"aws s3 cp of {size} both ways", up.returncode == 0 and same, up.stderr + down.stderr)


def big_memory(server, tmp):
    """A body far larger than any buffer costs a bounded amount of memory."""
    size = (1 << 30) if gs.FULL else (256 << 20)
    source = f"{tmp}/big"
    make_file(source, size, seed=77)
    before = server.memory()
    watch = Watch(server)
    watch.start()
    put = curl("-T", source, "-w", "%{http_code}", "-o", os.devnull, server.url + "/sizes/big")
    after_put = watch.peak
    get = curl("-o", f"{tmp}/got", "-w", "%{http_code} %{size_download}", server.url + "/sizes/big")
    watch.going, peak = False, watch.peak
    gs.check_eq(f"PUT and GET of {size >> 20} MiB", (put.stdout, get.stdout), ("200", f"200 {size}"))
    gs.check("RssAnon grows by less than 64 MiB", peak - before < 64 << 20, f"{before >> 20} MiB before, {after_put >> 20} after PUT, {peak >> 20} at most")


def main():
    with gs.Server(size="3G", tls=True) as server, tempfile.TemporaryDirectory() as tmp:
        for bucket in ("sizes", "keys"):
            gs.check_eq(f"PUT /{bucket}", curl("-X", "PUT", "-w", "%{http_code}", server.url + f"/{bucket}").stdout, "200")
        round_trips(server, tmp)
        chunked_upload(server, tmp)
        keys(server, tmp)
        headers(server)
        errors(server)
        buckets(server)
        aws(server, tmp)
        big_memory(server, tmp)
    gs.finish()


if __name__ == "__main__":
    main()
