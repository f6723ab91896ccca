"""All that clients do at once, for a while: objects stored, read, cut up, deleted and given up over HTTP/1.1, HTTP/2 and TLS, clients that
are killed, two reloads and one restart under load. No byte is wrong, no request fails, and nothing grows."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import gyre_server as gs
import lifecycle_test as life

SECONDS = 1800 if gs.FULL else 120
LIMIT_S = 120
# What a quiet server may have more of at the end than at its first quiet moment. Three threads read what is cold, from the first such read on.
GROWTH = {"threads": 3, "open_files": 2, "anonymous_bytes": 32 << 20, "store_reserved_bytes": 8 << 20}
# A machine that stands still for a while must not make clients look slow.
PATIENT = {f"{what}-timeout": "120s" for what in ("handshake", "head", "body", "send")}
IDLE = {"connections_open": 1, "workers_busy": 1, "buffer_bytes": 0, "jobs_queued": 0, "store_pins": 0}  # 1: who asks


def body_of(key, version, length):
    """Bytes that say which object and version they are, so that any mixture shows."""
    head = f"{key}#{version}#{length}#".encode()
    return (head + gs.bytes_of(max(0, length - len(head)), f"{key}#{version}"))[:length]


class Counts:
    def __init__(self):
        self.lock = threading.Lock()
        self.done, self.problems, self.evicted, self.closes = {}, [], 0, 0

    def did(self, what):
        with self.lock:
            self.done[what] = self.done.get(what, 0) + 1

    def problem(self, text):
        with self.lock:
            self.problems.append(f"{time.strftime('%H:%M:%S')} {text}")


class Gate:
    """Lets clients go on, or waits until all of them have let go of their connections."""

    def __init__(self):
        self.condition = threading.Condition()
        self.clients = self.waiting = 0
        self.is_closed = self.is_over = False

    def pass_by(self, let_go):
        """False when it is over."""
        with self.condition:
            if self.is_closed and not self.is_over:
                let_go()
                self.waiting += 1
                self.condition.notify_all()
                self.condition.wait_for(lambda: not self.is_closed or self.is_over)
                self.waiting -= 1
            return not self.is_over

    def close(self):
        with self.condition:
            self.is_closed = True
            gs.check("clients pause", self.condition.wait_for(lambda: self.waiting == self.clients, LIMIT_S))

    def open(self, is_over=False):
        with self.condition:
            self.is_closed, self.is_over = False, is_over
            self.condition.notify_all()


class Client(threading.Thread):
    """One client; `step` does one thing."""

    def __init__(self, world, number):
        super().__init__()
        self.world, self.number = world, number
        self.rng = gs.random.Random(f"{gs.SEED}/{number}")
        self.held = {}  # key -> version and length last stored
        self.versions = 0
        world.gate.clients += 1

    def run(self):
        while self.world.gate.pass_by(self.let_go):
            try:
                self.step()
            except Exception as error:
                self.world.counts.problem(f"{type(self).__name__} {self.number}: {error!r}")
                self.let_go()
                time.sleep(0.2)
        self.let_go()

    def let_go(self):
        pass

    def pick(self):
        key = f"{type(self).__name__.lower()}-{self.number}-{self.rng.randrange(20)}"
        length = self.rng.choice((0, 1, 100, 4096, 4096, 65536, 70000, 300000, 1 << 20, 3 << 20))
        self.versions += 1
        return key, self.versions, length

    def expect(self, what, key, got, start=0, end=None):
        version, length = self.held[key]
        want = body_of(key, version, length)[start:end]
        if got != want:
            self.world.counts.problem(f"{what} {key}: wrong bytes: {got[:60]!r}... ({len(got)}), not {want[:60]!r}... ({len(want)})")

    def lost(self, key):
        """A cache may forget what was stored, but not bring back what was deleted."""
        del self.held[key]
        with self.world.counts.lock:
            self.world.counts.evicted += 1


class Plain(Client):
    """HTTP/1.1 over a kept connection."""

    connection = None

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=LIMIT_S)

    def let_go(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def ask(self, method, key, body=None, headers=None):
        self.connection = self.connection or self.connect()
        self.connection.request(method, f"/soak/{key}", body, headers or {})
        response = self.connection.getresponse()
        got = response.read()
        if response.getheader("connection") == "close":
            with self.world.counts.lock:
                self.world.counts.closes += 1
            self.let_go()
        return response.status, got

    def step(self):
        key, version, length = self.pick()
        what = self.rng.choice(("put", "put", "get", "get", "get", "range", "head", "delete"))
        if key not in self.held and what != "delete":
            what = "put"
        getattr(self, what)(key, version, length)
        self.world.counts.did(f"{type(self).__name__} {what}")

    def need(self, what, key, status, wanted):
        if status != wanted:
            raise RuntimeError(f"{what} {key}: {status}, not {wanted}")

    def put(self, key, version, length):
        body = body_of(key, version, length)
        pieces = iter([body[:1000], body[1000:]]) if self.rng.random() < 0.3 and length > 1000 else body
        self.held.pop(key, None)
        status, _ = self.ask("PUT", key, pieces)
        self.need("put", key, status, 200)
        self.held[key] = (version, length)

    def get(self, key, _version, _length):
        status, got = self.ask("GET", key)
        if status == 404:
            self.lost(key)
            return
        self.need("get", key, status, 200)
        self.expect("get", key, got)

    def range(self, key, _version, _length):
        length = self.held[key][1]
        if length == 0:
            return
        start = self.rng.randrange(length)
        end = self.rng.randrange(start, length)
        status, got = self.ask("GET", key, headers={"Range": f"bytes={start}-{end}"})
        if status == 404:
            self.lost(key)
            return
        self.need("range", key, status, 206)
        self.expect("range", key, got, start, end + 1)

    def head(self, key, _version, _length):
        status, _ = self.ask("HEAD", key)
        if status == 404:
            self.lost(key)
        else:
            self.need("head", key, status, 200)

    def delete(self, key, _version, _length):
        status, _ = self.ask("DELETE", key)
        self.need("delete", key, status, 204)
        self.held.pop(key, None)
        status, _ = self.ask("GET", key)
        self.need("get after delete", key, status, 404)


class Tls(Plain):
    """The same through TLS."""

    def connect(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection("127.0.0.1", self.world.tls_port, timeout=LIMIT_S, context=context)


class H2(Client):
    """HTTP/2 by curl. Over TLS several requests on a connection; in clear text Debian's curl (7.88) cannot use one again."""

    def __init__(self, world, number):
        super().__init__(world, number)
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=gs.tmpdir()))

    def curl(self, *arguments):
        result = subprocess.run(["curl", "-sSk", "--fail-early", "--max-time", str(LIMIT_S), *arguments], capture_output=True, timeout=LIMIT_S + 10,
                                stdin=subprocess.DEVNULL)
        if result.returncode:
            raise RuntimeError(f"curl: {result.returncode} {result.stderr[-300:]}")
        return result.stdout.decode().split()

    def step(self):
        secure = self.rng.random() < 0.5
        flags = ["--http2"] if secure else ["--http2-prior-knowledge"]
        base = f"https://127.0.0.1:{self.world.tls_port}/soak" if secure else f"http://127.0.0.1:{self.world.port}/soak"
        stored, arguments = [], []
        for index in range(3 if secure else 1):
            key, version, length = self.pick()
            self.held.pop(key, None)
            if key in [row[0] for row in stored]:
                continue
            path = self.folder / f"up-{index}"
            path.write_bytes(body_of(key, version, length))
            arguments += (["--next"] if arguments else []) + [*flags, "-sSk", "-T", str(path), "-o", "/dev/null", "-w", "%{http_code} ", f"{base}/{key}"]
            stored.append((key, version, length))
        statuses = self.curl(*arguments)
        if statuses != ["200"] * len(stored):
            raise RuntimeError(f"PUT over HTTP/2: {statuses}")
        for key, version, length in stored:
            self.held[key] = (version, length)
        keys = self.rng.sample(sorted(self.held), min(6 if secure else 1, len(self.held)))
        wanted = []
        for index, key in enumerate(keys):
            wanted += [f"{base}/{key}", "-o", str(self.folder / f"down-{index}")]
        statuses = self.curl(*flags, "-Z", "-w", "%{http_code}:%{filename_effective} ", *wanted)
        found = {row.partition(":")[2]: row.partition(":")[0] for row in statuses}
        for index, key in enumerate(keys):
            path = self.folder / f"down-{index}"
            status = found.get(str(path))
            if status == "404":
                self.lost(key)
            elif status != "200":
                raise RuntimeError(f"GET over HTTP/2: {status} of {statuses}")
            else:
                self.expect("GET over HTTP/2", key, path.read_bytes() if path.exists() else b"")
            path.unlink(missing_ok=True)
        self.world.counts.did("H2 put" + (" tls" if secure else ""))
        self.world.counts.did("H2 get" + (" tls" if secure else ""))


class Rude(Client):
    """Gives up in the middle: resets, half requests, curl processes that are killed."""

    def step(self):
        what = self.rng.choice(("reset", "half", "half_chunked", "kill", "kill", "silent"))
        getattr(self, what)()
        self.world.counts.did(f"Rude {what}")

    def open(self, data):
        sock = socket.create_connection(("127.0.0.1", self.world.port), timeout=LIMIT_S)
        sock.sendall(data)
        return sock

    def reset(self):
        sock = self.open(b"GET /soak/big HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.recv(self.rng.choice((1, 1000, 100000)))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def half(self):
        self.open(b"PUT /soak/half HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n" + bytes(self.rng.randrange(300000))).close()

    def half_chunked(self):
        self.open(b"PUT /soak/half HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n" + bytes(self.rng.randrange(60000))).close()

    def silent(self):
        sock = self.open(b"")
        time.sleep(self.rng.random() * 0.1)
        sock.close()

    def kill(self):
        port = self.world.port
        flags = self.rng.choice((["--http2-prior-knowledge", f"http://127.0.0.1:{port}"], ["-k", f"https://127.0.0.1:{self.world.tls_port}"],
                                 [f"http://127.0.0.1:{port}"]))
        doing = self.rng.choice((["-T", str(self.world.big_path), "--limit-rate", "8M"], ["-o", "/dev/null", "--limit-rate", "8M"]))
        target = flags[-1] + ("/soak/half" if doing[0] == "-T" else "/soak/big")
        process = subprocess.Popen(["curl", "-s", *flags[:-1], *doing, target], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(self.rng.random() * 0.4)
        process.kill()
        process.wait()


class World:
    """The server, its clients, and what both have come to."""

    def __init__(self):
        self.counts, self.gate = Counts(), Gate()
        tmp = pathlib.Path(tempfile.mkdtemp(dir=gs.tmpdir()))
        self.config, self.big_path = tmp / "gyre.json", tmp / "big"
        self.big_path.write_bytes(gs.bytes_of(8 << 20, "big"))
        self.log = tmp / "access.log"
        self.configure()
        self.server = gs.Server("--config", self.config, "--drain-timeout", "60s", size="512M", tls=True)
        self.port, self.tls_port = self.server.port, self.server.tls_port
        self.pid = self.server.process.pid
        self.quiet = {}  # process -> numbers of its quiet moments
        self.server.request("PUT", "/soak")
        self.server.request("PUT", "/soak/big", self.big_path.read_bytes())

    def configure(self, **changes):
        self.config.write_text(json.dumps({"access-log": str(self.log), "access-log-format": "json", **PATIENT, **changes}))

    def numbers(self):
        document = json.loads(life.admin(self.server, "/status")[1])
        return {**document["numbers"], **{f"store_{name}": value for name, value in document["store"].items()}}

    def rest(self, name):
        """What the server has when nobody wants anything of it."""
        self.gate.close()
        numbers = {}

        def is_idle():
            numbers.update(self.numbers())
            return all(numbers[key] <= most for key, most in IDLE.items())

        gs.check(f"{name}: nothing is held when all is quiet", gs.wait_until(is_idle, LIMIT_S, 0.1),
                 {key: numbers.get(key) for key in IDLE})
        print(f"{name}: process {self.pid}: " + ", ".join(f"{key} {numbers[key]}" for key in (*GROWTH, "requests", "requests_aborted")), flush=True)
        self.quiet.setdefault(self.pid, []).append(numbers)
        self.gate.open()

    def work(self, seconds):
        time.sleep(seconds)

    def reload(self, **changes):
        before = len(self.server.log())
        self.configure(**changes)
        os.kill(self.pid, signal.SIGHUP)
        gs.check("a reload is taken", gs.wait_until(lambda: "is in force" in self.server.log()[before:], LIMIT_S), self.server.log()[-1000:])

    def restart(self):
        former = self.pid
        os.kill(former, signal.SIGUSR2)
        self.pid = life.wait_for_pid(self.server, former)
        gs.check("the former process ends", life.ends(former, LIMIT_S), self.server.log()[-2000:])
        gs.check_eq("and well", self.server.process.wait(LIMIT_S), 0)

    def finish(self):
        self.server._ended()
        os.kill(self.pid, signal.SIGTERM)
        gs.check("the last process ends", life.ends(self.pid, LIMIT_S), self.server.log()[-2000:])
        gs.check("nothing alarming was said", gs.ALARMS.search(self.server.log()) is None, self.server.log()[-3000:])


def judge(world):
    counts = world.counts
    print(", ".join(f"{what} {n}" for what, n in sorted(counts.done.items())) + f"; forgotten {counts.evicted}, asked to leave {counts.closes}", flush=True)
    gs.check("no problem", not counts.problems, f"{len(counts.problems)}:\n" + "\n".join(counts.problems[:20]))
    for what in ("Plain put", "Plain get", "Plain range", "Plain delete", "Tls put", "Tls get", "H2 put", "H2 get tls", "Rude kill", "Rude reset"):
        gs.check(f"there was {what}", counts.done.get(what, 0) > 0)
    for pid, moments in world.quiet.items():
        for name, most in GROWTH.items():
            grown = moments[-1][name] - moments[0][name]
            gs.check(f"process {pid}: {name} does not grow", grown <= most, f"{moments[0][name]} -> {moments[-1][name]}")
    text = world.log.read_text()
    gs.check("every line of the access log is whole", all(re.fullmatch(r"\{.*\}", line) for line in text.splitlines()))


def soak():
    world = World()
    clients = [*(Plain(world, n) for n in range(3)), *(Tls(world, n) for n in range(2)), *(H2(world, n) for n in range(2)), Rude(world, 0)]
    for client in clients:
        client.start()
    share = SECONDS / 7
    try:
        world.work(share)
        world.rest("warm")
        world.work(share)
        world.reload(**{"idle-timeout": "50s", "max-connections": 5000})
        world.work(share)
        world.reload()
        world.work(share)
        world.rest("after two reloads")
        world.work(share / 2)
        world.restart()
        world.work(share)
        world.rest("after the restart")
        world.work(1.5 * share)
        world.rest("at the end")
    finally:
        world.gate.open(is_over=True)
        for client in clients:
            client.join()
    judge(world)
    world.finish()
    check = gs.gyre("check", "--data", world.server.data, "--bodies", limit_s=300)
    gs.check_eq("the store is sound", check.returncode, 0)


def main():
    gs.run(soak)
    gs.finish()


if __name__ == "__main__":
    main()
