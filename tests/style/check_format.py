"""clang-format has nothing to change."""
import subprocess

import tree

sources = tree.files(".c", ".h")
findings = []
for source in sources:
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", source], cwd=tree.ROOT, capture_output=True, text=True)
    if result.returncode:
        first = result.stderr.splitlines()[0] if result.stderr else "failed"
        findings.append(f"{first.split(': error')[0]}: run clang-format -i {source}")
tree.finish("style/format", findings, sources)
