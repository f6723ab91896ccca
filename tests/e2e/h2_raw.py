"""HTTP/2 frames as no library would send them, on a plain socket."""
import socket
import struct

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _integer(prefix_bits, first, n):
    most = (1 << prefix_bits) - 1
    if n < most:
        return bytes([first | n])
    out, n = [first | most], n - most
    while n >= 128:
        out.append(n % 128 + 128)
        n //= 128
    return bytes(out + [n])


def field(name, value):
    """A literal field, name and value spelt out, kept in no table."""
    name, value = (text if isinstance(text, bytes) else text.encode("latin-1") for text in (name, value))
    return b"\x00" + _integer(7, 0, len(name)) + name + _integer(7, 0, len(value)) + value


def block(method, path, *fields, authority="a"):
    own = [(":method", method), (":scheme", "http"), (":path", path)]
    if authority is not None:
        own.append((":authority", authority))
    return b"".join(field(name, value) for name, value in own + list(fields))


def request(stream, method, path, *fields, end=True, authority="a"):
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(method, path, *fields, authority=authority))


def start(*settings):
    """What a client says first; settings are (identifier, value)."""
    return PREFACE + frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in settings))


class Connection:
    def __init__(self, port, source="127.0.0.1", limit_s=30, settings=()):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=limit_s, source_address=(source, 0))
        self.pending = b""
        self.sock.sendall(start(*settings))

    def send(self, data):
        """False once the server has closed."""
        try:
            self.sock.sendall(data)
            return True
        except OSError:
            return False

    def next(self):
        """(kind, flags, stream, payload), or None at the end."""
        try:
            while len(self.pending) < 9 or len(self.pending) < 9 + int.from_bytes(self.pending[:3], "big"):
                more = self.sock.recv(65536)
                if not more:
                    return None
                self.pending += more
        except OSError:
            return None
        length = int.from_bytes(self.pending[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", self.pending[3:9])
        payload, self.pending = self.pending[9:9 + length], self.pending[9 + length:]
        return kind, flags, stream & 0x7fffffff, payload

    def answer(self, stream):
        """(status or None, body, error code of a reset or GOAWAY or None) of one stream."""
        status, body = None, b""
        while (got := self.next()) is not None:
            kind, flags, of, payload = got
            if kind == GOAWAY and struct.unpack(">I", payload[4:8])[0] != 0:
                return status, body, struct.unpack(">I", payload[4:8])[0]
            if of != stream:
                continue
            if kind == HEADERS and status is None:
                status = _status(payload)
            elif kind == DATA:
                body += payload
            elif kind == RST_STREAM:
                return status, body, struct.unpack(">I", payload)[0]
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                return status, body, None
        return status, body, None

    def goaway(self):
        """The error code of the last GOAWAY before the end, or None."""
        code = None
        while (got := self.next()) is not None:
            if got[0] == GOAWAY:
                code = struct.unpack(">I", got[3][4:8])[0]
        return code

    def close(self):
        self.sock.close()


def _status(payload):
    """Of a block that begins as this server writes it."""
    indexed = {0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500}
    return indexed[payload[0]] if payload[0] in indexed else int(payload[2:5])
