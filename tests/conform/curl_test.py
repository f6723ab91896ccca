"""curl --aws-sigv4: files both ways in one piece and from a pipe, ranges, a list, conditions; and that a wrong secret gets nothing."""
import filecmp
import subprocess

import clients
from clients import gs


def curl(url, *arguments, secret=clients.SECRET):
    return gs.curl("-f", "-k", "--aws-sigv4", f"aws:amz:{clients.REGION}:s3", "-u", f"{clients.KEY}:{secret}",
                   "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", *arguments, url, limit_s=1800)


def goes_both_ways(server):
    for base in (server.url, server.tls_url):
        bucket, down = f"{base}/curl-{base.split(':')[0]}", gs.tmpdir() / "down"
        gs.check_eq(f"bucket {bucket}", curl(bucket, "-X", "PUT").returncode, 0)
        files = clients.make_files(f"up-{base.split(':')[0]}")

        def up(file, key):
            done = curl(f"{bucket}/{key}", "-T", file)
            gs.check(f"{key} goes up", done.returncode == 0, done.stderr)

        def get(key, file):
            done = curl(f"{bucket}/{key}", "-o", file)
            gs.check(f"{key} comes down", done.returncode == 0, done.stderr)

        for file in sorted(files.iterdir()):
            if file.stat().st_size:
                up(file, file.name)
            else:  # with a length that is signed, and over HTTP/2 without a body
                done = curl(f"{bucket}/{file.name}", "-X", "PUT", "-H", "Content-Length: 0")
                gs.check(f"{file.name} goes up", done.returncode == 0, done.stderr)
            get(file.name, down)
            gs.check(f"{file.name} is the same", filecmp.cmp(file, down, shallow=False))
            down.unlink()
        clients.big_files(bucket, up, get)
        last = max(files.iterdir(), key=lambda path: path.stat().st_size)
        part = curl(f"{bucket}/{last.name}", "-r", "1000-70000")
        gs.check("a range", part.stdout == last.read_bytes()[1000:70001], part.stderr)
        listed = curl(f"{bucket}/?delimiter=&list-type=2&prefix=size-")
        gs.check_eq("all are listed", listed.stdout.count(b"<Key>size-"), len(clients.SIZES))
        gs.check_eq("what is there is not replaced", curl(f"{bucket}/size-1", "-H", "If-None-Match: *", "-T", last).returncode, 22)
        gs.check_eq("a wrong secret", curl(f"{bucket}/size-1", secret="not-the-secret").returncode, 22)


def takes_a_pipe(server):
    """The body comes chunked, and curl signs the hash of nothing for it."""
    bucket, body = f"{server.url}/piped", gs.bytes_of(3 << 20)
    curl(bucket, "-X", "PUT")
    done = subprocess.run(["curl", "-sS", "-f", "--aws-sigv4", f"aws:amz:{clients.REGION}:s3", "-u", f"{clients.KEY}:{clients.SECRET}",
                           "-T", "-", f"{bucket}/year=2020/a+b"], input=body, capture_output=True, timeout=300, check=False)
    gs.check("a pipe goes up", done.returncode == 0, done.stderr)
    gs.check("and is whole", curl(f"{bucket}/year=2020/a+b").stdout == body)


clients.main(goes_both_ways, takes_a_pipe)
