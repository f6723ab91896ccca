"""How a request names its bucket: by path, by host below a domain, by an alias, by the listener; signed, and changed by SIGHUP."""

import json
import os
import signal

import gyre_server as gs

ASAN = True
KEY, SECRET = "AKIDALICE", "alice-has-a-secret-of-her-own"
CONFIG = {"users": {"alice": {"keys": {KEY: SECRET}}}, "domain": ["s3.test"], "alias": ["kv.test=kv-bucket"],
          "buckets": {"told": {"etag": "md5"}}}


def write(path, config):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def asked(port, host, target, *arguments, signed=True):
    """Status and body of a request to any name, sent to 127.0.0.1 with that name as its Host."""
    words = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-u", f"{KEY}:{SECRET}", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"] if signed else []
    done = gs.curl(*words, "-w", "\n%{http_code}", "--connect-to", f"{host}:{port}:127.0.0.1:{port}", *arguments,
                   f"http://{host}:{port}{target}")
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def put(port, host, target, text):
    return asked(port, host, target, "-X", "PUT", "--data-binary", text)[0]


def hosts_stand_for_buckets():
    port = gs.free_port()
    path = os.path.join(gs.tmpdir(), "gyre.json")
    write(path, CONFIG)
    with gs.Server("--config", path, "--listen", f"127.0.0.1:{port},bucket=kv-bucket") as server:
        main = server.port
        gs.check_eq("a bucket by its host", asked(main, "one.s3.test", "/", "-X", "PUT")[0], 200)
        gs.check_eq("a bucket by its path", asked(main, "s3.test", "/kv-bucket", "-X", "PUT")[0], 200)
        gs.check_eq("an object by host", put(main, "one.s3.test", "/a/year=2026/x%20y", "by host"), 200)
        gs.check_eq("is the same by path", asked(main, "127.0.0.1", "/one/a/year%3D2026/x%20y"), (200, b"by host"))
        gs.check_eq("and below the domain itself", asked(main, "s3.test", "/one/a/year%3D2026/x%20y"), (200, b"by host"))
        gs.check_eq("whatever the case", asked(main, "ONE.S3.Test", "/a/year%3D2026/x%20y")[0], 200)
        gs.check_eq("an object by alias", put(main, "kv.test", "/k", "by alias"), 200)
        gs.check_eq("at the listener's address", asked(port, "127.0.0.1", "/k"), (200, b"by alias"))
        gs.check_eq("by localhost", asked(port, "localhost", "/k"), (200, b"by alias"))
        gs.check_eq("elsewhere the path counts", asked(main, "127.0.0.1", "/kv-bucket/k"), (200, b"by alias"))
        gs.check_eq("a host that stands for none", asked(port, "s3.test", "/kv-bucket/k"), (200, b"by alias"))
        status, body = asked(port, "127.0.0.1", "/?list-type=2&prefix=")
        gs.check("the root of a bucket's host lists it", status == 200 and b"<Name>kv-bucket</Name>" in body and b"<Key>k</Key>" in body, body)
        gs.check_eq("no bucket there", asked(main, "none.s3.test", "/k")[0], 404)
        gs.check_eq("no name of a bucket", asked(main, "a_b.s3.test", "/k")[0], 400)
        gs.check_eq("no signature", asked(main, "one.s3.test", "/a/year%3D2026/x%20y", signed=False)[0], 403)

        # What follows from the file changes when it is read again; what it is signed for does not matter to that.
        told = asked(main, "s3.test", "/told", "-X", "PUT")[0]
        gs.check_eq("a bucket with a rule", told, 200)
        write(path, {**CONFIG, "domain": ["s4.test"], "alias": ["kv.test=one"], "region": "eu-1",
                     "buckets": {"told": {"etag": "opaque", "ttl": "1h", "index": "off"}}})
        server.process.send_signal(signal.SIGHUP)
        gs.check("the domain is another", gs.wait_until(lambda: asked(main, "one.s4.test", "/a/year%3D2026/x%20y")[0] == 200))
        gs.check_eq("the former one is none", asked(main, "one.s3.test", "/a/year%3D2026/x%20y")[0], 400)
        gs.check_eq("the alias stands for another bucket", asked(main, "kv.test", "/k")[0], 404)
        head = asked(main, "one.s4.test", "/", "-I")[1]
        gs.check("the region is another", b"x-amz-bucket-region: eu-1" in head, head)
        gs.check_eq("store", put(main, "s4.test", "/told/k", "hello"), 200)
        head = asked(main, "s4.test", "/told/k", "-I")[1]
        gs.check("ETags are opaque now", b"5d41402abc4b2a76b9719d911017c592" not in head and b"etag:" in head.lower(), head)
        gs.check_eq("and it has no index", asked(main, "s4.test", "/told?list-type=2")[0], 501)
        write(path, {**CONFIG, "domain": ["s4.test"]})
        server.process.send_signal(signal.SIGHUP)
        gs.check("once it has one again, all is listed", gs.wait_until(
            lambda: b"<Key>k</Key>" in asked(main, "s4.test", "/told?list-type=2")[1]))


if __name__ == "__main__":
    gs.run(hosts_stand_for_buckets)
    gs.finish()
