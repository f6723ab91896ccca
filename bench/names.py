#!/usr/bin/env python3
"""What the index of names costs a PUT of 4 KiB, and how long a page of 1,000 names takes among many.

  bench/names.py GYRE [--keys N] [--seconds S] [--rounds N] [--json]

GYRE is the program. The same server has two buckets, one with an index and one without; each round measures both, in alternating order,
by wrk with 64 connections and keys that never repeat and are in no order. Then --keys names (1,000,000 by default) are stored and pages of
1,000 are fetched: plain, with a prefix, with a delimiter, at random places. Resident memory of the server is read before and after.
"""
import argparse
import http.client
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

LUA = """
local thread_count = 0
function setup(thread) thread_count = thread_count + 1; thread:set("number", thread_count) end
function init(args)
  bucket = args[1]; salt = args[2]; count = 0
  wrk.method = "PUT"; wrk.body = string.rep("x", 4096)
  math.randomseed(tonumber(salt) * 100 + number)
end
function request()
  count = count + 1
  return wrk.format("PUT", string.format("/%s/%08x/%d-%s-%d", bucket, math.random(0, 2147483647), number, salt, count))
end
"""


def serve(gyre, folder, size):
    config = folder / "gyre.json"
    config.write_text(json.dumps({"listen": "127.0.0.1:0", "data": str(folder / "data"), "size": size, "etag": "opaque",
                                  "buckets": {"dark": {"etag": "opaque", "index": "off"}}}))
    log = open(folder / "log", "wb")
    server = subprocess.Popen([gyre, "serve", "--config", str(config)], stdout=subprocess.PIPE, stderr=log, text=True)
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)", server.stdout.readline()).group(1))
    return server, port


def ask(connection, method, target, body=None):
    connection.request(method, target, body)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise SystemExit(f"{method} {target}: {answer.status} {text[:300]!r}")
    return text


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(port, bucket, salt, seconds, script):
    text = subprocess.run(["wrk", "-t2", "-c64", f"-d{seconds}s", "-s", str(script), f"http://127.0.0.1:{port}", "--", bucket, str(salt)],
                          capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text:
        raise SystemExit(text)
    return float(re.search(r"Requests/sec:\s+([0-9.]+)", text).group(1))


def resident_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))


def private_kib(pid):
    """Without what is mapped from the store's files."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))


def fill(port, n):
    def work(part):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for i in range(part, n, 4):
            ask(connection, "PUT", f"/many/{i * 7919 % 1009:04d}/{i * 104729 % 100003:06d}/{i}", b"x")
    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


def pages(port, query_of, n=30):
    connection, times = http.client.HTTPConnection("127.0.0.1", port), []
    for _ in range(n):
        target = "/many?list-type=2&max-keys=1000" + query_of()
        begin = time.monotonic()
        text = ask(connection, "GET", target)
        times.append((time.monotonic() - begin) * 1000)
        entries = text.count(b"<Contents>") + text.count(b"<CommonPrefixes>")
    return {"ms_median": round(statistics.median(times), 2), "ms_max": round(max(times), 2), "entries": entries}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gyre")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gyre-names-", dir=os.environ.get("TMPDIR")))
    server, port = serve(options.gyre, folder, "3GiB")
    result = {}
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for bucket in ("dark", "light", "many"):
            ask(connection, "PUT", f"/{bucket}")
        script = folder / "put.lua"
        script.write_text(LUA)
        rates, cpu_us = {"dark": [], "light": []}, {"dark": [], "light": []}
        for number in range(options.rounds):
            for bucket in ("dark", "light") if number % 2 == 0 else ("light", "dark"):
                before = cpu_s(server.pid)
                rates[bucket].append(rate(port, bucket, number, options.seconds, script))
                cpu_us[bucket].append((cpu_s(server.pid) - before) * 1e6 / (rates[bucket][-1] * options.seconds))
        ratios = [light / dark for light, dark in zip(rates["light"], rates["dark"])]
        result["put-4k"] = {"without": round(statistics.median(rates["dark"])), "with": round(statistics.median(rates["light"])),
                            "ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios],
                            "cpu_us_without": round(statistics.median(cpu_us["dark"]), 1),
                            "cpu_us_with": round(statistics.median(cpu_us["light"]), 1)}
        if options.keys:
            fill(port, options.keys)
            result["rss_kib_before"] = private_kib(server.pid)
            result["plain"] = pages(port, lambda: "")
            result["after"] = pages(port, lambda: f"&start-after={random.randrange(1009):04d}/{random.randrange(100003):06d}")
            result["prefix"] = pages(port, lambda: f"&prefix={random.randrange(1009):04d}/")
            result["delimiter"] = pages(port, lambda: "&delimiter=/")
            result["deep-delimiter"] = pages(port, lambda: f"&delimiter=/&prefix={random.randrange(1009):04d}/")
            result["rss_kib_after"] = private_kib(server.pid)
            result["index_bytes_per_key"] = round(sum(p.stat().st_size for p in (folder / "data").glob("names.sqlite*")) / options.keys)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


main()
