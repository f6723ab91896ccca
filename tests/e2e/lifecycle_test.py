"""The life of a server: reloading, rotating logs, being replaced without a failed request, telling the service manager."""

import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import gyre_server as gs
import h2_raw as h2

ASAN = True


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("admin", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def admin(server, path, method="GET"):
    """One request to the default admin socket: (status, text)."""
    connection = UnixConnection(server.data / "admin.sock")
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


# ---- The admin listener ----

def metrics_are_valid(text):
    """What promtool checks: every sample's family announced once before it, names, labels, numbers, histograms that add up."""
    kinds, seen, buckets = {}, set(), {}
    for line in text.splitlines():
        if match := re.fullmatch(r"# HELP ([a-z_:][a-z0-9_:]*) (.+)", line):
            gs.check("HELP once", match[1] not in seen, line)
            seen.add(match[1])
        elif match := re.fullmatch(r"# TYPE (\S+) (counter|gauge|histogram)", line):
            gs.check("TYPE follows HELP", match[1] in seen and match[1] not in kinds, line)
            kinds[match[1]] = match[2]
        else:
            match = re.fullmatch(r'([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)', line)
            if not gs.check("a sample", match is not None, line):
                continue
            name, labels, value = match.groups()
            family = name if name in kinds else re.sub(r"_(bucket|sum|count)$", "", name)
            gs.check("a family was announced", family in kinds, line)
            gs.check("counters end in _total", (kinds.get(family) == "counter") == name.endswith("_total"), line)
            number = float(value)
            if name.endswith("_bucket"):
                rest, bound = re.fullmatch(r'(.*),le="([^"]+)"', labels).groups()
                earlier = buckets.setdefault(rest, [])
                gs.check("buckets grow", not earlier or (earlier[-1][0] < float(bound.replace("Inf", "inf")) and earlier[-1][1] <= number), line)
                earlier.append((float(bound.replace("Inf", "inf")), number))
            elif name.endswith("_count") and kinds.get(family) == "histogram":
                gs.check("the last bucket is the count", buckets[labels][-1] == (float("inf"), number), line)
    gs.check("each family has a type", seen == set(kinds))
    gs.check("few series", len(text.splitlines()) < 2000, len(text.splitlines()))


def value(text, name):
    match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    return float(match[1]) if match else None


def readiness_sees_failing_writes():
    """Files that must not grow are what a full disk is to the server: /readyz says so as long as it lasts."""
    with gs.Server(size="64M") as server:
        server.request("PUT", "/bkt")
        gs.check_eq("ready at first", admin(server, "/readyz"), (200, "ready\n"))
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, hard))
        gs.check("writes fail", gs.wait_until(lambda: server.request("PUT", "/bkt/k", b"x" * 100000).status >= 500))
        gs.check("and /readyz says so", gs.wait_until(lambda: admin(server, "/readyz")[0] == 503), admin(server, "/readyz"))
        gs.check("with the reason", admin(server, "/readyz")[1].startswith("failing: the store: "), admin(server, "/readyz"))
        gs.check_eq("it is counted", value(admin(server, "/metrics")[1], "gyre_store_failing"), 1)
        gs.check_eq("and alive", admin(server, "/healthz")[0], 200)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        gs.check_eq("it recovers at once", admin(server, "/readyz"), (200, "ready\n"))
        gs.check_eq("so do writes", server.request("PUT", "/bkt/k", b"x" * 100000).status, 200)


def admin_answers():
    with gs.Server(size="64M", tls=True) as server:
        gs.check("the admin socket is not for everybody", (server.data / "admin.sock").stat().st_mode & 0o007 == 0)
        server.request("PUT", "/bkt")
        server.request("PUT", "/bkt/k", b"x" * 1000)
        for _ in range(5):
            server.request("GET", "/bkt/k")
        server.request("GET", "/bkt/none")
        status, text = admin(server, "/metrics")
        gs.check_eq("/metrics", status, 200)
        metrics_are_valid(text)
        hits = '{role="s3",operation="get_object",result="hit"}'
        gs.check_eq("hits are counted", value(text, f"gyre_request_duration_seconds_count{hits}"), 5)
        misses = '{role="s3",operation="get_object",result="miss"}'
        gs.check_eq("misses are counted", value(text, f"gyre_request_duration_seconds_count{misses}"), 1)
        gs.check("bodies are counted", value(text, "gyre_response_bytes_total") >= 5000 and value(text, "gyre_body_bytes_total") == 1000)
        gs.check_eq("the store's numbers", value(text, "gyre_store_puts_total") >= 1, True)
        gs.check("the pools' numbers", value(text, 'gyre_pool_bytes{pool="main"}') >= 1000 and value(text, 'gyre_pool_capacity_bytes{pool="meta"}') > 0)
        status, text = admin(server, "/status")
        document = json.loads(text)
        gs.check("pools", document["pools"]["main"]["capacity_bytes"] >= document["pools"]["main"]["bytes"] > 0 and "meta" in document["pools"])
        gs.check_eq("/status", (status, document["state"], document["pid"]), (200, "ready", server.process.pid))
        gs.check_eq("listeners", sorted(row["role"] for row in document["listeners"]), ["admin", "s3", "s3"])
        gs.check("numbers", document["numbers"]["requests"] >= 8 and document["store"]["documents"] > 0)
        gs.check_eq("/healthz", admin(server, "/healthz"), (200, "ok\n"))
        gs.check_eq("/readyz", admin(server, "/readyz"), (200, "ready\n"))
        gs.check_eq("HEAD", admin(server, "/readyz", "HEAD"), (200, ""))
        gs.check_eq("POST", admin(server, "/metrics", "POST")[0], 405)
        gs.check_eq("elsewhere", admin(server, "/bkt/k")[0], 404)
        for path in ("/metrics", "/healthz", "/readyz", "/status"):
            gs.check("roles do not mix", server.request("GET", path).code() is not None, path)
        # While it drains, a request that does not end holds it.
        with socket.create_connection(("127.0.0.1", server.port)) as held:
            held.sendall(b"PUT /bkt/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
            gs.wait_until(lambda: json.loads(admin(server, "/status")[1])["numbers"]["requests"] > document["numbers"]["requests"])
            server.process.send_signal(signal.SIGTERM)
            gs.check("/readyz says so", gs.wait_until(lambda: admin(server, "/readyz") == (503, "draining\n")), server.log())
            gs.check_eq("it is alive", admin(server, "/healthz")[0], 200)
            held.sendall(b"cde")
            answer = held.recv(4096)
            gs.check("the request in progress is answered", answer.startswith(b"HTTP/1.1 200") and b"Connection: close" in answer, answer)
    gs.check("the socket goes with the server", not (server.data / "admin.sock").exists())


# ---- Stopping ----

def h2_requests_end_first():
    """A body on its way over HTTP/2, up or down, takes as long as it takes when the server is told to stop or has a successor."""
    for number in (signal.SIGTERM, signal.SIGUSR2):
        with gs.Server("--drain-timeout", "60s", size="64M") as server:
            body = gs.bytes_of(200_000)
            server.request("PUT", "/bkt")
            server.request("PUT", "/bkt/down", body)
            before = json.loads(admin(server, "/status")[1])["numbers"]["requests"]
            up, down, idle = (h2.Connection(server.port, limit_s=60) for _ in range(3))
            up.send(h2.request(1, "PUT", "/bkt/up", ("content-length", "60000"), end=False) + h2.frame(h2.DATA, 0, 1, body[:10000]))
            down.send(h2.request(1, "GET", "/bkt/down"))
            gs.wait_until(lambda: json.loads(admin(server, "/status")[1])["numbers"]["requests"] >= before + 2)
            former = server.process.pid
            server.process.send_signal(number)
            time.sleep(3)  # longer than libh2o would wait by itself
            for at in range(10000, 60000, 10000):
                up.send(h2.frame(h2.DATA, h2.END_STREAM if at == 50000 else 0, 1, body[at:at + 10000]))
            gs.check_eq(f"{number.name}: the upload is answered", up.answer(1), (200, b"", None))
            down.send(h2.frame(h2.WINDOW_UPDATE, 0, 0, b"\0\x10\0\0") + h2.frame(h2.WINDOW_UPDATE, 0, 1, b"\0\x10\0\0"))
            gs.check(f"{number.name}: the download is whole", down.answer(1) == (200, body, None))
            gs.check_eq(f"{number.name}: the process ends, whoever stays connected", server.process.wait(60), 0)
            gs.check(f"{number.name}: nothing was cut", "cut short" not in server.log(), server.log())
            server._ended()
            if number == signal.SIGUSR2:
                latter = wait_for_pid(server, former)
                os.kill(latter, signal.SIGTERM)
                gs.check("the successor ends", ends(latter), server.log())
            for connection in (up, down, idle):
                connection.close()


def start_and_signal(server, number):
    """A process that was sent a signal as soon as its port was there."""
    command = [gs.GYRE, "serve", "--listen", f"127.0.0.1:{server.port}", "--data", server.data, "--size", "64M"]
    with open(server.log_path, "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **server.env})
    gs.wait_until(lambda: process.poll() is not None or socket.socket().connect_ex(("127.0.0.1", server.port)) == 0, step_s=0.001)
    process.send_signal(number)
    return process


def signals_while_it_starts():
    """None ends a server that is about to open its store but those that should, and they do in good order."""
    server = gs.Server(size="64M", start=False)
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        server.port = gs.free_port()
        process = start_and_signal(server, number)
        if number in (signal.SIGHUP, signal.SIGUSR1):
            gs.check(f"{number.name} while it starts ends nothing", gs.wait_until(server._answers, 60), server.log())
            process.terminate()
        gs.check_eq(f"{number.name} while it starts: it ends well", process.wait(60), 0)


def asked_again_while_it_ends():
    """Being told to stop over and over cuts nothing short: what was stored is on disk, and the admin socket goes."""
    with gs.Server(size="64M") as server:
        server.request("PUT", "/bkt")
        server.request("PUT", "/bkt/k", b"x" * 1000)
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.0002)
        gs.check_eq("it ends well", server.process.wait(60), 0)
        gs.check("in good order", "all data is on disk" in server.log(), server.log())
        gs.check("the socket goes", not (server.data / "admin.sock").exists())
        server._ended()


# ---- Reloading and rotating ----

def make_certificate(path, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN={name}", "-keyout", path, "-out", path.with_suffix(".crt")], check=True, capture_output=True)
    path.write_text(path.with_suffix(".crt").read_text() + path.read_text())


def subject(port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as sock, context.wrap_socket(sock) as tls:
        der = tls.getpeercert(True)
    return re.search(rb"name-(one|two)", der)[1].decode()


def reload(server, outcome):
    """SIGHUP, and the words that say what became of it."""
    before = len(server.log())
    server.process.send_signal(signal.SIGHUP)
    gs.wait_until(lambda: "the configuration" in server.log()[before:])
    said = server.log()[before:]
    gs.check(f"a reload says {outcome!r}", outcome in said, said)
    return said


def reloads():
    tmp = pathlib.Path(tempfile.mkdtemp(dir=gs.tmpdir()))
    config, pem, log = tmp / "gyre.json", tmp / "pair.pem", tmp / "access.log"
    make_certificate(pem, "name-one")
    ports = [gs.free_port() for _ in range(3)]
    options = {"listen": [f"127.0.0.1:{ports[0]}", f"tls:127.0.0.1:{ports[1]}"], "tls-cert": str(pem), "access-log": str(log), "threads": 2}

    def write(**changes):
        config.write_text(json.dumps({**options, **changes}, indent=1))

    write()
    server = gs.Server("--config", config, size="64M", start=False)
    server.port = ports[0]
    with open(server.log_path, "ab") as out:
        server.process = subprocess.Popen([gs.GYRE, "serve", "--data", server.data, "--size", "64M", "--config", config], stdout=out,
                                          stderr=out, stdin=subprocess.DEVNULL)
    gs._servers.append(server)
    with server:
        gs.check("it starts", gs.wait_until(server._answers, 60), server.log())
        kept = server.connection()
        gs.check_eq("a connection", server.request("PUT", "/bkt", connection=kept).status, 200)
        gs.check_eq("its certificate", subject(ports[1]), "one")

        make_certificate(pem, "name-two")
        write(**{"listen": options["listen"] + [f"127.0.0.1:{ports[2]}"], "access-log-format": "json", "threads": 3})
        said = reload(server, "is in force")
        gs.check("what cannot change is named", "threads: cannot change while the server runs" in said, said)
        gs.check_eq("the other certificate", subject(ports[1]), "two")
        gs.check_eq("the connection is kept", server.request("GET", "/bkt/none", connection=kept).status, 404)
        more = http.client.HTTPConnection("127.0.0.1", ports[2], timeout=60)
        gs.check_eq("the new listener", server.request("GET", "/bkt/none", connection=more).status, 404)

        write(**{"idle-timeout": "soon"})
        said = reload(server, "stays as it was")
        gs.check("file, line, key and reason", re.search(r"gyre.json:\d+: idle-timeout: \"soon\" is no time", said) is not None, said)
        write(**{"tls-cert": str(tmp / "none.pem")})
        reload(server, "none.pem")
        pem_text = pem.read_text()
        pem.write_text("no certificate")
        write()
        reload(server, "cannot use the certificate")
        pem.write_text(pem_text)
        gs.check_eq("the new listener is still there", server.request("GET", "/bkt/none", connection=more).status, 404)
        gs.check_eq("refused reloads are counted", json.loads(admin(server, "/status")[1])["numbers"]["reloads_refused"], 3)

        lines = log.read_text().splitlines()
        gs.check("lines of both forms", "HTTP/1.1\" 200" in lines[0] and json.loads(lines[-1])["operation"] == "get_object", lines)
        write(**{"access-log-format": "json"})
        reload(server, "is in force")
        gs.check("a removed listener is closed", gs.wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", ports[2])) != 0))
        last = server.request("GET", "/bkt/none", connection=more)
        gs.check_eq("its connection gets an answer, the last", (last.status, last.headers["connection"]), (404, "close"))

        log.rename(tmp / "access.log.1")
        server.request("GET", "/bkt/old?X-Amz-Signature=secret", headers={"Authorization": "secret", "User-Agent": "a\"b"}, connection=kept)
        server.process.send_signal(signal.SIGUSR1)
        gs.check("SIGUSR1 opens the log anew", gs.wait_until(log.exists))

        def writes_to_the_new_one():
            server.request("GET", "/bkt/new", connection=kept)
            time.sleep(0.05)
            return "/bkt/new" in log.read_text()

        gs.check("it is written to", gs.wait_until(writes_to_the_new_one, 30))
        gs.check("and the old one has what came before", "/bkt/old" in (tmp / "access.log.1").read_text())
        text = (tmp / "access.log.1").read_text() + log.read_text()
        gs.check("no secret is logged", "secret" not in text and "X-Amz-Signature=-" in text, text)
        entry = json.loads(log.read_text().splitlines()[-1])
        gs.check_eq("an entry", (entry["client"], entry["result"], entry["status"], entry["target"]), ("127.0.0.1", "miss", 404, "/bkt/new"))
        kept.close()
        more.close()


# ---- Succession ----

class Load:
    """Clients that go on over kept connections and believe what `Connection: close` says. Counts what fails."""

    def __init__(self, port, clients=4):
        self.port, self.failures, self.done, self.lock = port, [], 0, threading.Lock()
        self.closes, self.over = 0, threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        connection = None
        while not self.over.is_set():
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
                body = b"%d" % self.done
                path = f"/bkt/load-{number}"
                for method in ("PUT", "GET"):
                    connection.request(method, path, body if method == "PUT" else None)
                    response = connection.getresponse()
                    got = response.read()
                    closes = response.getheader("connection") == "close"
                    if response.status != 200 or (method == "GET" and got != body):
                        raise RuntimeError(f"{method}: {response.status} {got[:100]}")
                    if closes:
                        connection.close()
                        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
                    with self.lock:
                        self.done += 1
                        self.closes += closes
                if number % 2:
                    connection.close()  # half of them connect anew each time
                    connection = None
            except Exception as error:
                with self.lock:
                    self.failures.append(repr(error))
                connection = None

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def listen_for_notices():
    path = tempfile.mktemp(dir=gs.tmpdir(), prefix="notify-")
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(path)
    notices.settimeout(60)
    return path, notices


def hear(notices, want):
    """The next notice that holds `want`."""
    heard = []
    try:
        while True:
            heard.append(notices.recv(4096).decode())
            if want in heard[-1]:
                return heard[-1]
    except TimeoutError:
        gs.check(f"the service manager hears {want}", False, heard)
        return ""


def pid_of(server):
    return json.loads(admin(server, "/status")[1])["pid"]


def wait_for_pid(server, former):
    """The process that answers on the admin socket, once the former has stopped to."""
    def changed():
        try:
            return all(pid_of(server) != former for _ in range(5))
        except OSError:
            return False
    gs.check("another process answers", gs.wait_until(changed, 60), server.log())
    return pid_of(server)


def ends(pid, limit_s=60):
    def is_gone():
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True
    return gs.wait_until(is_gone, limit_s)


def succession():
    """SIGUSR2 under load: a successor, then one more; not a request fails, nothing written is lost."""
    path, notices = listen_for_notices()
    server = gs.Server("--drain-timeout", "20s", size="64M", env={"NOTIFY_SOCKET": path})
    hear(notices, "READY=1")
    server.request("PUT", "/bkt")
    server.request("PUT", "/bkt/kept", b"kept")
    idle = server.connection()
    gs.check_eq("an idle connection", server.request("GET", "/bkt/kept", connection=idle).body, b"kept")
    load = Load(server.port)
    pids = [server.process.pid]
    for turn in range(2):
        gs.check("requests go on", gs.wait_until(lambda before=load.done: load.done > before + 20, 60))
        os.kill(pids[-1], signal.SIGUSR2)
        notice = hear(notices, "MAINPID=")
        pids.append(int(re.search(r"MAINPID=(\d+)", notice)[1]) if notice else 0)
        gs.check_eq("the service manager is told of the process that answers", wait_for_pid(server, pids[-2]), pids[-1])
        if turn == 0:
            answer = server.request("GET", "/bkt/kept", connection=idle)
            gs.check_eq("an idle connection gets an answer, the last", (answer.body, answer.headers["connection"]), (b"kept", "close"))
        gs.check("the former process ends", ends(pids[-2]), server.log()[-3000:])
    before = load.done
    gs.check("requests go on", gs.wait_until(lambda: load.done > before + 20, 60))
    load.stop()
    gs.check_eq("requests that failed", load.failures[:5], [])
    gs.check("clients were asked to leave", load.closes >= 1, load.closes)
    gs.check_eq("what was stored is there", server.request("GET", "/bkt/kept").body, b"kept")
    gs.check_eq("the first process ended well", server.process.wait(60), 0)
    server._ended()
    os.kill(pids[-1], signal.SIGTERM)
    hear(notices, "STOPPING=1")
    gs.check("the last process ends", ends(pids[-1]), server.log()[-3000:])
    gs.check("nothing alarming was said", gs.ALARMS.search(server.log()) is None, server.log()[-3000:])
    gs.check("sockets go with the last", not list(server.data.glob("*.sock")), list(server.data.iterdir()))
    check = gs.gyre("check", "--data", server.data)
    gs.check_eq("the store is sound", check.returncode, 0)
    notices.close()


def failed_succession():
    """A successor that cannot start leaves everything as it is."""
    tmp = pathlib.Path(tempfile.mkdtemp(dir=gs.tmpdir()))
    config = tmp / "gyre.json"
    config.write_text("{}")
    with gs.Server("--config", config, size="64M") as server:
        server.request("PUT", "/bkt")
        config.write_text('{"no-such": 1}')
        server.process.send_signal(signal.SIGUSR2)
        gs.check("it is said", gs.wait_until(lambda: "serving on" in server.log()), server.log())
        gs.check_eq("requests go on", server.request("HEAD", "/bkt").status, 200)
        config.write_text("{}")
        other = subprocess.run([gs.GYRE, "serve", "--data", server.data, "--size", "64M", "--listen", f"127.0.0.1:{server.port}"],
                               capture_output=True, text=True, timeout=60)
        gs.check("without --takeover the port is taken", other.returncode == 1 and "in use" in other.stderr, other)
    with gs.Server("--takeover", size="64M") as server:
        gs.check("--takeover without a predecessor is a start", "nobody to take over from" in server.log(), server.log())


def activation():
    """Sockets of the service manager are used instead of binding."""
    data = tempfile.mkdtemp(dir=gs.tmpdir(), prefix="data-")
    path, notices = listen_for_notices()
    with socket.socket() as sock, open(os.path.join(data, "..", "activated.log"), "w+") as log:
        sock.bind(("127.0.0.1", 0))
        sock.listen(16)
        port = sock.getsockname()[1]
        early = socket.create_connection(("127.0.0.1", port))
        early.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        script = 'exec 3<&"$1"; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" serve --data "$2" --size 64M --listen 127.0.0.1:"$3"'
        process = subprocess.Popen(["bash", "-c", script, gs.GYRE, str(sock.fileno()), data, str(port)], pass_fds=[sock.fileno()],
                                   stdout=log, stderr=log, env={**os.environ, "NOTIFY_SOCKET": path})
        try:
            early.settimeout(60)
            gs.check("who came before the server is answered", early.recv(12) == b"HTTP/1.1 200", log)
            hear(notices, "READY=1")
            process.send_signal(signal.SIGHUP)
            gs.check("a reload is announced with its time", re.search(r"RELOADING=1\nMONOTONIC_USEC=\d+", hear(notices, "RELOADING=1")))
            hear(notices, "READY=1")
            process.terminate()
            gs.check_eq("it stops", process.wait(60), 0)
        finally:
            process.kill()
            process.wait()
            early.close()
    notices.close()


def main():
    gs.run(admin_answers, readiness_sees_failing_writes, h2_requests_end_first, signals_while_it_starts, asked_again_while_it_ends, reloads, succession, failed_succession, activation)
    gs.finish()


if __name__ == "__main__":
    main()
