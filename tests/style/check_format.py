"""clang-format has nothing to change."""
import subprocess

import tree

sources = tree.files(".c", ".h")
result = subprocess.run(["clang-format", "--dry-run", "-Werror", *sources], cwd=tree.ROOT, capture_output=True, text=True)
first = {}
for line in result.stderr.splitlines():
    place, mark, _ = line.partition(": error: ")
    if mark:
        first.setdefault(place.split(":")[0], place)
findings = [f"{place}: run clang-format -i {path}" for path, place in first.items()]
if result.returncode and not findings:
    findings = [f"clang-format: {result.stderr.strip()[:300]}"]
tree.finish("style/format", findings, sources)
