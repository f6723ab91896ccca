"""Requests that other S3 servers got wrong, by their public reports; and the published signatures, sent for today. After each request
comes a second one on the same connection, which must not notice."""
import hashlib
import json
import re

import gyre_server as gs
import sigv4
from sigv4 import Signer

KEY, SECRET = "AKIDALICE", "alice-has-a-secret-of-her-own"
READER, READER_SECRET = "AKIDBOB", "bob-may-only-read"
SIGNED, SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
ABC = b"abc" * 30000


class Client:
    """Signed requests to one server, over one connection each, and what follows on it."""

    def __init__(self, server):
        self.server, self.host, self.signer = server, f"127.0.0.1:{server.port}", Signer(KEY, SECRET)
        self.put("/cases", b"")
        self.put("/cases/before", b"before")

    def put(self, path, body, **more):
        return self.ask("PUT", path, body=body, follow=False, **more)

    def send(self, method, target, body, headers, what="", follow=True):
        """One request with given fields, then a plain one on the same connection."""
        connection = self.server.connection()
        headers = {name: value for name, value in headers.items() if name != "host"} | {"Host": headers.get("host", self.host)}
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        if body is not None and not any(name.lower() in ("content-length", "transfer-encoding") for name in headers):
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        answer = gs.Response(response.status, response.getheaders(), response.read())
        if follow and answer.headers.get("connection", "").lower() != "close":
            more = self.signer.headers("GET", "/cases/before", host=self.host)
            del more["host"]  # http.client adds the same one
            second = self.server.request("GET", "/cases/before", headers=more, connection=connection)
            gs.check(f"{what or target}: the connection goes on", (second.status, second.body) == (200, b"before"), second)
        connection.close()
        return answer

    def ask(self, method, path, query="", body=None, payload=sigv4.UNSIGNED, canonical=None, unsigned=(), signer=None, follow=True, **more):
        """A request signed in its fields. canonical: the path as it is signed, where that differs from the one sent."""
        headers = (signer or self.signer).headers(method, canonical or path, query, self.host, payload, unsigned, **more)
        return self.send(method, path + ("?" + query if query else ""), body, headers, follow=follow)

    def seed(self, path, payload, method="PUT", query="", **more):
        """Fields of a request with a framed body, and the signature that its chunks continue."""
        headers = self.signer.headers(method, path, query, self.host, payload, **more)
        return headers, headers["authorization"].rpartition("=")[2]

    def gets(self, what, path, expected):
        answer = self.ask("GET", path)
        gs.check(what, (answer.status, answer.body) == (200, expected), answer)
        return answer

    def refused(self, what, answer, status, code=None):
        gs.check(what, answer.status == status and (code is None or answer.code() == code), answer)


def published_signatures():
    """The signer of this test is the one of the published examples."""
    signer = Signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524T000000Z")
    host = "examplebucket.s3.amazonaws.com"
    base = {"host": host, "x-amz-date": signer.date}
    for name, got, want in (
        ("GET", signer.of_request("GET", "/test.txt", "", {**base, "range": "bytes=0-9", "x-amz-content-sha256": sigv4.NOTHING},
                                  sigv4.NOTHING), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", signer.of_request("PUT", "/test%24file.text", "",
                                  {**base, "date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY",
                                   "x-amz-content-sha256": sigv4.sha256(b"Welcome to Amazon S3.")},
                                  sigv4.sha256(b"Welcome to Amazon S3.")),
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("lifecycle", signer.of_request("GET", "/", "lifecycle=", {**base, "x-amz-content-sha256": sigv4.NOTHING}, sigv4.NOTHING),
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("list", signer.of_request("GET", "/", "max-keys=2&prefix=J", {**base, "x-amz-content-sha256": sigv4.NOTHING}, sigv4.NOTHING),
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ("link", signer.link("GET", "/test.txt", host, 86400).rpartition("=")[2],
         "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
    ):
        gs.check_eq(f"published {name}", got, want)
    seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    signatures = re.findall(rb"signature=([0-9a-f]+)", signer.chunks(seed, b"a" * 66560))
    gs.check_eq("published chunks", [text[:8] + text[-6:] for text in signatures], [b"ad80c730288648", b"0055627cef5497", b"b6c6ea8a449df9"])
    seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
    signatures = re.findall(rb"signature[=:]([0-9a-f]+)", signer.chunks(seed, b"a" * 66560, trailer=("x-amz-checksum-crc32c", "sOO8/Q==")))
    gs.check_eq("published chunks and trailer", [text[:8] + text[-6:] for text in signatures],
                [b"b474d886ef5aa2", b"1c1344b151e5c7", b"2ca2aba263f992", b"d81f82fce2e435"])


def examples_of_today(client):
    """The published requests, with today's date and this server's host."""
    text = b"Welcome to Amazon S3."
    client.put("/cases/test.txt", b"0123456789abc")
    answer = client.ask("GET", "/cases/test.txt", payload=sigv4.NOTHING, range="bytes=0-9")
    gs.check("a signed range", (answer.status, answer.body) == (206, b"0123456789"), answer)
    answer = client.ask("PUT", "/cases/test$file.text", body=text, payload=sigv4.sha256(text), canonical="/cases/test%24file.text",
                        x_amz_storage_class="REDUCED_REDUNDANCY", date="Fri, 24 May 2013 00:00:00 GMT")
    gs.check_eq("a key with a dollar", answer.status, 200)
    client.refused("no lifecycle", client.ask("GET", "/cases", "lifecycle="), 404, "NoSuchLifecycleConfiguration")
    listed = client.ask("GET", "/cases", "max-keys=2&prefix=test")
    gs.check("a list", listed.body.count(b"<Key>test") == 2, listed)
    link = client.signer.link("GET", "/cases/test.txt", client.host, 86400)
    answer = client.send("GET", link, None, {})
    gs.check("a link", (answer.status, answer.body) == (200, b"0123456789abc"), answer)
    client.refused("another link", client.send("GET", link.replace("86400", "86401"), None, {}), 403, "SignatureDoesNotMatch")
    for trailer in (None, ("x-amz-checksum-crc32c", "sOO8/Q==")):
        more = {"x_amz_trailer": trailer[0]} if trailer else {}
        headers, seed = client.seed("/cases/chunked", SIGNED_TRAILER if trailer else SIGNED, content_encoding="aws-chunked",
                                    x_amz_decoded_content_length="66560", **more)
        answer = client.send("PUT", "/cases/chunked", client.signer.chunks(seed, b"a" * 66560, trailer=trailer), headers)
        gs.check_eq("the published chunks", answer.status, 200)
        got = client.gets("come back without framing", "/cases/chunked", b"a" * 66560)
        gs.check_eq("the ETag is of the payload", got.headers["etag"], f'"{hashlib.md5(b"a" * 66560).hexdigest()}"')
        gs.check("aws-chunked is no encoding of the object", "content-encoding" not in got.headers)


def framed_bodies(client):
    crc = ("x-amz-checksum-crc32c", sigv4.crc32c(ABC))

    def put(what, body, status, code=None, payload=UNSIGNED_TRAILER, path="/cases/framed", query="", **more):
        headers, _ = client.seed(path, payload, query=query, **{"x_amz_decoded_content_length": str(len(ABC)), **more})
        answer = client.send("PUT", path + ("?" + query if query else ""), body, headers, what)
        client.refused(what, answer, status, code)
        return answer

    put("a trailer that is not signed", sigv4.chunks(ABC, trailer=crc), 200, x_amz_trailer=crc[0])
    put("lines that end as minio ends them", sigv4.chunks(ABC, trailer=crc, ending=b"\n\r\n"), 200, x_amz_trailer=crc[0])
    client.gets("it is stored", "/cases/framed", ABC)
    headers, _ = client.seed("/cases/framed", UNSIGNED_TRAILER, x_amz_decoded_content_length=str(len(ABC)), x_amz_trailer=crc[0])
    body = sigv4.chunks(ABC, trailer=crc)
    pieces = b"".join(f"{len(body[at:at + 5000]):X}\r\n".encode() + body[at:at + 5000] + b"\r\n" for at in range(0, len(body), 5000))
    answer = client.send("PUT", "/cases/framed", pieces + b"0\r\n\r\n", {**headers, "Transfer-Encoding": "chunked"})
    gs.check_eq("both framings at once, without Content-Length", answer.status, 200)
    put("a trailer that is no checksum", sigv4.chunks(ABC, trailer=("x-amz-checksum-sha1", "bad")), 400, "InvalidRequest",
        x_amz_trailer="x-amz-checksum-sha1")
    put("a trailer of another body", sigv4.chunks(ABC, trailer=("x-amz-checksum-crc32c", "AAAAAA==")), 400, "BadDigest",
        x_amz_trailer=crc[0])
    put("a trailer and a field", sigv4.chunks(ABC, trailer=crc), 400, "InvalidRequest", x_amz_trailer=crc[0], x_amz_checksum_crc32c=crc[1])
    put("an algorithm without a value", sigv4.chunks(ABC), 400, "InvalidRequest", x_amz_sdk_checksum_algorithm="CRC32C")
    put("a trailer that does not come", sigv4.chunks(ABC), 400, x_amz_trailer=crc[0])
    put("less than announced", sigv4.chunks(ABC[:-1], trailer=("x-amz-checksum-crc32c", sigv4.crc32c(ABC[:-1]))), 400, "IncompleteBody",
        x_amz_trailer=crc[0])
    put("framing that is not known", ABC, 501, "NotImplemented", payload="STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")
    headers, seed = client.seed("/cases/framed", SIGNED_TRAILER, x_amz_decoded_content_length=str(len(ABC)), x_amz_trailer=crc[0])
    framed = client.signer.chunks(seed, ABC, trailer=crc)
    bare = re.sub(rb"x-amz-trailer-signature:[0-9a-f]+\r\n", b"", framed)
    client.refused("a trailer that lacks its signature", client.send("PUT", "/cases/framed", bare, headers), 403, "SignatureDoesNotMatch")
    headers, seed = client.seed("/cases/framed", SIGNED, x_amz_decoded_content_length="6")
    framed = client.signer.chunks(seed, b"newer!")
    wrong = framed[:-5] + bytes([framed[-5] ^ 1]) + framed[-4:]
    client.refused("a last chunk with a wrong signature", client.send("PUT", "/cases/framed", wrong, headers), 403, "SignatureDoesNotMatch")
    client.gets("what was there is served still", "/cases/framed", ABC)
    upload = re.search(rb"<UploadId>([^<]+)", client.ask("POST", "/cases/parts", "uploads=", b"").body).group(1).decode()
    query = f"partNumber=1&uploadId={sigv4.quote(upload)}"
    put("a part in chunks", sigv4.chunks(ABC, trailer=crc), 200, path="/cases/parts", query=query, x_amz_trailer=crc[0])
    listed = client.ask("GET", "/cases/parts", f"uploadId={sigv4.quote(upload)}")
    gs.check("its size is that of the payload", f"<Size>{len(ABC)}</Size>".encode() in listed.body, listed)


def wrong_signatures(client):
    signer = client.signer
    client.refused("a field that is not signed", client.ask("PUT", "/cases/unsigned", body=b"x", unsigned=[("x-amz-acl", "public-read")]),
                   403, "AccessDenied")
    client.refused("an unknown framing with a wrong signature", client.send("PUT", "/cases/x", b"x", {
        **signer.headers("PUT", "/cases/other", host=client.host, payload="STREAMING-UNKNOWN")}), 403, "SignatureDoesNotMatch")
    both = signer.headers("GET", "/cases/before", host=client.host)
    client.refused("two signatures", client.send("GET", signer.link("GET", "/cases/before", client.host), None, both), 400)
    client.refused("a clock that is off", client.ask("GET", "/cases/before", signer=Signer(KEY, SECRET, "20200101T000000Z")), 403,
                   "RequestTimeTooSkewed")
    for host in (f"127.0.0.1:{client.server.port}", "example.com", "example.com:80"):
        headers = signer.headers("GET", "/cases/before", host=host)
        gs.check_eq(f"host {host}", client.send("GET", "/cases/before", None, headers).status, 200)
    abroad = Signer(KEY, SECRET, region="eu-north-7")
    gs.check_eq("another region", client.ask("GET", "/cases/before", signer=abroad).status, 200)
    gs.check_eq("Accept-Encoding signed as it was sent", client.ask("GET", "/cases/before", accept_encoding="identity, gzip;q=0.5").status, 200)
    for expires in (0, -1, 604801, "soon"):
        answer = client.send("GET", signer.link("GET", "/cases/before", client.host, expires), None, {})
        client.refused(f"a link for {expires} s", answer, 403)
    none = "x-amz-checksum-crc32"
    answer = client.send("PUT", signer.link("PUT", "/cases/linked", client.host, **{none: "AAAAAA==", "x-amz-sdk-checksum-algorithm": "CRC32"}),
                         b"a body", {})
    client.refused("a link with the checksum of nothing", answer, 400, "BadDigest")
    client.refused("stores nothing", client.ask("HEAD", "/cases/linked"), 404)
    reader = Signer(READER, READER_SECRET)
    client.refused("a missing key for one who may not list", client.ask("GET", "/cases/none", signer=reader), 403, "AccessDenied")
    client.refused("and for one who may", client.ask("GET", "/cases/none"), 404, "NoSuchKey")
    answer = client.ask("HEAD", "/cases/none", signer=reader)
    gs.check("HEAD says the same without a body", (answer.status, answer.body) == (403, b""), answer)


def continues(client):
    """A body is asked for once it is known to be welcome."""
    for signer, expected in ((client.signer, b"HTTP/1.1 100 "), (Signer(KEY, "wrong"), b"HTTP/1.1 403 ")):
        headers = signer.headers("PUT", "/cases/expected", host=client.host)
        head = "PUT /cases/expected HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        received = client.server.raw((head + "Content-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n").encode(), limit_s=2)
        gs.check(f"Expect is answered with {expected.decode()}", received.startswith(expected), received[:100])


def awkward_keys(client):
    for sent, signed in (("/cases/year=2020/x", "/cases/year%3D2020/x"), ("/cases/a+b", "/cases/a%2Bb"), ("/cases//k", "/cases//k"),
                         ("/cases/a%01b", "/cases/a%01b"), ("/cases/a&b", "/cases/a%26b"), ("/cases/%3C", "/cases/%3C")):
        gs.check_eq(f"PUT {sent}", client.ask("PUT", sent, body=sent.encode(), canonical=signed).status, 200)
        answer = client.ask("GET", signed)
        gs.check(f"GET {signed}", (answer.status, answer.body) == (200, sent.encode()), answer)
    listed = client.ask("GET", "/cases")
    for key in (b"year=2020/x", b"a+b", b"/k", b"a&#x1;b", b"a&amp;b", b"&lt;"):
        gs.check(f"{key} is listed", b"<Key>" + key + b"</Key>" in listed.body, listed.body)
    listed = client.ask("GET", "/cases", "encoding-type=url&list-type=2&prefix=a")
    for key in (b"a%2Bb", b"a%01b", b"a%26b"):
        gs.check(f"{key} is listed when encoding is asked for", b"<Key>" + key + b"</Key>" in listed.body, listed.body)
    first = client.ask("GET", "/cases", "max-keys=1")
    gs.check("version 1 without delimiter says where to go on", b"<NextMarker>" in first.body, first.body)


def empty_and_ranges(client):
    client.put("/cases/empty", b"")
    answer = client.ask("GET", "/cases/empty", range="bytes=0-")
    client.refused("a range of nothing", answer, 416, "InvalidRange")
    gs.check("says how much there is", answer.headers["content-range"] == "bytes */0" and b"<ActualObjectSize>0<" in answer.body, answer)
    answer = client.ask("GET", "/cases/empty", range="bytes=-5")
    gs.check("the last bytes of nothing", (answer.status, answer.body) == (200, b""), answer)
    answer = client.ask("GET", "/cases/before", range="bytes=0-")
    gs.check("all bytes as a range", (answer.status, answer.headers["content-range"]) == (206, "bytes 0-5/6"), answer)
    etag = client.ask("HEAD", "/cases/before").headers["etag"]
    answer = client.ask("GET", "/cases/before", if_none_match=etag)
    gs.check("304 announces no other length", answer.status == 304 and answer.headers.get("content-length", "6") == "6", answer)
    gs.check_eq("HEAD has the length", client.ask("HEAD", "/cases/before", accept_encoding="gzip").headers["content-length"], "6")


def conditions(client):
    client.refused("If-Match of what is not there", client.put("/cases/absent", b"x", if_match='"0123"'), 404, "NoSuchKey")
    etag = client.ask("HEAD", "/cases/before").headers["etag"]
    for form in (etag, etag.strip('"'), "*"):
        gs.check_eq(f"If-Match: {form}", client.put("/cases/before", b"before", if_match=form).status, 200)
    body = b"<Delete><Object><Key>nothing</Key></Object></Delete>"
    checksum = sigv4.crc32c(body)
    answer = client.ask("POST", "/cases", "delete=", body, x_amz_checksum_crc32c=checksum)
    gs.check("many are removed without Content-MD5", answer.status == 200 and b"<Key>nothing</Key>" in answer.body, answer)


def parts(client):
    def ask(query, method="POST", body=b""):
        return client.ask(method, "/cases/whole", query, body)
    upload = sigv4.quote(re.search(rb"<UploadId>([^<]+)", ask("uploads=").body).group(1).decode())
    tags = [ask(f"partNumber={n}&uploadId={upload}", "PUT", letter * (5 << 20)).headers["etag"] for n, letter in ((1, b"A"), (2, b"B"), (3, b"C"))]

    def complete(*tags):
        return ask(f"uploadId={upload}", body=("<CompleteMultipartUpload>" + "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>" for n, tag in enumerate(tags, 1)) + "</CompleteMultipartUpload>").encode())

    client.refused("another ETag", complete(tags[0], tags[1], '"0123456789abcdef0123456789abcdef"'), 400, "InvalidPart")
    client.refused("no parts", complete(), 400, "MalformedXML")
    answer = complete(tags[0], tags[1].strip('"'), tags[2].replace('"', "&quot;"))
    gs.check_eq("quotes or none", answer.status, 200)
    gs.check("the published ETag", b"b2add96cc9702bbf4efb0ccdfc6b7747-3" in answer.body, answer)
    gs.check_eq("once more", complete(*tags).body, answer.body)
    head = client.ask("HEAD", "/cases/whole").headers
    gs.check_eq("length", (head["content-length"], head["etag"]), (str(15 << 20), '"b2add96cc9702bbf4efb0ccdfc6b7747-3"'))


def main():
    config = gs.tmpdir() / "gyre.json"
    config.write_text(json.dumps({"users": {"alice": {"keys": {KEY: SECRET}},
                                            "bob": {"keys": {READER: READER_SECRET}, "rights": {"cases": ["read"]}}}}), encoding="utf-8")
    with gs.Server("--config", config) as server:
        client = Client(server)
        gs.run(published_signatures, *(lambda test=test: test(client) for test in (
            examples_of_today, framed_bodies, wrong_signatures, continues, awkward_keys, empty_and_ranges, conditions, parts)))
    gs.finish()


if __name__ == "__main__":
    main()
