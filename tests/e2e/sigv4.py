"""Signatures of version 4, made byte by byte so that tests can make them wrong: fields, links, and bodies framed as aws-chunked."""
import base64
import datetime
import hashlib
import hmac
import urllib.parse

NOTHING = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def crc32c(data):
    """The CRC of RFC 3720, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return base64.b64encode((crc ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()


class Signer:
    """One user at one time. `date` as in x-amz-date; now if not given."""

    def __init__(self, key, secret, date=None, region="us-east-1"):
        self.key, self.secret, self.region = key, secret, region
        self.date = date or datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        self.scope = f"{self.date[:8]}/{region}/s3/aws4_request"
        secret = b"AWS4" + self.secret.encode()
        for word in self.scope.split("/"):
            secret = hmac.digest(secret, word.encode(), "sha256")
        self.signing_key = secret

    def sign(self, text):
        return hmac.new(self.signing_key, text.encode(), "sha256").hexdigest()

    def of_request(self, method, path, query, headers, payload):
        """The signature over a request of which all of `headers` (lower case) are signed. path and query as the signature has them."""
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = "\n".join([method, path, query, lines, ";".join(sorted(headers)), payload])
        return self.sign("\n".join(["AWS4-HMAC-SHA256", self.date, self.scope, sha256(canonical.encode())]))

    def headers(self, method, path, query="", host="", payload=UNSIGNED, unsigned=(), **more):
        """All fields of a request, Authorization among them. more: further signed ones, with _ for -; unsigned: pairs that are not."""
        signed = {"host": host, "x-amz-date": self.date, "x-amz-content-sha256": payload}
        signed.update({name.replace("_", "-"): value for name, value in more.items()})
        signature = self.of_request(method, path, query, signed, payload)
        authorization = (f"AWS4-HMAC-SHA256 Credential={self.key}/{self.scope}, SignedHeaders={';'.join(sorted(signed))}, "
                         f"Signature={signature}")
        return {**signed, "authorization": authorization, **dict(unsigned)}

    def link(self, method, path, host, expires=600, **more):
        """Path and query of a presigned request."""
        items = {"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": f"{self.key}/{self.scope}", "X-Amz-Date": self.date,
                 "X-Amz-Expires": str(expires), "X-Amz-SignedHeaders": "host", **more}
        query = "&".join(f"{quote(name)}={quote(items[name])}" for name in sorted(items))
        return f"{path}?{query}&X-Amz-Signature={self.of_request(method, path, query, {'host': host}, UNSIGNED)}"

    def chunk(self, previous, data):
        return self.sign("\n".join(["AWS4-HMAC-SHA256-PAYLOAD", self.date, self.scope, previous, NOTHING, sha256(data)]))

    def trailer(self, previous, lines):
        return self.sign("\n".join(["AWS4-HMAC-SHA256-TRAILER", self.date, self.scope, previous, sha256(lines)]))

    def chunks(self, seed, data, size=65536, trailer=None, ending=b"\r\n"):
        """A body of signed chunks. trailer: (name, value), signed as well."""
        framed, previous = b"", seed
        for piece in [data[at:at + size] for at in range(0, len(data), size)] + [b""]:
            previous = self.chunk(previous, piece)
            framed += f"{len(piece):x};chunk-signature={previous}\r\n".encode() + piece + (b"\r\n" if piece else b"")
        if trailer:
            line = f"{trailer[0]}:{trailer[1]}".encode()
            signature = self.trailer(previous, line + b"\n")
            framed += line + ending + f"x-amz-trailer-signature:{signature}\r\n".encode()
        return framed + b"\r\n"


def chunks(data, size=65536, trailer=None, ending=b"\r\n"):
    """A body of chunks that are not signed."""
    framed = b"".join(f"{len(data[at:at + size]):x}\r\n".encode() + data[at:at + size] + b"\r\n" for at in range(0, len(data), size))
    return framed + b"0\r\n" + (f"{trailer[0]}:{trailer[1]}".encode() + ending if trailer else b"") + b"\r\n"


def quote(text):
    return urllib.parse.quote(text, safe="-_.~")
