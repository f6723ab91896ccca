"""For tests that talk to a running gyre: starting and stopping it, requests to it, and counting checks.

    import gyre_server as gs

    def put_then_get(server):
        gs.check_eq(server.request("PUT", "/b").status, 200)
        ...

    with gs.Server(size="256M") as server:
        put_then_get(server)
    gs.finish()

The program is $GYRE_BIN, or build/gyre. Everything listens on 127.0.0.1 and lies below a temporary directory that goes at exit.
"""
import atexit
import http.client
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
GYRE = os.environ.get("GYRE_BIN") or str(ROOT / "build/gyre")
FULL = os.environ.get("GYRE_FULL", "") not in ("", "0")
SEED = int(os.environ.get("GYRE_SEED") or str(random.SystemRandom().randrange(1 << 32)), 0)
rng = random.Random(SEED)
# A line of one of these in the server's output fails the test, whatever the server answered.
ALARMS = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|check failed|Assertion|SUMMARY: ")

_passed = 0
_failed = 0
_tmp = None
_servers = []


# ---- Checks ----

def check(what, holds, detail=""):
    """Counts one check; on failure prints what, and where it was called."""
    global _passed, _failed
    if holds:
        _passed += 1
        return True
    _failed += 1
    caller = next(frame for frame in reversed(traceback.extract_stack()) if frame.filename != __file__)
    print(f"{pathlib.Path(caller.filename).name}:{caller.lineno}: {what}" + (f": {detail}" if detail != "" else ""), flush=True)
    return False


def check_eq(what, got, want):
    return check(what, got == want, f"got {_short(got)}, expected {_short(want)}")


def _short(value):
    text = repr(value)
    return text if len(text) < 200 else f"{text[:120]}... ({len(value) if hasattr(value, '__len__') else len(text)} long)"


def run(*tests):
    """Calls the functions; an exception fails the one it came from."""
    for test in tests:
        try:
            test()
        except Exception:
            check(test.__name__, False, traceback.format_exc())


def finish():
    """Prints the summary line and exits; the last thing a test does."""
    atexit.unregister(_unfinished)
    for server in list(_servers):
        server.kill()
    if _failed:
        print(f"again with: GYRE_SEED={SEED}")
    script = pathlib.Path(sys.argv[0]).resolve()
    print(f"{script.parent.name}/{script.stem}: {_passed} passed, {_failed} failed", flush=True)
    sys.exit(1 if _failed or not _passed else 0)


@atexit.register
def _unfinished():
    """Fails a test that forgets to finish(), whose failures nobody would see."""
    if _passed or _failed:
        print("it ends without finish()", flush=True)
        os._exit(1)


# ---- Surroundings ----

def tmpdir():
    """A directory for this process, removed when it exits."""
    global _tmp
    if _tmp is None:
        _tmp = tempfile.mkdtemp(prefix="gyre-e2e-")
        atexit.register(shutil.rmtree, _tmp, ignore_errors=True)
    return pathlib.Path(_tmp)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_until(condition, limit_s=60, step_s=0.02):
    """True as soon as the condition is, False after limit_s. Time in which the whole machine stands still does not count."""
    for _ in range(int(limit_s / step_s)):
        if condition():
            return True
        time.sleep(step_s)
    return condition()


def gyre(*arguments, limit_s=60, env=None):
    """Runs `gyre ARGUMENTS` to its end: CompletedProcess with text output."""
    return subprocess.run([GYRE, *map(str, arguments)], capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})}, cwd=tmpdir())


# ---- The server ----

class Response:
    """status, body, and headers by lower-case name (a repeated one joined by commas)."""

    def __init__(self, status, headers, body):
        self.status, self.body, self.headers = status, body, {}
        for name, value in headers:
            name = name.lower()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value

    def code(self):
        """The S3 error code of an XML body, or None."""
        match = re.search(rb"<Code>([^<]*)</Code>", self.body)
        return match.group(1).decode() if match else None

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:200]!r}"


class Server:
    """One `gyre serve`. `tls=True` listens on a second port with a self-signed certificate. `arguments` go to the program."""

    def __init__(self, *arguments, size="256M", data=None, tls=False, env=None, start=True):
        self.data = pathlib.Path(data) if data else pathlib.Path(tempfile.mkdtemp(dir=tmpdir(), prefix="data-"))
        self.size, self.tls, self.arguments, self.env = size, tls, [str(word) for word in arguments], env or {}
        self.process = self.port = self.tls_port = None
        self.log_path = pathlib.Path(tempfile.mkstemp(dir=tmpdir(), prefix="log-")[1])
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process is not None:
            status = self.stop()
            check("the server exits with 0 on SIGTERM", status == 0, f"{status}\n{self.log()[-2000:]}")

    def start(self, limit_s=60):
        """Starts the program and waits until it answers."""
        for _ in range(5):
            self.port, self.tls_port = free_port(), free_port() if self.tls else None
            command = [GYRE, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", str(self.data), "--size", str(self.size)]
            if self.tls:
                command += ["--listen", f"tls:127.0.0.1:{self.tls_port}", "--tls-self-signed"]
            with open(self.log_path, "ab") as log:
                self.process = subprocess.Popen(command + self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                cwd=tmpdir(), env={**os.environ, **self.env})
            _servers.append(self)
            if wait_until(lambda: self.process.poll() is not None or self._answers(), limit_s) and self.process.poll() is None:
                return self
            status = self.process.poll()
            self.kill()
            if status is None or "in use" not in self.log():
                break
        raise RuntimeError(f"gyre did not start (exit status {status}):\n{self.log()[-4000:]}")

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                return sock.recv(16).startswith(b"HTTP/1.1 ")
        except OSError:
            return False

    def stop(self, limit_s=60):
        """SIGTERM; the exit status, or None if it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self._ended()
        return status

    def kill(self):
        """SIGKILL, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._ended()

    def _ended(self):
        self.process = None
        _servers.remove(self)
        alarm = ALARMS.search(self.log())
        check("the server's log is clean", alarm is None, self.log()[-6000:] if alarm else "")

    def restart(self):
        """Stops in good order and starts again with the same data; ports may change."""
        status = self.stop()
        check("the server exits with 0 on SIGTERM", status == 0, f"{status}\n{self.log()[-2000:]}")
        return self.start()

    def log(self):
        return self.log_path.read_text(errors="replace")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def tls_url(self):
        return f"https://127.0.0.1:{self.tls_port}"

    def connection(self, limit_s=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit_s)

    def request(self, method, path, body=None, headers=None, connection=None):
        """One request, over `connection` or one of its own; the path goes out as it is given."""
        own = connection is None
        connection = connection or self.connection()
        try:
            headers = dict(headers or {})
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            if body is not None and not any(name.lower() in ("content-length", "transfer-encoding") for name in headers):
                headers["Content-Length"] = str(len(body))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return Response(response.status, response.getheaders(), response.read())
        finally:
            if own:
                connection.close()

    def raw(self, data, limit_s=15, half_close=False):
        """Sends bytes as they are on a connection of their own; all that comes back until the server closes, or limit_s is over."""
        received = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=limit_s) as sock:
            try:
                sock.sendall(data)
                if half_close:
                    sock.shutdown(socket.SHUT_WR)
                until = time.monotonic() + limit_s
                while (left := until - time.monotonic()) > 0:
                    sock.settimeout(left)
                    chunk = sock.recv(65536)
                    if not chunk:
                        break
                    received += chunk
            except (TimeoutError, ConnectionResetError, BrokenPipeError):
                pass
        return received

    def memory(self, field="RssAnon"):
        """Bytes of a field of /proc/PID/status."""
        match = re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{self.process.pid}/status").read_text(), re.M)
        return int(match.group(1)) * 1024


# ---- Clients ----

def curl(*arguments, limit_s=120):
    """curl -sS ARGUMENTS: CompletedProcess with bytes."""
    return subprocess.run(["curl", "-sS", *map(str, arguments)], capture_output=True, timeout=limit_s, stdin=subprocess.DEVNULL)


def bytes_of(length, seed=0):
    """Bytes that do not compress and follow from length and seed (and the run's seed)."""
    return random.Random(f"{SEED}/{seed}/{length}").randbytes(length)


def in_parallel(function, items, threads=8):
    """[function(item)] in the order of the items, from several threads; exceptions are returned in their place."""
    items = list(items)
    results = [None] * len(items)
    turn = iter(range(len(items)))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                index = next(turn, None)
            if index is None:
                return
            try:
                results[index] = function(items[index])
            except Exception as error:
                results[index] = error

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results
