#!/usr/bin/env python3
"""One attack after another beside a normal client: it is served right, memory stays within bounds, a counter names the attack.

With --full each attack is set, five times in turn, against plain requests that cost the server as much CPU: the normal client's p99
(median of the five) may be twice as long. Attackers and plain load are processes of their own, so that the client measures the server.
"""
import http.client
import os
import re
import select
import socket
import ssl
import statistics
import struct
import threading
import time
import traceback

import gyre_server as gs
import h2_raw as h2

ASAN = True
ALONE = True
BODY = gs.bytes_of(4096, seed="attack")
ATTACKER, CLIENT = "127.0.0.1", "127.0.0.2"
MEMORY_BOUND = (192 if "asan" not in gs.GYRE else 1024) << 20  # buffers of 64M, 600 connections with TLS state and heads, and the allocator's slack; a sanitizer's are its own
SECONDS = 1.5 if gs.FULL else 0.7
ROUNDS = 5 if gs.FULL else 1
SLACK_MS = 1  # what the machine's own pauses may add to the median of some hundred requests' p99


# ---- What the server says of itself ----

def counters(server):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(server.data / "admin.sock"))
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        text = b""
        while chunk := sock.recv(65536):
            text += chunk
    return {name: float(value) for name, value in re.findall(r"^gyre_(\w+?)(?:_total)? (\S+)$", text.decode(), re.M)}


def cpu_s(server):
    fields = open(f"/proc/{server.process.pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- The normal client ----

class Normal(threading.Thread):
    """Gets one object over and over on one connection of its own address; keeps the times and what was wrong."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.times, self.wrong = server, [], []
        self.done = threading.Event()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120, source_address=(CLIENT, 0))
        while not self.done.is_set():
            began = time.monotonic()
            try:
                response = self.server.request("GET", "/attack/k", connection=connection)
                if response.status != 200 or response.body != BODY:
                    self.wrong.append(response.status)
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(repr(error))
                connection.close()
            self.times.append(time.monotonic() - began)
            time.sleep(0.001)
        connection.close()

    def p99_ms(self):
        return sorted(self.times)[int(len(self.times) * 0.99)] * 1000


# ---- Attacks: each runs as long as `go_on()` says ----

def is_over(sock):
    """Whether the server has closed; what it has sent is dropped."""
    try:
        while select.select([sock], [], [], 0)[0]:
            if not sock.recv(1 << 16):
                return True
        return False
    except OSError:
        return True


def flood_h2(make, first=b"", port=lambda server: server.port):
    """Connections, eight at a time, each flooded with what `make(stream)` gives until the server ends it, and then the next."""

    def flood(server, go_on):
        while go_on():
            try:
                connection = h2.Connection(port(server), ATTACKER)
            except OSError:
                continue
            connection.send(first)
            stream = 1
            while go_on():
                batch = b"".join(make(stream + 2 * i) for i in range(100))
                stream += 200
                if not connection.send(batch) or is_over(connection.sock):
                    break
            connection.close()

    def attack(server, go_on):
        floods = [threading.Thread(target=flood, args=(server, go_on)) for _ in range(8)]
        for thread in floods:
            thread.start()
        for thread in floods:
            thread.join()

    return attack


GET = h2.request
OPEN_PUT = h2.request(1, "PUT", "/attack/flood", end=False)
OPEN_GET = h2.request(1, "GET", "/attack/k")
CANCEL = struct.pack(">I", 8)


def hold(make, count, say=b"", drip=None):
    """`count` connections that say something and then nothing, or a byte now and then."""

    def attack(server, go_on):
        held = []
        for _ in range(count):
            try:
                sock = make(server)
                sock.sendall(say)
                held.append(sock)
            except OSError:
                pass
        while go_on():
            for sock in held:
                try:
                    sock.send(drip or b"")
                except OSError:
                    pass
            time.sleep(0.1)
        for sock in held:
            sock.close()

    return attack


def plain(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30, source_address=(ATTACKER, 0))


def secure(server):
    return socket.create_connection(("127.0.0.1", server.tls_port), timeout=30, source_address=(ATTACKER, 0))


def small_window(server):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.bind((ATTACKER, 0))
    sock.settimeout(30)
    sock.connect(("127.0.0.1", server.port))
    return sock


def hammer(server, go_on):
    """As many requests as go through one connection, whatever the answers are."""
    while go_on():
        with plain(server) as sock:
            try:
                while go_on():
                    sock.sendall(b"GET /attack/k HTTP/1.1\r\nHost: a\r\n\r\n" * 16)
                    sock.recv(1 << 20)
            except OSError:
                pass


def renegotiate(server, go_on):
    """TLS 1.2 clients that ask for another handshake; and older protocols."""
    if handshakes(server, ssl.TLSVersion.TLSv1_1) or not handshakes(server, ssl.TLSVersion.TLSv1_2):
        raise RuntimeError("TLS 1.1 is not refused, or TLS 1.2 is")
    run = gs.subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.tls_port}", "-tls1_2"],
                            input=b"R\nGET / HTTP/1.0\r\n\r\n", capture_output=True, timeout=60)
    if b"RENEGOTIATING" not in run.stderr or b"HTTP/1" in run.stdout:
        raise RuntimeError(f"renegotiation is not refused: {run.stderr[-300:]}")
    while go_on():
        time.sleep(0.05)


def handshakes(server, version):
    context = ssl._create_unverified_context()
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    try:
        with socket.create_connection(("127.0.0.1", server.tls_port), timeout=30) as raw:
            context.wrap_socket(raw).close()
        return True
    except (ssl.SSLError, OSError):
        return False


LIMITS = ["--max-connections", "600", "--address-connections", "400", "--buffer-budget", "64M", "--address-buffers", "4M"]
SHORT = ["--handshake-timeout", "500ms", "--head-timeout", "500ms", "--body-timeout", "500ms", "--send-timeout", "500ms", "--idle-timeout", "500ms"]

# Name, options, the attack, and the counter that must have grown.
ATTACKS = [
    ("rapid reset", [], flood_h2(lambda s: GET(s, "GET", "/attack/k") + h2.frame(h2.RST_STREAM, 0, s, CANCEL)), "abort_floods"),
    ("made you reset", [], flood_h2(lambda s: GET(s, "GET", "/attack/big") + h2.frame(h2.WINDOW_UPDATE, 0, s, bytes(4))),
     "abort_floods"),
    ("made you reset what is complete", [], flood_h2(lambda s: GET(s, "HEAD", "/attack/k") + h2.frame(h2.WINDOW_UPDATE, 0, s, bytes(4))),
     "abort_floods"),
    ("made you reset what is complete, by too much window", [],
     flood_h2(lambda s: GET(s, "HEAD", "/attack/k") + h2.frame(h2.WINDOW_UPDATE, 0, s, b"\x7f\xff\xff\xff")), "abort_floods"),
    ("malformed heads", [], flood_h2(lambda s: GET(s, "GET", "/attack/k", ("x-a", "a\rb"))), "h2_flood_malformed"),
    ("a stream that depends on itself", [], flood_h2(lambda s: h2.frame(h2.PRIORITY, 0, s, struct.pack(">IB", s, 16))), "h2_self_dependent"),
    ("answers without a window", [], hold(plain, 8, h2.start((4, 0)) + b"".join(GET(2 * i + 1, "GET", "/attack?list-type=2") for i in range(100))),
     "kept_refused"),
    ("long heads without end", [], hold(plain, 100, b"GET /attack/k HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 60000), "kept_refused"),
    ("RST_STREAM", [], flood_h2(lambda s: h2.frame(h2.RST_STREAM, 0, 1, CANCEL), OPEN_GET), "h2_flood_rst_stream"),
    ("PING", [], flood_h2(lambda s: h2.frame(h2.PING, 0, 0, b"12345678")), "h2_flood_ping"),
    ("SETTINGS", [], flood_h2(lambda s: h2.frame(h2.SETTINGS)), "h2_flood_settings"),
    ("PRIORITY", [], flood_h2(lambda s: h2.frame(h2.PRIORITY, 0, 1, b"\0\0\0\0\x10"), OPEN_PUT), "h2_flood_priority"),
    ("WINDOW_UPDATE", [], flood_h2(lambda s: h2.frame(h2.WINDOW_UPDATE, 0, 0, b"\0\0\0\1")), "h2_flood_window_update"),
    ("empty DATA", [], flood_h2(lambda s: h2.frame(h2.DATA, 0, 1), OPEN_PUT), "h2_flood_empty_data"),
    ("CONTINUATION", [], flood_h2(lambda s: h2.frame(h2.CONTINUATION, 0, 1), h2.frame(h2.HEADERS, 0, 1, b"\x84")),
     "h2_flood_continuation"),
    ("unknown frames", [], flood_h2(lambda s: h2.frame(0xfa, 0xff, s, b"whatever")), "h2_flood_unknown"),
    ("slow heads", SHORT, hold(plain, 100, b"GET /attack/k HTTP/1.1\r\nHost: a\r\nX: ", b"a"), "heads_slow"),
    ("slow heads over h2", SHORT, hold(plain, 100, h2.start() + h2.frame(h2.HEADERS, 0, 1, b"\x82")), "heads_slow"),
    ("slow bodies", SHORT, hold(plain, 100, b"PUT /attack/slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nab"), "bodies_stalled"),
    ("bodies that trickle", SHORT, hold(plain, 100, b"PUT /attack/slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", b"a"), "bodies_stalled"),
    ("uploads that fill the buffers", [], hold(plain, 200, b"PUT /attack/s HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nab"),
     "bodies_over_share"),
    ("slow readers", SHORT, hold(small_window, 50, b"GET /attack/big HTTP/1.1\r\nHost: a\r\n\r\n"), "sends_stalled"),
    ("slow readers over h2", SHORT, hold(plain, 50, h2.start((4, 0)) + GET(1, "GET", "/attack/big"),
                                         h2.frame(h2.PING, 0, 0, b"12345678")), "sends_stalled"),
    ("readers of a byte now and then", SHORT, hold(plain, 20, h2.start((4, 0)) + GET(1, "GET", "/attack/big"),
                                                   h2.frame(h2.WINDOW_UPDATE, 0, 1, b"\0\0\0\1")), "sends_stalled"),
    ("silence", SHORT, hold(plain, 50), "connections_silent"),
    ("prefaces without end", SHORT, hold(plain, 50, h2.PREFACE[:20]), "prefaces_unfinished"),
    ("too many connections", [], hold(plain, 500), "connections_over_address"),
    ("silent handshakes", [], hold(secure, 300, b"\x16\x03\x01\x02\x00"), "connections_accepted"),
    ("clear text for TLS", [], hold(secure, 100, b"GET / HTTP/1.1\r\n\r\n"), "tls_plain"),
    ("renegotiation and old TLS", [], renegotiate, "tls_renegotiations"),
    ("too many requests", ["rate"], hammer, "requests_over_rate"),
]


# ---- The game ----

def benign_load(server, until, share, own_share):
    """Plain requests that cost the server about `share` of a second of CPU each second, and this process `own_share`."""
    batch = 4
    began, cpu0, own0 = time.monotonic(), cpu_s(server), time.process_time()
    socks = [plain(server) for _ in range(8)]
    while (now := time.monotonic()) < until:
        is_behind = cpu_s(server) - cpu0 < share * (now - began)
        batch = min(64, 2 * batch) if is_behind else max(1, batch // 2)
        for sock in socks:
            sock.sendall(b"GET /attack/k HTTP/1.1\r\nHost: a\r\n\r\n" * batch)
        for sock in socks:
            left = batch * 4096
            while left > 0:
                left -= len(sock.recv(1 << 20))
        resume = time.monotonic() + 0.004
        while (now := time.monotonic()) < resume:
            if time.process_time() - own0 >= own_share * (now - began):
                time.sleep(0 if is_behind else resume - now)
                break
    for sock in socks:
        sock.close()


class Clock:
    """True for SECONDS, and a while longer if a counter has not grown by then."""

    def __init__(self, server, counter):
        self.server, self.counter, self.until = server, counter, time.monotonic() + SECONDS
        self.limit = self.until + 30
        self.before = counters(server)[counter]

    def __call__(self):
        now = time.monotonic()
        if now < self.until:
            return True
        if now > self.limit or counters(self.server)[self.counter] != self.before:
            return False
        self.until = now + 0.1
        return True


def beside(server, load):
    """Runs a load beside a normal client: the client, the CPU seconds a second of the server and of the load, and how counters grew."""
    before, cpu0, began = counters(server), cpu_s(server), time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            load(time.monotonic() + SECONDS)
        except Exception:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    normal = Normal(server)
    normal.start()
    _, status, used = os.wait4(child, 0)
    took = time.monotonic() - began
    shares = (cpu_s(server) - cpu0) / took, (used.ru_utime + used.ru_stime) / took
    gs.wait_until(lambda: len(normal.times) >= 20, 60)
    normal.done.set()
    normal.join()
    gs.check_eq("the load ran to its end", status, 0)
    return normal, shares, {name: value - before[name] for name, value in counters(server).items()}


def play(server, name, attack, counter):
    """One round: the normal client beside the attack, and how much of a core server and attacker spent."""
    clock = Clock(server, counter)
    normal, shares, grown = beside(server, lambda until: attack(server, clock))
    gs.check(f"{name}: {counter} names it", grown[counter] > 0, grown)
    gs.check(f"{name}: the normal client is served", not normal.wrong and len(normal.times) >= 20, normal.wrong[:3])
    gs.check(f"{name}: memory is bounded", server.memory() < MEMORY_BOUND, server.memory())
    gs.check(f"{name}: the server lives", server.process.poll() is None, server.log()[-1000:])
    return normal, shares


def compare(server, name, attack, counter):
    """Attack and plain requests of the same cost in turn: what each makes of the normal client's p99. An attacker and a server that have
    to share two cores wait for each other; so the plain client is as busy as the attacker, as far as it can."""
    rounds = []
    for _ in range(ROUNDS):
        attacked, shares = play(server, name, attack, counter)
        benign, benign_shares, _ = beside(server, lambda until: benign_load(server, until, *shares))
        rounds.append((attacked.p99_ms(), *shares, benign.p99_ms(), *benign_shares))
    attacked, share, own, plain_ms, plain_share, plain_own = (statistics.median(column) for column in zip(*rounds))
    print(f"{name}: p99 {attacked:.2f} ms with {share:.2f} cores of the server and {own:.2f} of the attacker; beside plain requests "
          f"{plain_ms:.2f} ms with {plain_share:.2f} and {plain_own:.2f}", flush=True)
    gs.check(f"{name}: p99 is at most twice that beside plain requests", attacked <= 2 * plain_ms + SLACK_MS, rounds)


def refusals(server):
    """Connections over the limit are told so, through TLS and in clear text, whatever silent ones hold the places for that."""
    silent = [plain(server) for _ in range(400)]  # the limit of an address, by which ATTACKER is full
    silent += [make(server) for make in (plain, secure) for _ in range(150)]
    wrong = []
    for make, count in ((plain, 40), (secure, 20)):
        for _ in range(count):
            try:
                with make(server) as sock:
                    if make is secure:
                        sock = ssl._create_unverified_context().wrap_socket(sock)
                    sock.sendall(b"GET /attack/k HTTP/1.1\r\nHost: a\r\n\r\n")
                    answer = b""
                    while chunk := sock.recv(4096):
                        answer += chunk
                    if not answer.startswith(b"HTTP/1.1 503 ") or not answer.endswith(b"too many connections\n"):
                        wrong.append(answer)
            except OSError as error:
                wrong.append(repr(error))
    gs.check_eq("refusals that were no answers", wrong[:3], [])
    normal = h2.Connection(server.port, CLIENT)
    normal.send(OPEN_GET)
    gs.check_eq("others are served meanwhile", normal.answer(1)[:2], (200, BODY))
    normal.close()
    for sock in silent:
        sock.close()


def lists_without_window(server):
    """What a connection keeps of long lists that its client takes nothing of, and what all of them keep, whatever they ask for."""
    for i in range(120):
        gs.check_eq("stored", server.request("PUT", f"/attack/{i:03}{'n' * 900}", b"").status, 200)
    ask = b"".join(GET(2 * i + 1, "GET", "/attack?list-type=2") for i in range(100))
    list_bytes = len(server.request("GET", "/attack?list-type=2").body)
    before, grown, held = server.memory(), [], []
    seen = []

    def is_calm():
        now = counters(server)
        seen.append((now["kept_refused"], now["kept_bytes"]))
        return now["jobs_queued"] == 0 and now["workers_busy"] <= 1 and len(seen) > 4 and len(set(seen[-4:])) == 1

    for _ in range(4):
        held.append(h2.Connection(server.port, ATTACKER, settings=[(4, 0)]))
        held[-1].send(ask)
        seen.clear()
        gs.wait_until(is_calm, 60)
        grown.append(counters(server)["kept_bytes"])
    gs.check("a connection keeps 4 MiB, and the last list", 2 << 20 < grown[0] < (5 << 20) + list_bytes, f"{grown} {list_bytes}")
    gs.check("an address has its share, whatever it asks for", grown[-1] <= 4 << 20, grown)
    gs.check("memory is what is counted", server.memory() - before < (24 if "asan" not in gs.GYRE else 256) << 20, server.memory() - before)
    for connection in held:
        connection.close()
    gs.check("all is given back", gs.wait_until(lambda: counters(server)["kept_bytes"] == 0, 60), counters(server))


def prepare(server):
    server.request("PUT", "/attack")
    gs.check_eq("stored", server.request("PUT", "/attack/k", BODY).status, 200)
    gs.check_eq("stored", server.request("PUT", "/attack/big", gs.bytes_of(8 << 20)).status, 200)


def main():
    for options in ([], SHORT, ["rate"]):
        rows = [row for row in ATTACKS if row[1] == options]
        limited = [] if options != ["rate"] else ["--listen", f"127.0.0.1:{gs.free_port()},rate=50"]
        with gs.Server(*LIMITS, *(options if options != ["rate"] else limited), tls=True, size="128M") as server:
            prepare(server)
            port = server.port
            for name, _, attack, counter in rows:
                if options == ["rate"]:
                    server.port = int(limited[1].split(":")[1].split(",")[0])
                    attack = at_port(attack, server.port)
                    server.port = port
                gs.run(lambda: (compare if gs.FULL else play)(server, name, attack, counter))
            if not options:
                gs.run(lambda: refusals(server), lambda: lists_without_window(server))
    gs.finish()


def at_port(attack, port):
    """The same attack on another listener."""

    def moved(server, go_on):
        attack(type("Target", (), {"port": port})(), go_on)

    return moved


main()
