#!/usr/bin/env python3
"""Crowds that do nothing, read slowly or write slowly: memory stays below the formula of server/README.md, and all are served after.

10,000 idle, 2,000 slow readers and 500 slow writers with --full; a tenth by default.
"""
import resource
import socket
import time

import gyre_server as gs

ALONE = True
IDLE, READERS, WRITERS = (10_000, 2_000, 500) if gs.FULL else (1_000, 200, 50)
BODY = gs.bytes_of(1 << 20)
KIB = 1024
# What server/README.md says of clear text: bytes of each connection, of a request that waits for its client, of an upload's buffer.
CONNECTION, REQUEST, UPLOAD = KIB, 6 * KIB, (64 + 12) * KIB
SLACK = 4 << 20


def open_sockets(server, count, say=b"", receive_bytes=0):
    sockets = []
    for i in range(count):
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.bind((f"127.0.{1 + i // 20000}.{1 + i % 200}", 0))
        sock.settimeout(60)
        sock.connect(("127.0.0.1", server.port))
        if say:
            sock.sendall(say)
        sockets.append(sock)
    return sockets


def close_all(sockets):
    for sock in sockets:
        sock.close()


def settled(server):
    """RssAnon once it has stopped growing."""
    last = server.memory()
    for _ in range(100):
        time.sleep(0.2)
        now = server.memory()
        if abs(now - last) < 256 * KIB:
            return now
        last = now
    return last


def grows_by(server, what, count, each, **kind):
    before = settled(server)
    sockets = open_sockets(server, count, **kind)
    grown = settled(server) - before
    bound = count * each + SLACK
    print(f"{count} {what}: {grown // KIB} KiB, {grown / count:.0f} bytes each; bound {bound // KIB} KiB")
    gs.check(f"{count} {what} stay within the formula", grown <= bound, f"{grown} > {bound}")
    gs.check("a client beside them is served", server.request("GET", "/crowd/k").body == BODY)
    return sockets


def read_all(sock):
    """What comes until the announced length is there."""
    data = b""
    while b"\r\n\r\n" not in data or len(data) < data.index(b"\r\n\r\n") + 4 + len(BODY):
        more = sock.recv(1 << 20)
        if not more:
            break
        data += more
    return data[data.index(b"\r\n\r\n") + 4:]


def crowds(server):
    idle = grows_by(server, "idle connections", IDLE, CONNECTION, say=b"HEAD /crowd/none HTTP/1.1\r\nHost: a\r\n\r\n")
    for sock in idle:
        gs.check("it has asked before", sock.recv(4096).startswith(b"HTTP/1.1 404 "))
    readers = grows_by(server, "slow readers", READERS, CONNECTION + REQUEST, receive_bytes=4096,
                       say=b"GET /crowd/k HTTP/1.1\r\nHost: a\r\n\r\n")
    writers = grows_by(server, "slow writers", WRITERS, CONNECTION + REQUEST + UPLOAD,
                       say=b"PUT /crowd/w HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nab")
    for sock in readers[:: max(1, READERS // 20)]:
        gs.check("a slow reader gets its bytes", read_all(sock) == BODY)
    for sock in writers[:: max(1, WRITERS // 20)]:
        sock.sendall(bytes(998))
        gs.check("a slow writer is answered", sock.recv(4096).startswith(b"HTTP/1.1 200 "))
    for sock in idle[:: max(1, IDLE // 20)]:
        sock.sendall(b"GET /crowd/none HTTP/1.1\r\nHost: a\r\n\r\n")
        gs.check("an idle connection is served", sock.recv(4096).startswith(b"HTTP/1.1 404 "))
    close_all(idle + readers + writers)
    gs.check("all are gone", gs.wait_until(lambda: "gyre_connections_open 1\n" in metrics(server), 60))
    gs.check("buffers are free", "gyre_buffer_bytes 0\n" in metrics(server))
    gs.check("pins are given up", "gyre_store_pins 0\n" in metrics(server))


def metrics(server):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(server.data / "admin.sock"))
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        text = b""
        while chunk := sock.recv(65536):
            text += chunk
    return text.decode()


def big_put_over_h2(server):
    """A GiB (64 MiB by default) through HTTP/2 passes by in buffers."""
    length = (1 << 30) if gs.FULL else (64 << 20)
    path = gs.tmpdir() / "big"
    with open(path, "wb") as file:
        for i in range(length >> 20):
            file.write(BODY if i % 2 else bytes(1 << 20))
    before = settled(server)
    peak = [before]
    upload = gs.subprocess.Popen(["curl", "-sS", "--http2-prior-knowledge", "-T", str(path), "-o", "/dev/null", "-w", "%{http_code}",
                                  server.url + "/crowd/big"], stdout=gs.subprocess.PIPE)
    while upload.poll() is None:
        peak.append(server.memory())
        time.sleep(0.01)
    gs.check_eq("the upload is stored", upload.stdout.read(), b"200")
    print(f"{length >> 20} MiB over h2: RssAnon grows by {(max(peak) - before) >> 10} KiB")
    gs.check("it adds less than 64 MiB", max(peak) - before < 64 << 20, max(peak) - before)
    path.unlink()


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with gs.Server("--max-connections", "14000", "--idle-timeout", "600s", "--body-timeout", "600s", "--send-timeout", "600s",
                   size="4G" if gs.FULL else "512M") as server:
        server.request("PUT", "/crowd")
        gs.check_eq("stored", server.request("PUT", "/crowd/k", BODY).status, 200)
        gs.run(lambda: crowds(server), lambda: big_put_over_h2(server))
    gs.finish()


main()
