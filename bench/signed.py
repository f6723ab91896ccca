#!/usr/bin/env python3
"""What signatures cost: PUT and GET of 4 KiB with and without one, and long PUTs with MD5 and a signed SHA-256 against the sum of their parts.

  bench/signed.py GYRE [--seconds S] [--rounds N] [--gib N] [--streams N] [--json]

GYRE is the program. Short requests: wrk with 64 connections and 256 keys, each request signed beforehand (the server verifies every one),
in alternating order with unsigned ones to a bucket that everybody may use. Long ones: --streams processes send bodies of 64 MiB; the bound
is cores / (CPU seconds for a GiB of MD5, of SHA-256, of what the server takes without either, and of the client), measured in the same run.
cpu_ratio is that sum over what was really spent: what `ratio` would be with nothing else on the machine and no core idle.
"""
import argparse
import hashlib
import http.client
import json
import multiprocessing
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))
import sigv4  # noqa: E402  (found through the line above)

KEY, SECRET = "AKIDBENCH", "the-secret-of-the-bench"
KEYS, CONNECTIONS, BODY = 256, 64, b"x" * 4096
LONG = 64 << 20
CORES = os.cpu_count()


def serve(gyre, folder, size):
    config = folder / "gyre.json"
    config.write_text(json.dumps({"listen": "127.0.0.1:0", "data": str(folder / "data"), "size": size,
                                  "users": {"bench": {"keys": {KEY: SECRET}}},
                                  "everyone": {"open": ["read", "write", "list"], "bare": ["read", "write", "list"]},
                                  "buckets": {"bare": {"etag": "opaque"}}}))
    server = subprocess.Popen([gyre, "serve", "--config", str(config)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)", server.stdout.readline()).group(1))
    return server, port


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fields_of(signer, method, path, host, payload):
    return {} if signer is None else signer.headers(method, path, host=host, payload=payload)


def ask(port, method, path, body=None, signer=None, payload=sigv4.UNSIGNED):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    fields = fields_of(signer, method, path, f"127.0.0.1:{port}", payload)
    connection.request(method, path, body, fields)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")


# ---- Short requests ----

def script_of(folder, name, method, port, signer, payload):
    """A wrk script that goes through requests made beforehand."""
    lines = ["local requests = {}"]
    for i in range(KEYS):
        fields = fields_of(signer, method, f"/open/{i}", f"127.0.0.1:{port}", payload)
        fields.pop("host", None)
        table = ", ".join(f'["{field}"]="{value}"' for field, value in fields.items())
        body = f'string.rep("x", {len(BODY)})' if method == "PUT" else "nil"
        lines.append(f'requests[{i + 1}] = wrk.format("{method}", "/open/{i}", {{{table}}}, {body})')
    path = folder / f"{name}.lua"
    path.write_text("local count = 0\nlocal requests\nfunction init(args)\n  wrk.headers[\"Host\"] = \"127.0.0.1:" + str(port) + "\"\n  "
                    + "\n  ".join(lines).replace("local requests = {}", "requests = {}") +
                    f"\nend\nfunction request()\n  count = count + 1\n  return requests[count % {KEYS} + 1]\nend\n")
    return path


def rate(port, script, seconds):
    text = subprocess.run(["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), f"http://127.0.0.1:{port}"],
                          capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text:
        raise SystemExit(f"{script.name}: {text}")
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", text).group(1))


def short_requests(folder, server, port, options):
    result = {}
    signer = sigv4.Signer(KEY, SECRET)
    for i in range(KEYS):
        ask(port, "PUT", f"/open/{i}", BODY)
    hashed = sigv4.sha256(BODY)
    for method, payload, name in (("GET", sigv4.UNSIGNED, "get-4k"), ("PUT", sigv4.UNSIGNED, "put-4k"), ("PUT", hashed, "put-4k-hashed")):
        scripts = {"unsigned": script_of(folder, f"{name}-unsigned", method, port, None, None),
                   "signed": script_of(folder, f"{name}-signed", method, port, signer, payload)}
        rates, cpu_us = {"unsigned": [], "signed": []}, {"unsigned": [], "signed": []}
        for number in range(options.rounds):
            for kind in sorted(scripts, reverse=bool(number % 2)):
                before = cpu_s(server.pid)
                rates[kind].append(rate(port, scripts[kind], options.seconds))
                cpu_us[kind].append((cpu_s(server.pid) - before) * 1e6 / (rates[kind][-1] * options.seconds))
        ratios = [one / other for one, other in zip(rates["signed"], rates["unsigned"])]
        result[name] = {"unsigned": round(statistics.median(rates["unsigned"])), "signed": round(statistics.median(rates["signed"])),
                        "ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios],
                        "cpu_us_unsigned": round(statistics.median(cpu_us["unsigned"]), 1),
                        "cpu_us_signed": round(statistics.median(cpu_us["signed"]), 1)}
    return result


# ---- Long bodies ----

def send(port, path, count, signed):
    """Stores one body again and again; its hash is known, as of a file that was hashed before."""
    body = memoryview(bytes(1 << 20) * (LONG >> 20))
    payload = hashlib.sha256(body).hexdigest() if signed else sigv4.UNSIGNED
    signer = sigv4.Signer(KEY, SECRET) if signed else None
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    for _ in range(count):
        ask(port, "PUT", path, body, signer, payload)
    took = time.monotonic() - began
    now = resource.getrusage(resource.RUSAGE_SELF)
    return took, now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime


def streams(server, port, bucket, options, signed):
    """(GiB/s, CPU seconds for a GiB of the server, of the clients)"""
    count = max(1, (options.gib << 30) // LONG // options.streams)
    before = cpu_s(server.pid)
    with multiprocessing.Pool(options.streams) as pool:
        done = pool.starmap(send, [(port, f"/{bucket}/stream-{i}", count, signed) for i in range(options.streams)], chunksize=1)
    gib = count * options.streams * LONG / (1 << 30)
    return gib / max(took for took, _ in done), (cpu_s(server.pid) - before) / gib, sum(cpu for _, cpu in done) / gib


def hash_s(name):
    """CPU seconds for a GiB."""
    block, digest = bytes(1 << 20), hashlib.new(name)
    began = time.process_time()
    for _ in range(256):
        digest.update(block)
    return (time.process_time() - began) * 4


def long_bodies(server, port, options):
    result = []
    for _ in range(options.rounds):
        _, bare, client = streams(server, port, "bare", options, False)
        parts = {"md5": hash_s("md5"), "sha256": hash_s("sha256"), "ingest": bare, "client": client}
        bound = CORES / sum(parts.values())
        gib_s, server_s, client_s = streams(server, port, "open", options, True)
        result.append({"gib_s": round(gib_s, 3), "bound": round(bound, 3), "ratio": round(gib_s / bound, 3),
                       "cpu_ratio": round(sum(parts.values()) / (server_s + client_s), 3),
                       "server_cpu_s_gib": round(server_s, 3), "client_cpu_s_gib": round(client_s, 3),
                       **{f"{name}_s_gib": round(value, 3) for name, value in parts.items()}})
    return sorted(result, key=lambda one: one["ratio"])[len(result) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gyre")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gib", type=int, default=4)
    parser.add_argument("--streams", type=int, default=2 * CORES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gyre-signed-", dir=os.environ.get("TMPDIR")))
    server, port = serve(options.gyre, folder, "2GiB")
    try:
        signer = sigv4.Signer(KEY, SECRET)
        for bucket in ("open", "bare"):
            ask(port, "PUT", f"/{bucket}", None, signer)
        result = short_requests(folder, server, port, options)
        result["long-puts"] = long_bodies(server, port, options)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
