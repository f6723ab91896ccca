"""Builds what is needed and runs all tests; called by tests/run, which says how to use it.

A test is a command that prints `NAME: N passed, M failed` (perhaps `, K skipped`) last; one that prints no such line counts as one
test, passed if it exits 0. Everything a test starts runs in the test's own session and is ended with it: what a test leaves
running is a failure of that test.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORES = os.cpu_count() or 1
SIGN_OF_LIFE_S = 60  # after so long without a result, what is running is named
SUMMARY = re.compile(r"^(?:\S.*: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
BUILDS = {
    "build": [],
    "build-asan": ["-DGYRE_SANITIZE=address,undefined,fuzzer", "-DGYRE_SIM=ON"],
    "build-tsan": ["-DGYRE_SANITIZE=thread"],
}
UNIT_GROUPS = {"build": "unit", "build-asan": "unit-asan", "build-tsan": "unit-tsan"}
COMPILERS = {"build": "gcc", "build-asan": "clang", "build-tsan": "clang"}
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "LSAN_OPTIONS": f"suppressions={ROOT}/tests/lsan.supp:print_suppressions=0",
    "TSAN_OPTIONS": f"suppressions={ROOT}/tests/tsan.supp:die_after_fork=0",
}


class Test:
    """One command. `alone`: nothing else runs beside it. `is_long`: takes minutes in this run."""

    def __init__(self, name, command, build=None, env=None, limit_s=180, alone=True, cwd=ROOT, is_long=False):
        self.name, self.command, self.build, self.env = name, command, build, env or {}
        self.limit_s, self.alone, self.cwd, self.is_long = limit_s, alone, cwd, is_long


class Totals:
    passed = failed = skipped = 0
    bad = []
    done = 0  # tests, of `expected` (0: not known)
    expected = 0

    def add(self, name, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if failed:
            self.bad.append(name)


def alive_in(group):
    """Whether a process group has members that still run; those ended but not yet waited for do not count."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(pgrp) == group and state not in "ZX":
            return True
    return False


def end_group(group):
    """Ends what is left of a test's session; True if there was anything. SIGTERM first, so that servers can close their stores."""
    for _ in range(5):  # a child may need a moment to see that its parent is gone
        if not alive_in(group):
            return False
        time.sleep(0.1)
    for turn in range(60):
        if not alive_in(group):
            break
        os.killpg(group, signal.SIGTERM if turn < 30 else signal.SIGKILL)
        time.sleep(0.1)
    return True


running = {}  # session -> temporary directory of each test in progress
starting = threading.RLock()  # held while a test is begun; kept by stop(), after which none is


def stop(number, _frame):
    """Ends with nothing left behind, whoever asks."""
    starting.acquire()
    for group, tmp in list(running.items()):
        end_group(group)
        shutil.rmtree(tmp, ignore_errors=True)
    print(f"ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
    os._exit(128 + number)


def run_command(test):
    """Runs one test: (passed, failed, skipped, output, seconds)."""
    began = time.monotonic()
    notes = []
    with tempfile.TemporaryFile() as log:
        with starting:
            tmp = tempfile.mkdtemp(prefix="gyre-run-")
            os.chmod(tmp, 0o755)  # some tests go on as another user
            process = subprocess.Popen(test.command, cwd=test.cwd or tmp, env={**os.environ, **SANITIZER_ENV, **test.env, "TMPDIR": tmp},
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
            running[process.pid] = tmp
        try:
            status = process.wait(test.limit_s)
        except subprocess.TimeoutExpired:
            status = None
            notes.append(f"ended after {test.limit_s} s")
        if end_group(process.pid) and status is not None:
            notes.append("left processes running")
        process.wait()
        del running[process.pid]
        log.seek(0)
        output = log.read().decode(errors="replace")
    shutil.rmtree(tmp, ignore_errors=True)
    passed, failed, skipped = 0, 0, 0
    for line in reversed(output.splitlines()):
        match = SUMMARY.match(line.strip())
        if match:
            passed, failed, skipped = (int(group or 0) for group in match.groups())
            break
    else:
        passed, failed, skipped = {0: (1, 0, 0), 77: (0, 0, 1)}.get(status, (0, 1, 0))
    if not failed and (status not in (0, 77) or notes):
        failed += 1
        notes.append(f"exit status {status}")
    return passed, failed, skipped, output + "".join(f"{note}\n" for note in notes), time.monotonic() - began


def report(test, result, totals, verbose):
    passed, failed, skipped, output, seconds = result
    totals.add(test.name, passed, failed, skipped)
    text = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    totals.done += 1
    place = f" [{totals.done}/{totals.expected}]" if totals.expected else ""
    print(f"{'FAIL' if failed else 'ok  '} {test.name}: {text} ({seconds:.1f} s){place}", flush=True)
    if failed or verbose:
        lines = output.splitlines()
        for line in (["..."] if len(lines) > 80 else []) + lines[-80:]:
            print(f"     | {line}")
        sys.stdout.flush()


def run_beside(tests, threads, totals, verbose):
    """Runs tests, `threads` at a time, and reports each as it ends."""
    began = {}

    def run(test):
        began[test.name] = time.monotonic()
        return run_command(test)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        waiting = {pool.submit(run, test): test for test in tests}
        while waiting:
            done, _ = concurrent.futures.wait(waiting, SIGN_OF_LIFE_S, concurrent.futures.FIRST_COMPLETED)
            for future in done:
                report(waiting.pop(future), future.result(), totals, verbose)
            if not done:
                names = [test.name for test in waiting.values() if test.name in began]
                print("     still at " + ", ".join(f"{name} ({time.monotonic() - began[name]:.0f} s)" for name in names), flush=True)


def run_tests(tests, totals, verbose):
    """What is quick comes before what takes minutes, and what runs beside others before what must not."""
    for is_long in (False, True):
        for alone in (False, True):
            some = [test for test in tests if (test.is_long, test.alone) == (is_long, alone)]
            run_beside(some, 1 if alone else CORES, totals, verbose)


def build(directory, totals):
    """Configures (if new) and builds everything of one kind; True if that worked."""
    began = time.monotonic()
    path = ROOT / directory
    log = ""
    if not (path / "build.ninja").exists():
        made = subprocess.run(["cmake", "-S", ROOT, "-B", path, "-G", "Ninja", *BUILDS[directory]], text=True,
                              env={**os.environ, "CC": COMPILERS[directory]}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        log = made.stdout if made.returncode else ""
    if not log:
        made = subprocess.run(["ninja", "-C", path, "-j", str(CORES), "--quiet"], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        log = made.stdout if made.returncode else ""
    failed = int(bool(log))
    totals.add(f"build/{directory}", 1 - failed, failed)
    print(f"{'FAIL' if failed else 'ok  '} build/{directory} ({time.monotonic() - began:.1f} s)", flush=True)
    if failed:
        print(log[-8000:], flush=True)
    return not failed


def style_tests():
    for script in sorted((ROOT / "tests/style").glob("check_*.py")):
        needs = "build" if "NEEDS_BUILD = True" in script.read_text() else None
        yield Test(f"style/{script.stem[6:]}", ["python3", script], build=needs, alone=False)


def harness_tests():
    for script in sorted((ROOT / "tests/harness").glob("*_test.py")):
        yield Test(f"harness/{script.stem}", ["python3", script], alone=False)


def has_long_form(source):
    """Whether a test's source does more with --full."""
    return re.search(r"\btest_full\(\)|\bgs\.FULL\b", source.read_text()) is not None


def unit_tests(directory, full):
    """What CTest knows in a build directory."""
    listing = subprocess.run(["ctest", "--test-dir", ROOT / directory, "--show-only=json-v1"], capture_output=True, text=True)
    group = UNIT_GROUPS[directory]
    for test in json.loads(listing.stdout).get("tests", []) if listing.returncode == 0 else []:
        if "command" in test and pathlib.Path(test["command"][0]).exists():
            source = ROOT / "tests" / f"{test['name']}.c"
            yield Test(f"{group}/{test['name']}", test["command"], build=directory, alone=False,
                       limit_s=3600 if full else 300, is_long=full and source.exists() and has_long_form(source))


def example_tests():
    for source in sorted((ROOT / "api/examples").glob("*.c")):
        yield Test(f"examples/{source.stem}", [ROOT / "build/api/examples" / source.stem, "store"], build="build", cwd=None)


def install_tests():
    for script in sorted((ROOT / "tests/install").glob("*_test.py")):
        yield Test(f"install/{script.stem}", ["python3", script, ROOT / "build"], build="build")


def e2e_tests(full):
    """A script that says ASAN = True runs against the sanitized program as well, with --full all do; one that says ALONE = True has
    the machine to itself."""
    for directory, group in (("build", "e2e"), ("build-asan", "e2e-asan")):
        for script in sorted((ROOT / "tests/e2e").glob("*_test.py")):
            said = set(re.findall(r"^(ASAN|ALONE) = True$", script.read_text(), re.M))
            if directory == "build" or full or "ASAN" in said:
                yield Test(f"{group}/{script.stem}", ["python3", script], build=directory, limit_s=3600 if full else 300,
                           alone="ALONE" in said, is_long=full and has_long_form(script),
                           env={"GYRE_BIN": str(ROOT / directory / "gyre"), "PYTHONDONTWRITEBYTECODE": "1"})


def conform_tests(full):
    """Other people's clients, which a first run installs."""
    for script in sorted((ROOT / "tests/conform").glob("*_test.py")):
        yield Test(f"conform/{script.stem}", ["python3", script], build="build", limit_s=7200 if full else 900, alone=full, is_long=full,
                   env={"GYRE_BIN": str(ROOT / "build/gyre"), "PYTHONDONTWRITEBYTECODE": "1"})


def fuzz_tests(full):
    seconds = 300 if full else 5
    for source in sorted((ROOT / "tests/fuzz").glob("*_fuzz.c")):
        corpus = ROOT / "tests/fuzz/corpus" / source.stem
        seeds = [str(corpus)] if corpus.is_dir() else []
        # libFuzzer writes what it finds to the first directory: an empty one of the run's own.
        script = ('mkdir found && exec "$0" -max_total_time="$1" -timeout=20 -rss_limit_mb=3000 -print_final_stats=0 '
                  '-verbosity=0 found "${@:2}"')
        yield Test(f"fuzz/{source.stem}", ["bash", "-c", script, ROOT / "build-asan/tests/fuzz" / source.stem, str(seconds), *seeds],
                   build="build-asan", alone=False, cwd=None, limit_s=seconds + 120, is_long=full)


def gate_tests(full):
    gate = ROOT / "tests/gate/run"
    if gate.exists():
        yield Test("gate/run", [gate], build="build", limit_s=1800 if full else 300)


def wanted(name, patterns):
    return not patterns or any(pattern in name or fnmatch.fnmatch(name, pattern) for pattern in patterns)


def means_units(directory, patterns):
    """Whether patterns may mean unit tests of a directory, which are known only once it is configured."""
    group = UNIT_GROUPS[directory]
    return not patterns or any(fnmatch.fnmatch(group, pattern.split("/")[0]) for pattern in patterns)


def all_tests(directory, full):
    """The tests that need a build directory (None: no build), in the order they run."""
    makers = [style_tests(), harness_tests(), example_tests(), install_tests(), e2e_tests(full), conform_tests(full),
              fuzz_tests(full), gate_tests(full)]
    if directory:
        yield from unit_tests(directory, full)
    for maker in makers:
        yield from (test for test in maker if test.build == directory)


def main():
    parser = argparse.ArgumentParser(prog="tests/run", description="Builds Gyre and runs its tests.")
    parser.add_argument("--full", action="store_true", help="adds the long forms")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="what matches GROUP/NAME")
    parser.add_argument("--list", action="store_true", help="names everything")
    parser.add_argument("--verbose", action="store_true", help="shows the output of what passed, too")
    options = parser.parse_args()
    began = time.monotonic()
    totals = Totals()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    if options.full:
        os.environ["GYRE_FULL"] = "1"
    stages = [None, "build", "build-asan"] + (["build-tsan"] if options.full else [])
    later = []
    for directory in stages:
        tests = [test for test in all_tests(directory, options.full) if wanted(test.name, options.only)]
        if options.list:
            print("\n".join(test.name for test in tests))
            continue
        if directory and (tests or means_units(directory, options.only)):
            if not build(directory, totals):
                continue
            tests = [test for test in all_tests(directory, options.full) if wanted(test.name, options.only)]
        if options.full:
            later += tests
        else:
            run_tests(tests, totals, options.verbose)
    if options.list:
        return 0
    totals.expected = len(later)
    run_tests(later, totals, options.verbose)
    print(f"\n{time.monotonic() - began:.0f} s" + (f"; failed: {', '.join(totals.bad)}" if totals.bad else ""))
    if totals.passed + totals.failed == 0:
        print("nothing matches; tests/run --list names everything", file=sys.stderr)
        return 2
    print(f"{totals.passed} passed, {totals.failed} failed" + (f", {totals.skipped} skipped" if totals.skipped else ""))
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
