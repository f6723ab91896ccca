#!/usr/bin/env python3
"""Reads from a slow disk keep neither hits nor writes waiting.

With --full and a blkio throttle of 50 MB/s: 8 clients read cold objects of 2 MiB, and 4 KiB hits keep 0.8 of their rate with a p99 below 10 ms.
"""
import http.client
import multiprocessing
import os
import pathlib
import time

import gyre_server as gs

ASAN = True
ALONE = True
COLD, HOT = 180 if gs.FULL else 24, 64
SECONDS = 5 if gs.FULL else 1
BODY, SMALL = gs.bytes_of(2 << 20), gs.bytes_of(4096)
GROUP = pathlib.Path("/sys/fs/cgroup/blkio/gyre-cold-test")


def drop_from_memory(server):
    """Has the kernel forget the data files, which nobody maps now."""
    for path in server.data.glob("stripe*"):
        fd = os.open(path, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def throttle(server, rate):
    """Whether the server's reads now have this rate."""
    device = os.stat(server.data).st_dev
    # The limit is the whole disk's, of which the device may be a part.
    node = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    disk = (node / "../dev").resolve() if (node / "partition").exists() else node / "dev"
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "blkio.throttle.read_bps_device").write_text(f"{disk.read_text().strip()} {rate}\n")
        (GROUP / "cgroup.procs").write_text(str(server.process.pid))
        return True
    except OSError as error:
        print(f"no blkio throttle here: {error}")
        return False


def is_group_gone():
    """A process that has ended is in its group a little longer."""
    try:
        GROUP.rmdir()
    except OSError:
        return False
    return True


def hits(server, seconds):
    """(requests a second, p99 in ms) of one client that gets small objects."""
    connection = server.connection()
    times, until = [], time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        response = server.request("GET", f"/cold/hot{len(times) % HOT}", connection=connection)
        times.append(time.monotonic() - began)
        if response.status != 200 or response.body != SMALL:
            gs.check("a hit is right", False, response.status)
    connection.close()
    times.sort()
    return len(times) / seconds, times[int(len(times) * 0.99)] * 1000


def read_cold(port, turn, right):
    """One of the readers, a process of its own: takes the next object that nobody has read, until none is left."""
    os.nice(10)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while True:
        with turn.get_lock():
            index, turn.value = turn.value, turn.value + 1
        if index >= COLD:
            break
        connection.request("GET", f"/cold/big{index}")
        response = connection.getresponse()
        if response.status == 200 and response.read() == BODY:
            with right.get_lock():
                right.value += 1
    connection.close()


def slow_disk(server):
    server.request("PUT", "/cold")
    for i in range(COLD):
        server.request("PUT", f"/cold/big{i}", BODY)
    for i in range(HOT):
        server.request("PUT", f"/cold/hot{i}", SMALL)
    server.stop()
    drop_from_memory(server)
    server.start()
    hits(server, 0.5)
    alone, alone_p99 = hits(server, SECONDS)
    is_slow = throttle(server, 50_000_000)
    turn, right = multiprocessing.Value("i", 0), multiprocessing.Value("i", 0)
    readers = [multiprocessing.Process(target=read_cold, args=(server.port, turn, right)) for _ in range(8)]
    for reader in readers:
        reader.start()
    gs.wait_until(lambda: turn.value >= 8, 60)
    beside, beside_p99 = hits(server, SECONDS)
    began, read = time.monotonic(), turn.value
    gs.check_eq("a write is not kept waiting by reads", server.request("PUT", "/cold/new", SMALL).status, 200)
    write_ms = (time.monotonic() - began) * 1000
    for reader in readers:
        reader.join()
    gs.check_eq("cold objects are read right", right.value, COLD)
    if gs.FULL:  # before and after, as the machine's own pace changes
        alone = (alone + hits(server, SECONDS)[0]) / 2
    print(f"hits {alone:.0f}/s (p99 {alone_p99:.2f} ms) alone, {beside:.0f}/s (p99 {beside_p99:.2f} ms) beside {read} cold reads; "
          f"a PUT {write_ms:.1f} ms; throttled: {is_slow}")
    if gs.FULL and is_slow:
        gs.check("cold reads went on all the time", read < COLD, read)
        gs.check("hits keep 0.8 of their rate", beside >= 0.8 * alone, f"{beside:.0f} {alone:.0f}")
        gs.check("their p99 is below 10 ms", beside_p99 < 10, beside_p99)


def main():
    with gs.Server(size="640M" if gs.FULL else "256M") as server:
        gs.run(lambda: slow_disk(server))
    if GROUP.exists():
        gs.check("the throttled group is empty in the end", gs.wait_until(is_group_gone, 60))
    gs.finish()


main()
