"""Gyre against nginx over HTTP on this machine: wrk and h2load, the same client, objects and core for both, in alternation.

    bench/http.sh [--rounds N] [--seconds S] [--only CASE]... [--json] [--gyre PATH]

The server under test runs on one core with one loop (nginx: one worker), the client on another. A round measures every case on both
servers, one right after the other; a figure is the median over the rounds, with minimum and maximum beside it. nginx serves with sendfile,
open_file_cache, tcp_nopush and no access log; get-4k-h1 is measured without tcp_nopush as well. It takes PUTs through its DAV module into
the same file system. Gyre's ETags are opaque in the PUT cases (nginx hashes nothing either).
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KIB, MIB = 1 << 10, 1 << 20
OBJECTS = 64

# name: (client, method, object bytes, the peer's port, the ratio the project asks for)
CASES = {
    "get-4k-h1": ("wrk", "GET", 4 * KIB, "push", 1.3),
    "get-4k-h1-tcp_nopush": ("wrk", "GET", 4 * KIB, "plain", None),
    "get-4k-h2-tls": ("h2load", "GET", 4 * KIB, "tls", 2.0),
    "get-2m-h1": ("wrk", "GET", 2 * MIB, "plain", 1.1),
    "put-2m-h1": ("wrk", "PUT", 2 * MIB, "plain", 1.1),
    "get-64k-h1": ("wrk", "GET", 64 * KIB, "plain", None),
    "get-4k-h1-tls": ("wrk", "GET", 4 * KIB, "tls", None),
    "get-4k-h2c": ("h2load", "GET", 4 * KIB, "h2c", None),
    "put-4k-h1": ("wrk", "PUT", 4 * KIB, "plain", None),
    "put-32m-h1": ("h2load", "PUT", 32 * MIB, "plain", None),
    "put-32m-h2c": ("h2load", "PUT", 32 * MIB, "h2c", None),
}

NGINX_CONF = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log warn; {user}
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; keepalive_timeout 600;
  open_file_cache max=10000 inactive=600s; open_file_cache_valid 600s; client_max_body_size 0; client_body_buffer_size 1m;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem; ssl_session_cache shared:a:1m;
  server {{ listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl http2; root {dir}/root; dav_methods PUT; create_full_put_path on; }}
  server {{ listen 127.0.0.1:{h2c} http2; root {dir}/root; }}
  server {{ listen 127.0.0.1:{push}; root {dir}/root; tcp_nopush off; }}
}}
"""

# Requests are made once, so that the client's own work is the same small amount for both servers.
WRK_LUA = """
local requests, turn = {}, 0
function init(args)
  local body = args[2] ~= "0" and string.rep("0123456789abcdef", tonumber(args[2]) / 16) or nil
  for i = 0, tonumber(args[3]) - 1 do requests[i] = wrk.format(args[1], "/bench/" .. args[4] .. i, nil, body) end
  count = tonumber(args[3])
end
function request() turn = (turn + 1) % count; return requests[turn] end
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def pinned(core, command):
    return ["taskset", "-c", str(core), *map(str, command)] if os.cpu_count() > 1 else list(map(str, command))


def wait_for(port, process, what):
    for _ in range(200):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"bench: {what} does not answer on port {port}")


class Peer:
    """A server under test: where it listens, and how to stop it."""

    def __init__(self, name, process, ports):
        self.name, self.process, self.ports = name, process, ports
        wait_for(ports["plain"], process, name)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def start_nginx(folder):
    (folder / "root/bench").mkdir(parents=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    ports = {door: free_port() for door in ("plain", "tls", "h2c", "push")}
    conf = folder / "nginx.conf"
    conf.write_text(NGINX_CONF.format(dir=folder, user="user root;" if os.geteuid() == 0 else "", **ports))
    process = subprocess.Popen(pinned(0, ["nginx", "-c", conf, "-p", folder]), stdin=subprocess.DEVNULL)
    return Peer("nginx", process, ports)


def start_gyre(program, folder):
    plain, tls = free_port(), free_port()
    command = [program, "serve", "--listen", f"127.0.0.1:{plain}", "--listen", f"tls:127.0.0.1:{tls}", "--tls-cert", folder / "cert.pem",
               "--tls-key", folder / "key.pem", "--data", folder / "gyre", "--size", "2G", "--threads", 1, "--etag", "opaque"]
    with open(folder / "gyre.log", "w") as log:
        process = subprocess.Popen(pinned(0, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    return Peer("gyre", process, {"plain": plain, "tls": tls, "h2c": plain, "push": plain})


def put(port, path, body):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    conn.request("PUT", path, body=body)
    answer = conn.getresponse()
    answer.read()
    if answer.status not in (200, 201, 204):
        sys.exit(f"bench: PUT {path} answered {answer.status}")


def fill(peer, case):
    """Puts what a GET case asks for; the PUT cases may have pushed it out of Gyre's bounded store since."""
    _, method, size, _, _ = CASES[case]
    if method == "GET":
        for index in range(OBJECTS):
            put(peer.ports["plain"], f"/bench/{size}-{index}", os.urandom(size))


def cpu_seconds(process):
    """CPU time of a server and its direct children so far."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if process.pid in (int(path.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(peer, case, seconds, folder):
    """Requests per second of one case on one server."""
    client, method, size, door, _ = CASES[case]
    url = f"{'https' if door == 'tls' else 'http'}://127.0.0.1:{peer.ports[door]}"
    if client == "wrk":
        script = folder / "requests.lua"
        script.write_text(WRK_LUA)
        connections = 4 if method == "PUT" else 64
        prefix = f"{size}-" if method == "GET" else f"put-{size}-"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script, f"{url}/", "--", method, size if method == "PUT" else 0,
                   OBJECTS, prefix]
        text = subprocess.run(pinned(1, command), capture_output=True, text=True, check=True).stdout
        bad = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors:.*", text)
        rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    else:
        uris = folder / "uris"
        names = 16 if method == "PUT" else OBJECTS
        uris.write_text("".join(f"{url}/bench/{size}-{index}\n" for index in range(names)))
        command = ["h2load", "-t1", "-c16", "-m16", "-D", seconds, "-i", uris]
        if method == "PUT":
            body = folder / "body"
            body.write_bytes(os.urandom(size))
            command = ["h2load", "-t1", "-c4", "-m1", "-D", seconds, "-d", body, "-H", ":method: PUT", "-i", uris]
            command += ["--h1"] if door == "plain" else []
        text = subprocess.run(pinned(1, command), capture_output=True, text=True, check=True).stdout
        failed = re.search(r"(\d+) failed, (\d+) errored", text)
        bad = None if failed and failed.groups() == ("0", "0") and ", 0 4xx, 0 5xx" in text else text
        rate = float(re.search(r"finished in [\d.]+m?s, ([\d.]+) req/s", text).group(1))
    if bad:
        sys.exit(f"bench: {case} on {peer.name} had errors:\n{text}")
    return rate


def table(results):
    print(f"{'case':16} {'gyre req/s':>23} {'nginx req/s':>23} {'ratio':>6} {'asked':>6} {'CPU us/req':>15}")
    for case, row in results.items():
        cells = [f"{statistics.median(row[name]):.0f} ({min(row[name]):.0f}-{max(row[name]):.0f})" for name in ("gyre", "nginx")]
        asked = f"{row['asked']:.1f}" if row["asked"] else "-"
        cpu = " / ".join(f"{statistics.median(row[f'{name}_cpu_us']):.1f}" for name in ("gyre", "nginx"))
        print(f"{case:16} {cells[0]:>23} {cells[1]:>23} {row['ratio']:6.2f} {asked:>6} {cpu:>15}")


def main():
    parser = argparse.ArgumentParser(prog="bench/http.sh", description="Gyre against nginx over HTTP, in the same run.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of every case (default 5)")
    parser.add_argument("--seconds", type=int, default=3, help="seconds per measurement (default 3)")
    parser.add_argument("--only", action="append", metavar="CASE", choices=CASES, help=f"one of {', '.join(CASES)}; repeatable")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument("--gyre", default=str(ROOT / "build/gyre"), help="the program (default build/gyre)")
    options = parser.parse_args()
    missing = [tool for tool in ("wrk", "h2load", "nginx", "openssl", "taskset") if not shutil.which(tool)]
    if missing:
        sys.exit(f"bench: {', '.join(missing)} not found; bench/http.sh installs what is needed")
    folder, peers = pathlib.Path(tempfile.mkdtemp(prefix="gyre-bench-")), []
    try:
        peers = [start_nginx(folder)]
        peers.append(start_gyre(options.gyre, folder))
        put(peers[-1].ports["plain"], "/bench", b"")
        cases = options.only or list(CASES)
        results = {case: {"gyre": [], "nginx": [], "gyre_cpu_us": [], "nginx_cpu_us": [], "asked": CASES[case][4]} for case in cases}
        for turn in range(options.rounds):
            for case in cases:
                for peer in peers if turn % 2 else reversed(peers):
                    if sys.stderr.isatty():
                        print(f"\rround {turn + 1}/{options.rounds} {case} {peer.name}   ", end="", file=sys.stderr)
                    fill(peer, case)
                    before = cpu_seconds(peer.process)
                    rate = measure(peer, case, options.seconds, folder)
                    results[case][peer.name].append(rate)
                    results[case][f"{peer.name}_cpu_us"].append(
                        1e6 * (cpu_seconds(peer.process) - before) / (rate * options.seconds))
        for row in results.values():
            row["ratio"] = statistics.median(row["gyre"]) / statistics.median(row["nginx"])
        if options.json:
            print(json.dumps({"rounds": options.rounds, "seconds": options.seconds, "results": results}))
        else:
            print(file=sys.stderr) if sys.stderr.isatty() else None
            table(results)
    finally:
        for peer in peers:
            peer.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
