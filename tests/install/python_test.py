"""`pip install ./api/python` against an installed library gives a module that keeps what its README says."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODULE = HERE.parents[1] / "api/python"
PYTHON = "/usr/bin/python3"  # the one whose headers and setuptools come from Debian's packages


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        source = tmp / "source"  # setuptools writes beside what it builds
        shutil.copytree(MODULE, source)
        steps = [["cmake", "--install", build, "--prefix", tmp / "prefix"],
                 [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore", "--no-build-isolation",
                  "--no-deps", "--no-cache-dir", "--no-index", "--target", tmp / "site", source]]
        for step in steps:
            result = subprocess.run(step, env={**os.environ, "PKG_CONFIG_PATH": str(tmp / "prefix/lib/pkgconfig")}, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if result.returncode:
                print(f"{' '.join(map(str, step))}\n{result.stdout}\ninstall/python: 0 passed, 1 failed")
                return 1
        used = subprocess.run([PYTHON, "-X", "dev", "-W", "error", HERE / "python_use.py"], cwd=tmp, text=True,
                              env={**os.environ, "PYTHONPATH": str(tmp / "site"), "PYTHONDONTWRITEBYTECODE": "1"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    ran = re.search(r"^Ran (\d+) tests?", used.stdout, re.M)
    bad = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", used.stdout)))
    if used.returncode or not ran:
        print(used.stdout)
        bad = max(bad, 1)
    print(f"install/python: {(int(ran.group(1)) if ran else 0) + 1 - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
