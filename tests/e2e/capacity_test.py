"""A full store: three times its capacity goes in, the disk use stays within the size, what is newest is there (with --retention fifo half
a store of it, by default what the ring for newcomers holds), what is asked for stays, memory is flat, and a slow reader neither gets wrong bytes nor holds anybody up."""

import hashlib
import http.client
import os
import pathlib
import socket
import threading
import time

import gyre_server as gs

SANITIZED = b"__asan_init" in pathlib.Path(gs.GYRE).read_bytes()
MIB = 1 << 20


def value(key, size):
    block = hashlib.sha256(str(key).encode()).digest()
    return (block * (size // 32 + 1))[:size]


def put(conn, path, body):
    conn.request("PUT", path, body=body)
    res = conn.getresponse()
    res.read()
    return res.status


def disk_bytes(path):
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def names_bytes(path):
    """The index of names, which lies beside the store."""
    return sum(os.lstat(os.path.join(path, name)).st_blocks * 512 for name in os.listdir(path) if name.startswith("names.sqlite"))


def three_times_over(sizes, store_mib, retention):
    kept = store_mib * MIB // 2 if retention == "fifo" else store_mib * MIB // 32
    with gs.Server("--retention", retention, size=f"{store_mib}M") as server:
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        put(conn, "/cap", b"")
        written, key, failed, keys, marks = 0, 0, 0, [], []
        while written < 3 * store_mib * MIB:
            size = sizes[key % len(sizes)]
            if put(conn, f"/cap/{key}", value(key, size)) != 200:
                failed += 1
            keys.append((key, size))
            written += size
            if written // (store_mib * MIB // 2) > len(marks):
                marks.append(server.memory())
            key += 1
        gs.check_eq(f"{store_mib} MiB store, sizes {sizes}: every PUT is accepted", failed, 0)
        used = disk_bytes(server.data) - names_bytes(server.data)
        gs.check(f"sizes {sizes}: disk use within the size", used <= store_mib * MIB, f"{used / MIB:.1f} MiB of {store_mib}")
        if not SANITIZED:  # else what is freed is kept for a while
            names, most = names_bytes(server.data), 24 * MIB + 512 * store_mib * MIB // min(sizes)
            gs.check(f"sizes {sizes}: the index of names stays small, whatever was ever stored", names <= most, f"{names / MIB:.1f} of {most / MIB:.1f}")
        gs.check(f"sizes {sizes}: RssAnon is flat", marks[-1] - marks[1] < 8 * MIB, str([mark >> 20 for mark in marks]))
        newest, wrong, missing, seen = keys[-1:0:-1], 0, 0, 0
        for key, size in newest:
            seen += size
            conn.request("GET", f"/cap/{key}")
            res = conn.getresponse()
            body = res.read()
            wrong += res.status == 200 and body != value(key, size)
            missing += res.status != 200 and seen < kept
        gs.check_eq(f"sizes {sizes}, {retention}: no wrong bytes, the newest are there", (wrong, missing), (0, 0))
        conn.request("HEAD", "/cap")
        res = conn.getresponse()
        res.read()
        gs.check_eq("the bucket was never evicted", res.status, 200)
        server.stop()
        check = gs.gyre("check", "--data", server.data)
        server.start()
        gs.check(f"sizes {sizes}: gyre check", check.returncode == 0, check.stdout + check.stderr)


def slow_reader():
    """1 KiB/s on a 64 MiB object while the log wraps twice: the reader's bytes stay what they were, writers go on."""
    with gs.Server(size="256M") as server:
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        put(conn, "/cap", b"")
        body = value("slow", 64 * MIB)
        gs.check_eq("PUT of 64 MiB", put(conn, "/cap/slow", body), 200)
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(b"GET /cap/slow HTTP/1.1\r\nHost: x\r\n\r\n")
        got, stop = bytearray(), threading.Event()

        def trickle():
            while not stop.is_set():
                got.extend(sock.recv(1024))
                time.sleep(1)

        reader = threading.Thread(target=trickle)
        reader.start()
        began, failed, written, key = time.monotonic(), 0, 0, 0
        while written < 512 * MIB:
            failed += put(conn, f"/cap/{key}", value(key, 2 * MIB)) != 200
            written += 2 * MIB
            key += 1
        gs.check_eq("PUTs go on while a slow reader holds 64 MiB", failed, 0)
        gs.check("and at a normal rate", time.monotonic() - began < 120, f"{time.monotonic() - began:.0f} s")
        stop.set()
        reader.join()
        sock.settimeout(60)
        head_end = bytes(got[:4096]).find(b"\r\n\r\n") + 4
        while len(got) < head_end + len(body):
            piece = sock.recv(1 << 20)
            if not piece:
                break
            got.extend(piece)
        gs.check("the slow reader gets the right bytes to the end", bytes(got[head_end:]) == body, f"{len(got) - head_end} of {len(body)} bytes")


def main():
    three_times_over([1000, 4096, 30000, 200000, 3 * MIB], 256, "auto")
    three_times_over([4096], 64, "auto")
    three_times_over([MIB], 64, "fifo")
    slow_reader()
    gs.finish()


if __name__ == "__main__":
    main()
