#!/usr/bin/env python3
"""What a strict server refuses over HTTP/2 (the table of malformed_http_test.py, row by row where it exists there), by raw frames."""
import struct

import gyre_server as gs
import h2_raw as h2

ASAN = True
PROTOCOL_ERROR, STREAM_CLOSED, COMPRESSION, CALM = 1, 5, 9, 11


def fields(*pairs, method="GET", path="/strict/k", authority="a"):
    return h2.block(method, path, *pairs, authority=authority)


def raw(*pairs):
    """A header block out of exactly these fields."""
    return b"".join(h2.field(name, value) for name, value in pairs)


OWN = [(":method", "GET"), (":scheme", "http"), (":path", "/strict/k"), (":authority", "a")]

# What it is, the header block, and the answer: a status, or "reset" or "goaway" for one that is no request at all.
HEADS = [
    ("Transfer-Encoding", fields(("transfer-encoding", "chunked")), "no"),
    ("Transfer-Encoding beside Content-Length", fields(("transfer-encoding", "chunked"), ("content-length", "5")), "no"),
    ("Connection", fields(("connection", "close")), "no"),
    ("Keep-Alive", fields(("keep-alive", "1")), "no"),
    ("Upgrade", fields(("upgrade", "h2c")), "no"),
    ("Proxy-Connection", fields(("proxy-connection", "close")), "no"),
    ("TE other than trailers", fields(("te", "gzip")), "no"),
    ("upper case in a name", fields(("X-Upper", "1")), "no"),
    ("an empty name", fields(("", "1")), 400),
    ("a space in a name", fields(("x y", "1")), 400),
    ("a colon in a name", fields(("x:y", "1")), 400),
    ("NUL in a value", fields(("x-a", "a\0b")), 400),
    ("CR in a value", fields(("x-a", "a\rb")), 400),
    ("LF in a value", fields(("x-a", "a\nx-b: c")), 400),
    ("CRLF in a value", fields(("x-a", "a\r\nx-b: c")), 400),
    ("Content-Length +3", fields(("content-length", "+3")), "no"),
    ("Content-Length -1", fields(("content-length", "-1")), "no"),
    ("Content-Length 0x3", fields(("content-length", "0x3")), "no"),
    ("Content-Length empty", fields(("content-length", "")), "no"),
    ("Content-Length 3, 3", fields(("content-length", "3, 3")), "no"),
    ("Content-Length 2^64", fields(("content-length", str(1 << 64))), "no"),
    ("two Content-Lengths", fields(("content-length", "0"), ("content-length", "5")), 400),
    ("two equal Content-Lengths", fields(("content-length", "0"), ("content-length", "0")), 400),
    ("two authorities", fields((":authority", "b")), "no"),
    ("Content-Length without a body", fields(("content-length", "3")), 400),
    ("no path", raw(OWN[0], OWN[1], OWN[3]), "no"),
    ("no method", raw(*OWN[1:]), "no"),
    ("no scheme", raw(OWN[0], *OWN[2:]), "no"),
    ("an empty path", fields(path=""), 400),
    ("a relative path", fields(path="strict/k"), 400),
    ("a space in the path", fields(path="/strict/a b"), 400),
    ("a control in the path", fields(path="/strict/a\x01b"), 400),
    ("NUL in the path", fields(path="/strict/a\0b"), 400),
    ("a fragment in the path", fields(path="/strict/a#b"), 400),
    ("two paths", raw(*OWN, (":path", "/x")), "no"),
    ("two methods", raw(OWN[0], *OWN), "no"),
    ("a pseudo-field behind a field", raw(("x-a", "1"), *OWN), "no"),
    ("an unknown pseudo-field", raw(*OWN, (":protocol", "x")), "no"),
    ("a response's pseudo-field", raw((":status", "200"), *OWN), "no"),
    ("no authority, nor Host", raw(*OWN[:3]), 400),
    ("an authority with user", fields(authority="a/b@c"), 400),
    ("an authority with a space", fields(authority="a b"), 400),
    ("CONNECT", raw((":method", "CONNECT"), (":authority", "a:1")), "no"),
    ("90 KiB of fields", fields(*[(f"x-{i}", "a" * 3000) for i in range(30)]), "no"),
    ("a value that begins with a space", fields(("x-a", " b")), 400),
    ("a value that ends with a space", fields(("x-a", "b ")), 400),
    ("a value that begins with a tab", fields(("x-a", "\tb")), 400),
    ("a value that ends with a tab", fields(("x-a", "b\t")), 400),
    ("a value of a space", fields(("x-a", " ")), 400),
    ("a Host that begins with a space", raw(*OWN[:3], ("host", " a")), 400),
    ("a Host other than the authority", fields(("host", "b")), 400),
    ("a Host with another port", fields(("host", "a:81")), 400),
    ("a Host whose port is the default of another scheme", fields(("host", "a:443")), 400),
    ("two Hosts", fields(("host", "a"), ("host", "a")), 400),
    ("two Hosts and no authority", raw(*OWN[:3], ("host", "a"), ("host", "a")), 400),
    ("an empty Host", raw(*OWN[:3], ("host", "")), 400),
    ("a Host with user", raw(*OWN[:3], ("host", "u@a")), 400),
    ("an empty authority", fields(authority=""), 400),
    ("an empty authority beside a Host", raw(*OWN[:3], (":authority", ""), ("host", "a")), 400),
    ("an empty scheme", raw(OWN[0], (":scheme", ""), *OWN[2:]), "no"),
    ("a scheme that is none", raw(OWN[0], (":scheme", "javascript"), *OWN[2:]), "no"),
    ("a scheme in capitals", raw(OWN[0], (":scheme", "HTTP"), *OWN[2:]), "no"),
    ("a scheme of another protocol, its name indexed", raw(OWN[0]) + b"\x06\x03ftp" + raw(*OWN[2:]), "no"),
    ("two schemes", raw(*OWN[:2], (":scheme", "http"), *OWN[2:]), "no"),
    ("a method with a space", raw((":method", "GE T"), *OWN[1:]), 400),
    ("a method of nothing", raw((":method", ""), *OWN[1:]), 400),
    ("101 fields", fields(*[(f"x-{i}", "1") for i in range(101)]), 431),
    ("20 KiB of path", fields(path="/strict/" + "a" * 20000), 414),
]

ACCEPTED = [
    ("a plain request", fields()),
    ("TE: trailers", fields(("te", "trailers"))),
    ("98 fields", fields(*[(f"x-{i}", "1") for i in range(98)])),
    ("a path with an encoded slash", fields(path="/strict/a%2fb")),
    ("Host in the place of the authority", raw(*OWN[:3], ("host", "a"))),
    ("a Host that says what the authority says", fields(("host", "a"))),
    ("a Host in other letters, with the default port", raw(*OWN[:3], (":authority", "a"), ("host", "A:80"))),
    ("a Host with the default port of its scheme", raw(OWN[0], (":scheme", "https"), OWN[2], (":authority", "a:443"), ("host", "a:"))),
    ("an https scheme, which a proxy may speak of in clear text", raw(OWN[0], (":scheme", "https"), *OWN[2:])),
    ("a scheme in Huffman's code", raw(OWN[0]) + b"\x07\x84\x9d\x29\xad\x1f" + raw(*OWN[2:])),
    ("a scheme kept in the table, and named by it", raw(OWN[0]) + b"\x47\x04http" + raw(*OWN[2:])),
    ("bytes above 0x7f in a value", fields(("x-a", b"\xc3\xa4"))),
]


def alive(server):
    """A connection of its own still gets its object."""
    connection = h2.Connection(server.port)
    connection.send(h2.request(1, "GET", "/strict/k"))
    status, body, error = connection.answer(1)
    connection.close()
    return (status, body, error) == (200, b"value", None)


def send_block(connection, stream, block, end=True):
    """A header block in frames of at most 16 KiB."""
    parts = [block[at:at + 16000] for at in range(0, len(block), 16000)]
    for i, part in enumerate(parts):
        flags = (h2.END_STREAM if end and i == 0 else 0) | (h2.END_HEADERS if i == len(parts) - 1 else 0)
        connection.send(h2.frame(h2.HEADERS if i == 0 else h2.CONTINUATION, flags, stream, part))


def heads(server):
    for what, block, expected in HEADS:
        connection = h2.Connection(server.port)
        send_block(connection, 1, block)
        status, _, error = connection.answer(1)
        if expected == "no":
            gs.check(f"{what} is no request", status in (None, 400, 501) and (error not in (None, 0) or status), f"{status} {error}")
        else:
            gs.check_eq(what, status, expected)
        connection.close()
    gs.check("others are served", alive(server))


def accepted(server):
    for what, block in ACCEPTED:
        connection = h2.Connection(server.port)
        send_block(connection, 1, block)
        status, _, error = connection.answer(1)
        gs.check(f"{what} is a request", status in (200, 403, 404) and error is None, f"{status} {error}")
        connection.close()


def lengths(server):
    """DATA must be as long as was announced, in whatever pieces it comes."""
    for length, pieces, ok in [("5", [b"va", b"lue"], True), ("5", [b"valu"], False), ("5", [b"value", b"!"], False), ("0", [b"!"], False),
                               ("0", [b""], True), ("5", [], False), (None, [b"val", b"", b"ue"], True)]:
        connection = h2.Connection(server.port)
        extra = [] if length is None else [("content-length", length)]
        connection.send(h2.request(1, "PUT", "/strict/length", *extra, end=not pieces))
        for i, piece in enumerate(pieces):
            connection.send(h2.frame(h2.DATA, h2.END_STREAM if i == len(pieces) - 1 else 0, 1, piece))
        status, _, error = connection.answer(1)
        gs.check(f"Content-Length {length} and DATA of {[len(piece) for piece in pieces]}", status == (200 if ok else 400), f"{status} {error}")
        connection.send(h2.request(3, "GET", "/strict/k"))
        gs.check_eq("the connection goes on", connection.answer(3)[:2], (200, b"value"))
        connection.close()


def two_lengths(server):
    """Neither of two lengths is believed, whichever is right, and nothing is stored."""
    for first, second in (("5", "5"), ("5", "0"), ("0", "5"), ("5", "7")):
        connection = h2.Connection(server.port)
        connection.send(h2.request(1, "PUT", "/strict/two", ("content-length", first), ("content-length", second), end=False)
                        + h2.frame(h2.DATA, h2.END_STREAM, 1, b"value"))
        gs.check_eq(f"Content-Length {first} and {second}", connection.answer(1)[0], 400)
        connection.send(h2.request(3, "PUT", "/strict/one", ("content-length", "5"), end=False) + h2.frame(h2.DATA, h2.END_STREAM, 3, b"value"))
        gs.check_eq("the connection goes on", connection.answer(3)[0], 200)
        connection.close()
    gs.check_eq("nothing was stored", server.request("GET", "/strict/two").status, 404)


def early_answer(server):
    """A rejection before the body reaches a client that sends on, and the connection is good for the next request."""
    connection = h2.Connection(server.port)
    connection.send(h2.request(1, "PUT", "/no-such-bucket/k", ("content-length", "3000000"), end=False))
    for _ in range(60):
        connection.send(h2.frame(h2.DATA, 0, 1, bytes(16000)))
    gs.check_eq("the rejection comes", connection.answer(1)[0], 404)
    connection.send(h2.request(3, "GET", "/strict/k"))
    gs.check_eq("the connection goes on", connection.answer(3)[:2], (200, b"value"))
    connection.close()


def streams(server):
    """More streams than were announced are refused, the others answered."""
    connection = h2.Connection(server.port)
    connection.send(b"".join(h2.request(2 * i + 1, "PUT", f"/strict/s{i}", end=False) for i in range(120)))
    connection.send(b"".join(h2.frame(h2.DATA, h2.END_STREAM, 2 * i + 1, b"x") for i in range(100)))
    refused, answered = 0, 0
    while refused + answered < 120 and (got := connection.next()) is not None:
        refused += got[0] == h2.RST_STREAM
        answered += got[0] == h2.HEADERS
    gs.check("100 streams are answered", answered >= 100, f"{answered} {refused}")
    gs.check("those beyond are not", 0 < refused <= 20, f"{answered} {refused}")
    connection.close()


def header_block_too_long(server):
    connection = h2.Connection(server.port)
    connection.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, fields()))
    for _ in range(10):
        connection.send(h2.frame(h2.CONTINUATION, 0, 1, h2.field("x-a", "a" * 8000)))
    gs.check_eq("a header block without end costs the connection", connection.goaway(), CALM)
    gs.check("others are served", alive(server))


def bomb(server):
    """One long field, indexed, and then named thousands of times: a small block that decodes to megabytes."""
    entry = b"\x40" + h2.field("x-bomb", "a" * 3900)[1:]
    connection = h2.Connection(server.port)
    before = server.memory()
    send_block(connection, 1, fields() + entry + b"\xbe" * 30000)
    status, _, error = connection.answer(1)
    gs.check("a block that decodes to much is refused", status == 431 or error is not None, f"{status} {error}")
    gs.check("and costs little memory", server.memory() - before < 32 << 20, server.memory() - before)
    connection.close()
    # The answers, for which there is no window, would keep what was decoded.
    connection = h2.Connection(server.port, settings=[(4, 0)])
    for i in range(50):
        send_block(connection, 2 * i + 1, fields() + (entry if i == 0 else b"") + b"\xbe" * 12000)
    gs.check_eq("thousands of fields cost the connection", connection.goaway(), CALM)
    gs.check("and little memory", server.memory() - before < 8 << 20, server.memory() - before)
    gs.check("others are served", alive(server))
    connection.close()


def main():
    with gs.Server(size="128M") as server:
        server.request("PUT", "/strict")
        gs.check_eq("stored", server.request("PUT", "/strict/k", b"value").status, 200)
        gs.run(*[(lambda test=test: test(server)) for test in
                 (heads, accepted, lengths, two_lengths, early_answer, streams, header_block_too_long, bomb)])
    gs.finish()


main()
