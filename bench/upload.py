#!/usr/bin/env python3
"""PUTs over h2c against HTTP/1.1, both by a client that only sends bytes it has ready and waits for the window where it must.

  bench/upload.py GYRE [--mib N] [--rounds N] [--puts N] [--etag md5|opaque] [--json]

Each round stores --puts objects (4) of --mib MiB (32) over each protocol on one connection, in alternating order. Printed: medians of MiB/s
with minimum and maximum, the ratio of each round's pair, and the server's CPU seconds for a GiB.
"""
import argparse
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
FRAME = 16384
SEND = 256 << 10  # bytes handed to the kernel at a time


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def connect(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Http1:
    def __init__(self, port, body):
        self.sock, self.body = connect(port), memoryview(body)

    def put(self, path):
        self.sock.sendall(b"PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (path, len(self.body)))
        for at in range(0, len(self.body), SEND):
            self.sock.sendall(self.body[at:at + SEND])
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.sock.recv(65536)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(answer)


class Http2:
    """Frames are built beforehand; only the stream's number, which they all carry, is 1 on a connection of its own for each PUT."""

    def __init__(self, port, body):
        self.port, self.length = port, len(body)
        pieces = [body[at:at + FRAME] for at in range(0, len(body), FRAME)]
        self.frames = memoryview(b"".join(frame(DATA, i == len(pieces) - 1, 1, piece) for i, piece in enumerate(pieces)))

    def start(self):
        self.sock, self.pending, self.windows, self.status = connect(self.port), b"", [65535, 65535], None
        self.sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        while self.windows[1] == 65535:  # until the server's settings are known
            self.listen()

    def listen(self):
        self.pending += self.sock.recv(65536)
        while len(self.pending) >= 9 and len(self.pending) >= 9 + int.from_bytes(self.pending[:3], "big"):
            length = int.from_bytes(self.pending[:3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.pending[3:9])
            payload, self.pending = self.pending[9:9 + length], self.pending[9 + length:]
            if kind == WINDOW_UPDATE:
                self.windows[stream] += int.from_bytes(payload, "big")
            elif kind == SETTINGS and not flags & 1:
                for at in range(0, length, 6):
                    name, value = struct.unpack(">HI", payload[at:at + 6])
                    if name == 4:
                        self.windows[1] += value - 65535
            elif kind == HEADERS:
                self.status = payload[0]
            elif kind in (RST_STREAM, GOAWAY):
                raise SystemExit(f"frame {kind}: {payload}, status {self.status}")

    def put(self, path):
        head = b"\x83\x86" + field(b":path", path) + field(b":authority", b"a") + field(b"content-length", str(self.length).encode())
        head = head.replace(b"\x83", field(b":method", b"PUT"), 1)
        self.sock.sendall(frame(HEADERS, 4, 1, head))
        sent = at = 0
        self.sock.setblocking(False)
        while sent < self.length:
            may = min(*self.windows, SEND, self.length - sent) // FRAME * FRAME or min(*self.windows, self.length - sent)
            if may < min(FRAME, self.length - sent):
                self.sock.setblocking(True)
                self.listen()
                self.sock.setblocking(False)
                continue
            try:
                self.listen()
            except BlockingIOError:
                pass
            n = may + (may + FRAME - 1) // FRAME * 9
            self.sock.setblocking(True)
            self.sock.sendall(self.frames[at:at + n])
            self.sock.setblocking(False)
            self.windows = [window - may for window in self.windows]
            sent, at = sent + may, at + n
        self.sock.setblocking(True)
        while self.status is None:
            self.listen()
        if self.status != 0x88:
            raise SystemExit(f"status {self.status:#x}")
        self.sock.close()


def serve(gyre, folder, size, etag):
    log = open(folder / "log", "wb")
    server = subprocess.Popen([gyre, "serve", "--listen", "127.0.0.1:0", "--data", str(folder / "data"), "--size", size, "--etag", etag],
                              stdout=subprocess.PIPE, stderr=log, text=True)
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)", server.stdout.readline()).group(1))
    return server, port


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(make, server, puts, start):
    """(MiB/s, CPU seconds a GiB)."""
    client, busy = make(), 0.0
    cpu = cpu_s(server.pid)
    for i in range(puts):
        if start:
            client.start()
        began = time.monotonic()
        client.put(b"/upload/k%d" % i)
        busy += time.monotonic() - began
    gib = puts * client_bytes / (1 << 30)
    return gib * 1024 / busy, (cpu_s(server.pid) - cpu) / gib


def show(name, values):
    print(f"{name}: {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")


parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("gyre")
parser.add_argument("--mib", type=int, default=32)
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--puts", type=int, default=4)
parser.add_argument("--etag", default="opaque")
parser.add_argument("--json", action="store_true")
options = parser.parse_args()
client_bytes = options.mib << 20
body = os.urandom(client_bytes)
with tempfile.TemporaryDirectory() as name:
    server, port = serve(options.gyre, Path(name), "1G", options.etag)
    try:
        sock = connect(port)
        sock.sendall(b"PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        while sock.recv(65536):
            pass
        makes = {"h1": (lambda: Http1(port, body), False), "h2c": (lambda: Http2(port, body), True)}
        clients = {key: (make(), start) for key, (make, start) in makes.items()}
        results = {"h1": [], "h2c": []}
        for i in range(options.rounds + 1):
            for key in (("h1", "h2c") if i % 2 else ("h2c", "h1")):
                client, start = clients[key]
                rate = run(lambda: client, server, options.puts, start)
                if i > 0:  # the first round fills the store's pages
                    results[key].append(rate)
    finally:
        server.terminate()
        server.wait()
ratios = [b[0] / a[0] for a, b in zip(results["h1"], results["h2c"])]
if options.json:
    print(json.dumps({"rates": results, "ratios": ratios}))
else:
    for key, values in results.items():
        show(f"{key} MiB/s", [value[0] for value in values])
        show(f"{key} CPU s/GiB", [value[1] for value in values])
    show("h2c / h1", ratios)
