"""A store that was damaged while stopped: the next start says clearly what is wrong, or serves what is whole and misses the rest. It never
crashes and never serves a wrong byte."""

import hashlib
import pathlib
import shutil
import tempfile

import gyre_server as gs

ASAN = True
OBJECTS = {f"/dam/k{index}": size for index, size in enumerate([0, 1, 200, 4096, 9000, 20000, 65536, 70001, 300000, 1 << 20, 3 << 20] * 3)}
FLIPS = 400 if gs.FULL else 48


def value(path):
    size = OBJECTS[path]
    block = hashlib.sha256(path.encode()).digest()
    return (block * (size // 32 + 1))[:size]


def make(size="64M"):
    """A stopped store with the objects in it."""
    with gs.Server(size=size) as server:
        connection = server.connection()
        server.request("PUT", "/dam", connection=connection)
        for path in OBJECTS:
            server.request("PUT", path, value(path), connection=connection)
    return server.data


def copy_of(data):
    target = pathlib.Path(tempfile.mkdtemp(dir=gs.tmpdir(), prefix="damaged-")) / "data"
    shutil.copytree(data, target, symlinks=True)
    return target


def outcome(data, what):
    """Starts on damaged data and judges: 'refused', or how many objects were served."""
    server = gs.Server(data=data, size="64M", start=False)
    try:
        server.start(limit_s=30)
    except RuntimeError:
        lines = [line for line in server.log().splitlines() if line.strip()]
        gs.check(f"{what}: refused in one clear line", len(lines) == 1 and str(data) in lines[0], server.log()[-600:])
        return "refused"
    connection, whole, wrong = server.connection(), 0, []
    for path in OBJECTS:
        answer = server.request("GET", path, connection=connection)
        if answer.status == 200 and answer.body == value(path):
            whole += 1
        elif answer.status != 404:
            wrong.append(f"{path}: {answer.status}, {len(answer.body)} bytes")
    again = server.request("PUT", "/dam", connection=connection)
    if again.status == 200:
        stored = server.request("PUT", "/dam/new", b"new", connection=connection)
        read = server.request("GET", "/dam/new", connection=connection)
        gs.check(f"{what}: it still stores", (stored.status, read.body) == (200, b"new"), f"{stored} {read}")
    gs.check(f"{what}: right or missing", not wrong, "; ".join(wrong[:4]))
    status = server.stop()
    gs.check(f"{what}: stops in order", status == 0, server.log()[-1000:])
    return whole


def flip(path, offset, mask=0xFF):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))


def flips(data):
    """Single bits anywhere: half of them where there is something, half of those in the structures at the start."""
    for _ in range(FLIPS):
        damaged = copy_of(data)
        file = gs.rng.choice(sorted(path for path in damaged.iterdir() if path.stat().st_size > 0))
        length = file.stat().st_size
        limit = gs.rng.choice([min(length, 16384), min(length, 12 << 20), length])
        offset, mask = gs.rng.randrange(limit), 1 << gs.rng.randrange(8)
        flip(file, offset, mask)
        outcome(damaged, f"flip of {mask:#x} at {offset} of {file.name}")
        shutil.rmtree(damaged.parent)


def body_flip_is_a_miss(data):
    """A flipped byte inside a body is never served; the others are."""
    path = "/dam/k9"
    damaged = copy_of(data)
    needle = value(path)[:4096]
    for file in damaged.iterdir():
        raw = file.read_bytes()
        at = raw.find(needle)
        if at >= 0:
            flip(file, at + 1000)
    served = outcome(damaged, "a flipped byte in a body")
    gs.check("only objects with that byte are missing", served in (len(OBJECTS) - 1, len(OBJECTS) - 3), served)
    check = gs.gyre("check", "--data", damaged)
    gs.check("gyre check ends in order on it", check.returncode in (0, 1), check.stderr)


def file_faults(data):
    stranger = make()
    for name in sorted(path.name for path in data.iterdir()):
        if name.startswith("lock") or "runtime" in name:
            continue
        for what, spoil in (
            ("truncated to half", lambda path: truncate(path, path.stat().st_size // 2)),
            ("truncated to nothing", lambda path: truncate(path, 0)),
            ("one byte short", lambda path: truncate(path, path.stat().st_size - 1)),
            ("one byte longer", lambda path: truncate(path, path.stat().st_size + 1)),
            ("of another store", lambda path, name=name: shutil.copy(stranger / name, path)),
            ("a symbolic link", lambda path: link(path)),
            ("a directory", lambda path: (path.unlink(), path.mkdir())),
            ("missing", lambda path: path.unlink()),
            ("full of noise", lambda path: noise(path)),
        ):
            damaged = copy_of(data)
            spoil(damaged / name)
            result = outcome(damaged, f"{name} {what}")
            if name.startswith("names."):  # the index of names can be made anew
                gs.check_eq(f"{name} {what}: every object is served", result, len(OBJECTS))
            elif what in ("truncated to half", "of another store", "a symbolic link", "a directory"):
                gs.check_eq(f"{name} {what} is refused", result, "refused")
            shutil.rmtree(damaged.parent)


def truncate(path, length):
    with open(path, "r+b") as file:
        file.truncate(length)


def link(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def noise(path):
    with open(path, "r+b") as file:
        file.write(gs.bytes_of(1 << 20, 5))


def main():
    data = make()
    gs.check_eq("undamaged, everything is served", outcome(copy_of(data), "undamaged"), len(OBJECTS))
    gs.run(lambda: body_flip_is_a_miss(data), lambda: file_faults(data), lambda: flips(data))
    gs.finish()


if __name__ == "__main__":
    main()
