"""What every style check needs: the files of the tree, and how a check reports."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*suffixes):
    """The tree's files with one of these suffixes, relative to the root: tracked ones and new ones that git does not ignore."""
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True)
    if listing.returncode == 0:
        names = listing.stdout.split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not path.relative_to(ROOT).parts[0].startswith("build")]
    return sorted(pathlib.PurePosixPath(name) for name in set(names)
                  if name.endswith(suffixes) and (ROOT / name).is_file())


def text(path):
    return (ROOT / path).read_text(errors="replace")


def finish(name, findings, looked_at):
    """Prints the findings and the line that the runner reads; exits."""
    for finding in findings:
        print(finding)
    if not looked_at:
        findings = ["nothing to look at"]
        print(findings[0])
    print(f"{name}: {0 if findings else 1} passed, {len(findings)} failed")
    sys.exit(1 if findings else 0)
