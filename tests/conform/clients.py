"""What the scripts with other people's clients share: the clients themselves, a server with users, files to send, comparing.

    import clients

    def goes_both_ways(server):
        clients.run("cp", ["aws", ...], env=clients.aws_environment())
        ...

    clients.main(goes_both_ways)

Clients come from Debian (tests/run installs them), PyPI and npm. The latter two are installed here, in the versions below, into
$XDG_CACHE_HOME/gyre-tests (~/.cache without it), once for each list of versions. A client that cannot be had fails its test.
"""
import fcntl
import filecmp
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import gyre_server as gs  # noqa: E402  (found through the line above)

KEY, SECRET = "AKIDALICE", "alice-has-a-secret-of-her-own"
REGION = "us-east-1"
SIZES = (0, 1, 5 << 20, (8 << 20) + 1)
BIG_SIZES = (100 << 20, 2 << 30) if gs.FULL else ()
TREE_FILES = 2000 if gs.FULL else 40
STORE = "6G" if gs.FULL else "256M"
PYTHON = {
    "old": ["boto3==1.26.165"],
    "current": ["boto3==1.44.8", "awscli==1.46.3", "awscrt==0.38.1"],
}
NODE = ["@aws-sdk/client-s3@3.1175.0", "@aws-sdk/lib-storage@3.1175.0", "@aws-sdk/s3-request-presigner@3.1169.0", "minio@8.0.7"]


# ---- Clients ----

def installed(kind, versions, install):
    """The directory of these versions, filled by install(directory) if it is new."""
    name = f"{kind}-{hashlib.sha256(repr((sys.version_info[:2], versions)).encode()).hexdigest()[:12]}"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gyre-tests"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / name).exists():
            half = cache / f"{name}.half"  # never taken for a whole one
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            done = install(half)
            if done.returncode != 0:
                sys.exit(f"{' '.join(versions)} cannot be installed:\n{done.stdout}")
            half.rename(cache / name)
    return cache / name


def install_with(command, directory):
    return subprocess.run([*command], cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=900, check=False)


def python_packages(name):
    """A directory for PYTHONPATH with the packages of PYTHON[name]."""
    return installed(f"python-{name}", PYTHON[name], lambda directory: install_with(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location",
         "--root-user-action=ignore", "--no-compile", "--target", ".", *PYTHON[name]], directory))


def node_modules():
    """A directory with a node_modules of NODE."""
    if not shutil.which("npm"):
        sys.exit("npm is missing: apt-get install npm")
    return installed("node", NODE, lambda directory: install_with(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", ".", *NODE], directory))


def debian(program):
    """Debian's own, not one that stands before it in the path."""
    path = f"/usr/bin/{program}"
    if not os.path.exists(path):
        sys.exit(f"{path} is missing: tests/run installs it (deploy/lib.sh, conform_packages)")
    return path


def aws_environment(**more):
    """What the AWS libraries read, and nothing of the caller's."""
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": REGION, "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "PYTHONWARNINGS": "ignore", **more}


def run(what, command, env=None, limit_s=1800):
    """Runs a client to its end, which has to be a success. Of the caller's environment it sees the path alone: proxies, authorities
    and credentials of the machine are none of its business."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(gs.tmpdir()), "TMPDIR": str(gs.tmpdir()), "LANG": "C.UTF-8"}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=limit_s, check=False,
                          cwd=gs.tmpdir(), env={**environment, **(env or {})})
    gs.check(what, done.returncode == 0, f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def run_program(what, name, url, *arguments, packages="current", env=None):
    """One of programs/: a Python program with some packages, given the address and directories. It prints the checks that it made,
    one a line: what, and `ok` or what is wrong."""
    environment = aws_environment(PYTHONPATH=str(python_packages(packages)), **(env or {}))
    done = run(f"{what} ends", [sys.executable, HERE / "programs" / name, url, *arguments], environment)
    take_checks(what, done.stdout)


def take_checks(what, text):
    lines = text.splitlines()
    gs.check(f"{what} made checks", lines)
    for line in lines:
        check, _, outcome = line.rpartition(": ")
        gs.check(f"{what}: {check}", outcome == "ok", outcome)


# ---- Files ----

def make_file(path, size):
    """Bytes of which every MiB is another one."""
    block = gs.bytes_of(min(size, 1 << 20), size)
    with open(path, "wb") as file:
        for at in range(0, size, 1 << 20):
            file.write((at.to_bytes(8, "little") + block[8:])[: size - at])


def make_files(name, sizes=SIZES):
    """A new directory with one file of each size."""
    directory = gs.tmpdir() / name
    directory.mkdir()
    for size in sizes:
        make_file(directory / f"size-{size}", size)
    return directory


def make_tree(name):
    """A new directory with many small files in others, whose names are awkward, and one of each size."""
    directory = make_files(name)
    for i in range(TREE_FILES - len(SIZES)):
        path = directory / f"d{i % 7}" / ("with space", "plus+and&", "größe", "per%25cent=")[i % 4] / f"{i}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gs.bytes_of(i * 37 % 9000, i))
    return directory


def files_of(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def check_same(what, one, two):
    """Two directories hold the same files with the same bytes."""
    names = files_of(one)
    gs.check(f"{what}: the same names", names and names == files_of(two), sorted(set(names) ^ set(files_of(two)))[:4])
    differ = [name for name in names if not (two / name).is_file() or not filecmp.cmp(one / name, two / name, shallow=False)]
    gs.check(f"{what}: the same bytes", not differ, differ[:4])


def new_directory(name):
    directory = gs.tmpdir() / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


def big_files(what, up, down):
    """With --full: up(file, key) and down(key, file) for each big size, on its own because of the space."""
    for size in BIG_SIZES:
        one, two = gs.tmpdir() / "big-up", gs.tmpdir() / "big-down"
        make_file(one, size)
        up(one, f"big-{size}")
        down(f"big-{size}", two)
        gs.check(f"{what}: {size} bytes go both ways", two.exists() and filecmp.cmp(one, two, shallow=False))
        one.unlink()
        two.unlink(missing_ok=True)


# ---- The server ----

def config():
    path = gs.tmpdir() / "gyre.json"
    path.write_text(json.dumps({"users": {"alice": {"keys": {KEY: SECRET}}}}), encoding="utf-8")
    return path


def main(*tests):
    """Calls each with a server that has users, all in one store; the last thing a script does."""
    with gs.Server("--config", config(), size=STORE, tls=True) as server:
        gs.run(*(lambda test=test: test(server) for test in tests))
        gs.check("no secret is logged", SECRET not in server.log())
    gs.finish()
