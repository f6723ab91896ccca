"""The program as a person meets it: help, versions, mistakes on the command line and in the file, stat and check."""

import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import gyre_server as gs


def one_line(result, status, *words):
    """A mistake ends with `status` and one line on stderr that holds the words."""
    what = " ".join(map(str, result.args[1:]))
    lines = result.stderr.strip().splitlines()
    gs.check(f"gyre {what}: exit status and one line", result.returncode == status and len(lines) == 1,
             f"{result.returncode}: {result.stderr}")
    for word in words:
        gs.check(f"gyre {what}: names {word!r}", word in result.stderr, result.stderr)


def help_and_version():
    for arguments in (["--help"], ["help"], ["help", "version"], ["version", "--help"], ["serve", "--help"], ["stat", "--help"], ["check", "--help"],
                      ["verify", "--help"]):
        result = gs.gyre(*arguments)
        gs.check(f"gyre {' '.join(arguments)}", result.returncode == 0 and "Usage" in result.stdout and not result.stderr, result)
    text = gs.gyre("serve", "--help").stdout
    for flag in ("--config", "--listen", "--data", "--size", "--tls-cert", "--tls-key", "--tls-self-signed", "--threads", "--log-level"):
        gs.check(f"--help names {flag}", flag in text)
    version = gs.gyre("version")
    for arguments in (["version"], ["help"], ["serve", "--help"]):
        with open("/dev/full", "w") as full:
            lost = subprocess.run([gs.GYRE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        gs.check(f"gyre {' '.join(arguments)}: what cannot be printed is a failure", lost.returncode == 1 and "standard output" in lost.stderr and lost.stderr.count("\n") == 1, lost)
    gs.check("gyre version", version.returncode == 0 and re.match(r"gyre \d+\.\d+\.\d+", version.stdout), version)


def mistakes(tmp):
    one_line(gs.gyre("serv"), 2, "serv", "serve")
    one_line(gs.gyre("version", "--frob"), 2, "--frob", "version")
    one_line(gs.gyre("version", "more"), 2, "more")
    one_line(gs.gyre("help", "serv"), 2, "serv", "serve")
    one_line(gs.gyre("serve", "--lisen", "127.0.0.1:0"), 2, "--lisen", "--listen")
    one_line(gs.gyre("serve", "--size", "tiny"), 2, "--size", "tiny")
    one_line(gs.gyre("serve", "--size", "1M", "--data", tmp / "d1"), 2, "64")
    one_line(gs.gyre("serve", "--listen", "nowhere"), 2, "nowhere")
    one_line(gs.gyre("serve", "--listen", "127.0.0.1:99999"), 2, "99999")
    one_line(gs.gyre("serve", "--threads", "many"), 2, "many")
    one_line(gs.gyre("serve", "--log-level", "inof"), 2, "inof", "info")
    one_line(gs.gyre("serve", "--listen"), 2, "--listen")
    one_line(gs.gyre("serve", "--listen", "tls:127.0.0.1:0", "--data", tmp / "d2", "--size", "64M"), 2, "--tls-self-signed")
    one_line(gs.gyre("serve", "stray"), 2, "stray")
    one_line(gs.gyre("verify", "--listen", "x"), 2, "--listen", "gyre verify --help")
    one_line(gs.gyre("serve", "--config", tmp), 1, "--config", "directory")
    one_line(gs.gyre("serve", "--config", "/dev/null"), 2, "empty", "JSON object")
    one_line(gs.gyre("serve", "--config", tmp / "none.json"), 1, "none.json")
    one_line(gs.gyre("serve", "--listen", "tls:127.0.0.1:0", "--tls-cert", tmp / "no.pem", "--tls-key", tmp / "no.pem",
                     "--data", tmp / "d3", "--size", "64M"), 1, "no.pem")
    (tmp / "half").mkdir()
    (tmp / "half/stripe-0000.gyre").touch()
    for command in ("stat", "check", "verify"):
        one_line(gs.gyre(command, "--data", tmp / "half"), 1, "stripe-0000.gyre", "volume.gyre is missing")
    one_line(gs.gyre("stat", "--data", tmp / "nothing"), 1, "nothing")
    one_line(gs.gyre("check", "--data", tmp / "nothing"), 1, "nothing")
    one_line(gs.gyre("verify", "--data", tmp / "nothing"), 1, "nothing")
    plain = tmp / "file"
    plain.write_text("x")
    one_line(gs.gyre("serve", "--data", plain, "--size", "64M", "--listen", "127.0.0.1:0"), 1, str(plain))
    one_line(gs.gyre("serve", "--data", tmp / "huge", "--size", "900T", "--listen", "127.0.0.1:0"), 1, "huge")
    full = gs.gyre("serve", "--data", tmp / "huge", "--size", "100T", "--listen", "127.0.0.1:0")
    one_line(full, 1, "huge", "free some space")
    free, needed, more = map(int, re.search(r"(\d+) MiB free and the store needs (\d+) MiB, (\d+) MiB more", full.stderr).groups())
    gs.check_eq("what a disk has and lacks is what the store needs", free + more, needed)
    gs.check("a failed creation leaves no big files", sum(path.stat().st_blocks for path in tmp.rglob("*") if path.is_file()) < 100000)
    for text, words in (
        ('{"lisen": ["127.0.0.1:0"]}', ("lisen", "listen")),
        ('{"size": true}', ("size",)),
        ('{"size": "64M",', ("line",)),
        ('[]', ("object",)),
        ('', ("empty", "object")),
    ):
        config = tmp / "bad.json"
        config.write_text(text)
        one_line(gs.gyre("serve", "--config", config), 2, "bad.json", *words)


def certificates(tmp):
    """What is wrong with a certificate or key, in words of our own; nobody is asked for a pass phrase."""
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=a"]
    for name, phrase in (("a", ["-nodes"]), ("b", ["-nodes"]), ("locked", ["-passout", "pass:secret"])):
        subprocess.run([*request, *phrase, "-keyout", tmp / f"{name}.key", "-out", tmp / f"{name}.pem"], check=True, capture_output=True)
    (tmp / "junk.pem").write_bytes(gs.bytes_of(3000))
    (tmp / "empty.pem").touch()
    (tmp / "cut.pem").write_bytes((tmp / "a.pem").read_bytes()[:200])
    for cert, key, words in (
        ("junk", None, ("--tls-cert", "junk.pem", "PEM form")),
        ("empty", None, ("--tls-cert", "empty.pem", "PEM form")),
        ("cut", None, ("--tls-cert", "cut.pem", "bad end line")),
        ("a", None, ("--tls-key", "a.pem", "PEM form", "--tls-key FILE")),
        ("a", "junk.pem", ("--tls-key", "junk.pem", "PEM form")),
        ("a", "b.key", ("--tls-key", "b.key", "does not belong to the certificate")),
        ("locked", "locked.key", ("--tls-key", "locked.key", "pass phrase")),
    ):
        one_line(gs.gyre("serve", "--listen", "tls:127.0.0.1:0", "--data", tmp / "d5", "--size", "64M", "--tls-cert", tmp / f"{cert}.pem",
                         *(("--tls-key", tmp / key) if key else ())), 1, *words)


def port_taken(tmp):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        one_line(gs.gyre("serve", "--listen", f"127.0.0.1:{port}", "--data", tmp / "d4", "--size", "64M"), 1, str(port), "in use")


def configured(tmp):
    """A file can say all that flags can, and flags win."""
    config = tmp / "gyre.json"
    port = gs.free_port()
    config.write_text(json.dumps({"listen": [f"127.0.0.1:{port}"], "data": [str(tmp / "wrong")], "size": "128M", "threads": 1,
                                  "buckets": {"quick": {"etag": "opaque"}}}))
    with gs.Server("--config", config, size="128M") as server:
        server.request("PUT", "/quick")
        server.request("PUT", "/slow")
        opaque = server.request("PUT", "/quick/a", b"same").headers["etag"]
        again = server.request("PUT", "/quick/b", b"same").headers["etag"]
        plain = server.request("PUT", "/slow/a", b"same").headers["etag"]
        gs.check_eq("the ETag of a plain bucket is the MD5", plain, '"51037a4a37730f52c8732586d3aaa316"')
        gs.check("opaque ETags are not, and differ", opaque != plain and opaque != again, f"{opaque} {again}")
        gs.check_eq("an opaque ETag is the object's", server.request("HEAD", "/quick/a").headers["etag"], opaque)
        gs.check("--data wins over the file", not (tmp / "wrong").exists())


def first_words(tmp):
    """On start it says where it listens, where the data is, and what to try; the lines work."""
    with gs.Server(size="64M") as server:
        text = server.log()
        gs.check("the address is printed", f"127.0.0.1:{server.port}" in text, text)
        gs.check("the place of the data is printed", str(server.data) in text, text)
        lines = [line.strip() for line in text.splitlines() if line.strip().startswith("curl ")]
        gs.check_eq("three curl lines", len(lines), 3)
        for line in lines:
            status = os.system(f"cd {tmp} && echo hello > hello.txt && {line} > out.txt 2> err.txt")
            gs.check(f"works: {line}", status == 0, (tmp / "err.txt").read_text())
        check = gs.gyre("check", "--data", server.data)
        gs.check("check works beside a server", check.returncode == 0, check)
        beside = gs.gyre("stat", "--data", server.data, "--json")
        verify = gs.gyre("verify", "--data", server.data, "--json")
        numbers = json.loads(verify.stdout)
        gs.check("verify works beside a server", verify.returncode == 0 and numbers["sound"] and numbers["documents"] >= 2, verify)
        gs.check("stat works beside a server", beside.returncode == 0 and json.loads(beside.stdout)["documents"] >= 2, beside)
    stat = gs.gyre("stat", "--data", server.data, "--json")
    numbers = json.loads(stat.stdout)
    gs.check("stat --json", stat.returncode == 0 and numbers["documents"] >= 2 and numbers["capacity_bytes"] > 0, stat)
    human = gs.gyre("stat", "--data", server.data)
    gs.check("stat", human.returncode == 0 and "documents" in human.stdout, human)
    verify = gs.gyre("verify", "--data", server.data, "--rate", "1G")
    gs.check("verify", verify.returncode == 0 and "sound" in verify.stdout.splitlines(), verify)
    check = gs.gyre("check", "--data", server.data, "--json")
    gs.check("check --json", check.returncode == 0 and json.loads(check.stdout)["violations"] == 0, check)


def closed_streams(tmp):
    """What is printed to a stream that came closed goes nowhere, least of all into the store."""
    data = tmp / "closed"
    with gs.Server(size="64M", data=data):
        pass
    for command in ("stat", "check", "verify"):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
            result = subprocess.run(["bash", "-c", f'exec "$0" {command} --data "$1" {closed}', gs.GYRE, str(data)],
                                    capture_output=True, text=True, timeout=60, check=False)
            gs.check_eq(f"gyre {command} {closed}: exit status", result.returncode, 1 if ">&-" in closed.replace("2>&-", "") else 0)
            gs.check(f"gyre {command} {closed}: the lock file is left alone", b"MiB" not in (data / "lock.gyre").read_bytes())
        full = subprocess.run(["bash", "-c", f'exec "$0" {command} --data "$1" >/dev/full', gs.GYRE, str(data)], capture_output=True,
                              text=True, timeout=60, check=False)
        gs.check(f"gyre {command} says that its result could not be written", full.returncode == 1 and "written" in full.stderr and full.stderr.count("\n") == 1, full)
    with gs.Server(size="64M", data=data) as server:
        gs.check("and the store opens", server.request("GET", "/").status == 200)


def open_files(tmp):
    """The limit on open files is raised as far as it goes; where that is not enough it is said."""
    for limit, threads in ((8, 1), (200, 60)):
        refused = subprocess.run(["bash", "-c", f'ulimit -n {limit}; exec "$0" serve --data "$1" --threads {threads} --listen 127.0.0.1:0',
                                  gs.GYRE, str(tmp / "no-files")], capture_output=True, text=True, timeout=60, check=False)
        gs.check(f"ulimit -n {limit}: too few for {threads} threads is said in a line", refused.returncode == 1
                 and refused.stderr.count("\n") == 1 and f"open files is {limit}" in refused.stderr, refused)
    for limit, enough in (("-Sn 40", True), ("-n 300", False)):
        port = gs.free_port()
        log = open(tmp / "files.log", "w+")
        process = subprocess.Popen(["bash", "-c", f'ulimit {limit}; exec "$0" serve --data "$1" --size 64M --listen "$2"', gs.GYRE,
                                    str(tmp / "files"), f"127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            gs.check(f"ulimit {limit}: it starts", gs.wait_until(lambda: "try:" in (tmp / "files.log").read_text()))
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(150)]
            for client in clients:
                client.settimeout(120)
                client.sendall(b"HEAD /none HTTP/1.1\r\nHost: x\r\n\r\n")
            gs.check(f"ulimit {limit}: 150 clients are answered", all(client.recv(12) == b"HTTP/1.1 404" for client in clients))
            for client in clients:
                client.close()
            process.terminate()
            gs.check_eq(f"ulimit {limit}: it stops", process.wait(120), 0)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        gs.check_eq(f"ulimit {limit}: a warning", "limit on open files" in log.read(), not enough)


def another_size(tmp):
    """A store keeps its size; who asks for another one is told, by every command."""
    data = tmp / "sized"
    for size, word in (("65M", False), ("65M", False), ("128M", True), ("100M", True), ("70M", True), ("64M", True)):
        with gs.Server(size=size, data=data) as server:
            server.request("GET", "/")
        gs.check_eq(f"--size {size} of a store of 65M: a warning", "another size" in server.log(), word)
        server.log_path.unlink()
    for command in ("stat", "check", "verify"):
        for size, word in (("", False), ("=65M", False), ("=70M", True), ("=5G", True)):
            told = gs.gyre(command, "--data", f"{data}{size}", "--json")
            gs.check_eq(f"gyre {command} --data D{size} of a store of 65M: a line", len(told.stderr.splitlines()), int(word))
            gs.check(f"gyre {command} --data D{size}: goes on", told.returncode == 0 and json.loads(told.stdout), told)
            gs.check(f"gyre {command} --data D{size}: names both", not word or ("64." in told.stderr and size[1:2] in told.stderr), told)
    with gs.Server("--segment-size", "8M", "--data", f"{tmp / 'a'}=100M", "--data", f"{tmp / 'b'}=90M", data=tmp / "c") as server:
        pass
    two = [f"--data={tmp / 'b'}=90M", f"--data={tmp / 'a'}=100M", f"--data={tmp / 'c'}"]
    told = gs.gyre("stat", *two)
    gs.check("no line about three directories, whatever their order and segments", told.returncode == 0 and not told.stderr, told)


def main():
    tmp = pathlib.Path(tempfile.mkdtemp(dir=gs.tmpdir()))
    gs.run(help_and_version, lambda: mistakes(tmp), lambda: certificates(tmp), lambda: port_taken(tmp), lambda: configured(tmp), lambda: first_words(tmp),
           lambda: closed_streams(tmp), lambda: open_files(tmp), lambda: another_size(tmp))
    gs.finish()


if __name__ == "__main__":
    main()
