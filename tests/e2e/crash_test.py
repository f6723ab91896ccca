"""Stops, starts and kills: what was acknowledged is there after a restart, what was cut off is the old object, the new one, or absent."""

import hashlib
import http.client
import os
import random
import signal
import subprocess
import threading
import time

import gyre_server as gs

KEYS = 20


def value(key, version, size):
    """Bytes that name their key and version, so that a mixture of two writes cannot pass for either."""
    block = hashlib.sha256(f"{key}/{version}".encode()).digest()
    return (block * (size // 32 + 1))[:size]


def size_of(rng_seed, key, version):
    rng = random.Random(f"{rng_seed}/{key}/{version}")
    return rng.choice([0, 100, 5000, 70000, 300000, 3 << 20])


def put(port, key, body):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    conn.request("PUT", f"/crash/k{key}", body=body)
    res = conn.getresponse()
    res.read()
    conn.close()
    return res.status


def get(conn, key):
    conn.request("GET", f"/crash/k{key}")
    res = conn.getresponse()
    return res.status, res.read()


def restart_keeps_everything():
    with gs.Server(size="1G") as server:
        put_bucket(server)
        for key in range(200):
            put(server.port, key, value(key, 0, size_of(1, key, 0)))
        seconds = 60
        for _ in range(3):  # a busy machine may be slow once
            server.stop()
            began = time.monotonic()
            server.start()
            seconds = min(seconds, time.monotonic() - began)
        gs.check("a clean start reads no bodies and is quick", seconds < 5, f"{seconds:.1f} s")
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        lost = [key for key in range(200) if get(conn, key) != (200, value(key, 0, size_of(1, key, 0)))]
        gs.check_eq("every object is there after stop and start", lost, [])
        server.kill()
        server.start()
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        lost = [key for key in range(200) if get(conn, key) != (200, value(key, 0, size_of(1, key, 0)))]
        gs.check_eq("every acknowledged object is there after kill -9 and start", lost, [])


def put_bucket(server):
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    conn.request("PUT", "/crash")
    conn.getresponse().read()
    conn.close()


def kill_during_uploads(seed, repetitions, size, is_full=False):
    """kill -9 while twenty uploads run, over and over on one store. Where the log goes round (is_full), any object may have been evicted,
    too; where it does not, none may be missing."""
    rng = random.Random(seed)
    stored = {key: {None} for key in range(KEYS)}  # key -> versions it may hold; None: absent
    version = 0
    bad = []
    with gs.Server(size=size) as server:
        put_bucket(server)
        for repetition in range(repetitions):
            version += 1

            def upload(key, version=version):
                body = value(key, version, size_of(seed, key, version))
                stored[key].add(version)
                try:
                    if put(server.port, key, body) == 200:
                        stored[key] = {version}
                except (OSError, http.client.HTTPException):
                    pass

            threads = [threading.Thread(target=upload, args=(key,)) for key in range(KEYS)]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.0, 0.06))
            server.kill()
            for thread in threads:
                thread.join()
            if repetition % 10 == 9:
                check = gs.gyre("check", "--data", server.data)
                if check.returncode != 0:
                    bad.append(f"repetition {repetition}: check: {check.stdout}{check.stderr}")
            server.start()
            conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
            for key in range(KEYS):
                status, body = get(conn, key)
                held = [v for v in stored[key] if v is not None and status == 200 and body == value(key, v, size_of(seed, key, v))]
                if status == 404 and (is_full or None in stored[key]):
                    held = [None]
                if not held:
                    bad.append(f"repetition {repetition}, key {key}: status {status}, {len(body)} bytes, allowed {stored[key]}")
                else:
                    stored[key] = {held[0]}
    gs.check(f"{repetitions} kills during {KEYS} uploads into {size} (seed {seed})", not bad, "; ".join(bad[:3]))


def two_servers_share_a_store():
    """What one stores or deletes the other sees; one is killed, the other goes on; reset is refused beside it."""
    with gs.Server(size="128M") as server:
        put_bucket(server)
        with gs.Server(size="128M", data=server.data) as other:
            put(server.port, 1, value(1, 1, 300000))
            put(other.port, 2, value(2, 1, 5000))
            here = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            there = http.client.HTTPConnection("127.0.0.1", other.port, timeout=20)
            gs.check("the other's object is found", get(there, 1) == (200, value(1, 1, 300000)) and get(here, 2) == (200, value(2, 1, 5000)))
            reset = gs.gyre("serve", "--data", server.data, "--reset", "--listen", "127.0.0.1:0", limit_s=20)
            gs.check("a reset beside it is refused in one line", reset.returncode == 1 and "in use" in reset.stderr and reset.stderr.count("\n") == 1, reset.stderr)
            other.kill()
            put(server.port, 3, value(3, 1, 70000))
            gs.check("what the killed one stored is there", get(here, 2) == (200, value(2, 1, 5000)))
        gs.check("and the survivor goes on", get(here, 3) == (200, value(3, 1, 70000)))
        check = gs.gyre("check", "--data", server.data)
        gs.check("the store is sound", check.returncode == 0, check.stdout + check.stderr)


def ended(server, limit_s):
    """Waits for a server that was told to stop: its exit status, or None."""
    if not gs.wait_until(lambda: server.process.poll() is not None, limit_s):
        return None
    status = server.process.returncode
    server.kill()
    return status


def signals():
    """SIGTERM lets a running request finish and then exits 0; a second one ends at once."""
    with gs.Server(size="256M") as server:
        put_bucket(server)
        body = value(1, 1, 8 << 20)
        put(server.port, 1, body)
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        conn.request("GET", "/crash/k1")
        res = conn.getresponse()
        first = res.read(1000)
        os.kill(server.process.pid, signal.SIGTERM)
        time.sleep(0.3)
        gs.check("a response in flight is finished after SIGTERM", first + res.read() == body)
        gs.check_eq("and the exit status is 0", ended(server, 60), 0)
        server.start()
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        gs.check("what was stored is there", get(conn, 1) == (200, body))
        conn.request("GET", "/crash/k1")
        conn.getresponse().read(10)
        os.kill(server.process.pid, signal.SIGTERM)
        time.sleep(0.2)
        os.kill(server.process.pid, signal.SIGTERM)
        began = time.monotonic()
        ended(server, 60)
        gs.check("a second SIGTERM ends before the requests may", time.monotonic() - began < 20)
        server.start()


def main():
    restart_keeps_everything()
    two_servers_share_a_store()
    signals()
    kill_during_uploads(gs.SEED, 100 if gs.FULL else 50, "4G")
    kill_during_uploads(gs.SEED, 100 if gs.FULL else 40, "128M", is_full=True)
    gs.finish()


if __name__ == "__main__":
    main()
