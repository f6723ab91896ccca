#!/usr/bin/env python3
"""The data file is cut short under a server that sends from it: no client gets wrong bytes, and the server lives."""
import http.client
import socket
import ssl
import subprocess
import threading
import time

import gyre_server as gs

ASAN = True
OBJECTS = {f"/cut/o{i}": gs.bytes_of((3000, 70_000, 500_000, 2_100_000)[i % 4], seed=i) for i in range(48)}


def fetch_http(connection, path):
    """The body as far as it came, and whether it is complete; None when there was no object to send."""
    connection.request("GET", path)
    response = connection.getresponse()
    try:
        body = response.read()
    except http.client.IncompleteRead as error:
        return error.partial, False
    if response.status != 200:
        return None, True
    return body, True


class Reader(threading.Thread):
    """Reads objects until told to stop; counts whole ones, cut ones, missing ones and wrong ones."""

    def __init__(self, open_connection, seed):
        super().__init__(daemon=True)
        self.open_connection, self.paths = open_connection, sorted(OBJECTS)
        self.paths = self.paths[seed % 7:] + self.paths[:seed % 7]
        self.whole = self.cut = self.missing = 0
        self.wrong = []
        self.stop = threading.Event()

    def run(self):
        connection = None
        while not self.stop.is_set():
            for path in self.paths:
                if connection is None:
                    connection = self.open_connection()
                try:
                    body, complete = fetch_http(connection, path)
                except (OSError, http.client.HTTPException, ssl.SSLError):
                    self.cut += 1
                    connection.close()
                    connection = None
                    continue
                if body is None:
                    self.missing += 1
                elif complete and body == OBJECTS[path]:
                    self.whole += 1
                elif not complete and OBJECTS[path].startswith(body):
                    self.cut += 1
                    connection = None
                else:
                    self.wrong.append((path, complete, len(body)))
        if connection is not None:
            connection.close()


def fetch_h2(server, paths):
    """Asks for all over one h2c connection; (path, body, complete) by curl's account."""
    got = []
    for path in paths:
        result = gs.curl("--http2-prior-knowledge", "-w", "%{stderr}%{http_code}", "-o", "-", server.url + path)
        status = result.stderr[-3:]
        got.append((path, result.stdout, result.returncode == 0, status))
    return got


def truncated_under_load(server):
    server.request("PUT", "/cut")
    for path, body in OBJECTS.items():
        gs.check_eq("stored", server.request("PUT", path, body).status, 200)
    context = ssl._create_unverified_context()
    readers = [Reader(server.connection, i) for i in range(3)]
    readers += [Reader(lambda: http.client.HTTPSConnection("127.0.0.1", server.tls_port, timeout=60, context=context), i)
                for i in range(3)]
    for reader in readers:
        reader.start()
    gs.check("all readers read", gs.wait_until(lambda: all(reader.whole > 50 for reader in readers), 120))
    h2_before = fetch_h2(server, sorted(OBJECTS)[:8])
    gs.check("h2 reads whole objects", all(ok and body == OBJECTS[path] for path, body, ok, _ in h2_before))
    data = next(server.data.glob("stripe*"))
    before = [reader.whole for reader in readers]
    with open(data, "r+b") as file:
        file.truncate(10 << 20)
    h2_after = []
    for _ in range(2):
        h2_after += fetch_h2(server, sorted(OBJECTS)[::3])
    time.sleep(1)
    for reader in readers:
        reader.stop.set()
    for reader in readers:
        reader.join()
    gs.check("the server lives", server.process.poll() is None, server.log()[-2000:])
    for reader in readers:
        gs.check("no reader got wrong bytes", not reader.wrong, reader.wrong[:3])
    gs.check("some objects are lost", sum(reader.cut + reader.missing for reader in readers) > 0)
    gs.check("others are still served", sum(reader.whole for reader in readers) > sum(before))
    for path, body, ok, status in h2_after:
        gs.check("no wrong bytes over h2", not ok or status != b"200" or body == OBJECTS[path], f"{path} {len(body)} {status}")
        gs.check("what was cut over h2 was right so far", ok or OBJECTS[path].startswith(body) or status != b"200", path)
    print([(reader.whole, reader.cut, reader.missing) for reader in readers])


def main():
    with gs.Server(tls=True, size="128M") as server:
        gs.run(lambda: truncated_under_load(server))
    gs.finish()


main()
