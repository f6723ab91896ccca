"""The runner itself: what it counts as passed and failed, and that nothing a test starts outlives it."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import run_all

ROWS = [
    # (what, shell script, passed, failed, skipped)
    ("a summary is added up", "echo 'x: 3 passed, 0 failed'", 3, 0, 0),
    ("with skipped ones", "echo 'a/b: 3 passed, 0 failed, 2 skipped'", 3, 0, 2),
    ("the last summary counts", "echo 'x: 9 passed, 9 failed'; echo 'x: 1 passed, 0 failed'", 1, 0, 0),
    ("failures are added up", "echo 'x: 3 passed, 2 failed'; exit 1", 3, 2, 0),
    ("a bad exit after good words fails", "echo 'x: 3 passed, 0 failed'; exit 1", 3, 1, 0),
    ("failures with a good exit fail", "echo 'x: 3 passed, 2 failed'", 3, 2, 0),
    ("no summary: the exit status counts", "true", 1, 0, 0),
    ("no summary, bad exit", "false", 0, 1, 0),
    ("a crash fails", "echo 'x: 3 passed, 0 failed'; kill -SEGV $$", 3, 1, 0),
    ("77 is a skip", "exit 77", 0, 0, 1),
    ("taking too long fails", "sleep 60", 0, 1, 0),
    ("standard input is empty", "test -z \"$(cat)\"", 1, 0, 0),
    ("leaving a process fails", "sleep 60 & echo 'x: 1 passed, 0 failed'", 1, 1, 0),
]


def children_of(pid):
    """Process ids, whichever thread began them."""
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


def check_order(check):
    """What takes minutes comes last, and what runs alone after what need not."""
    tests = [run_all.Test(name, ["true"], alone=alone, is_long=is_long)
             for name, alone, is_long in (("d", True, True), ("c", False, True), ("b", True, False), ("a", False, False))]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        run_all.run_tests(tests, run_all.Totals(), False)
    order = [line.split()[1].rstrip(":") for line in output.getvalue().splitlines()]
    check("tests run in order of their length", order == ["a", "b", "c", "d"], order)


def check_interrupted(check):
    """SIGTERM in the middle of a test: the test ends with the runner."""
    script = ("import signal, run_all; signal.signal(signal.SIGTERM, run_all.stop);"
              "run_all.run_tests([run_all.Test('self', ['sleep', '60.125'])], run_all.Totals(), False)")
    runner = subprocess.Popen([sys.executable, "-c", script], cwd=run_all.ROOT / "tests/harness", stderr=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    while not (children := children_of(runner.pid)):
        time.sleep(0.05)
    child = children[0]
    runner.terminate()
    check("the runner ends by SIGTERM", runner.wait() == 128 + 15, runner.returncode)
    check("and its test with it", not run_all.alive_in(child))


def main():
    passed = failed = 0

    def check(what, holds, detail=""):
        nonlocal passed, failed
        passed, failed = passed + bool(holds), failed + (not holds)
        if not holds:
            print(f"{what}: {detail}")

    for what, script, *wanted in ROWS:
        result = run_all.run_command(run_all.Test("self", ["bash", "-c", script], limit_s=2 if script == "sleep 60" else 60))
        check(what, list(result[:3]) == wanted, f"{result}, expected {wanted}")
    result = run_all.run_command(run_all.Test("self", ["bash", "-c", "echo pid $$ $TMPDIR; sleep 60 & sleep 60"], limit_s=5))
    pid, tmp = result[3].split()[1:3]
    check("a test that takes too long is ended with its children", not run_all.alive_in(int(pid)))
    check("its temporary directory is removed", not os.path.exists(tmp), tmp)
    check_interrupted(check)
    check_order(check)
    check("patterns match parts and globs", run_all.wanted("unit/a/b_test", ["a/b"]) and run_all.wanted("unit/a", ["unit/*"])
          and not run_all.wanted("unit/a", ["e2e"]))
    print(f"harness/runner_test: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
