"""A .c file has at most 500 lines, a header 200, a function 70 (40 is the aim)."""
import re

import tree

LIMITS = {".c": 500, ".h": 200}
FUNCTION_LIMIT = 70
EXCEPTIONS = "tests/style/sizes.exceptions"


def exceptions():
    """Lines `PATH or PATH:FUNCTION LIMIT why` -> {what: limit}."""
    allowed = {}
    for line in tree.text(EXCEPTIONS).splitlines():
        if line and not line.startswith("#"):
            what, limit, _why = line.split(None, 2)
            allowed[what] = int(limit)
    return allowed


def functions(lines):
    """(name, lines) of each function, from its signature to its brace, both of which the formatter puts in column 0."""
    start = 0
    for number, line in enumerate(lines):
        if line == "{":
            start = number
            while start > 0 and lines[start - 1] and not lines[start - 1].startswith(("}", "#", "/*", " */", "//")):
                start -= 1
        elif line == "}" and start:
            signature = " ".join(lines[start:number]).split("{")[0]
            named = re.search(r"(\w+)\(", signature)
            yield (named.group(1) if named else "?"), number - start + 1
            start = 0


def check(path, allowed, findings):
    lines = tree.text(path).splitlines()
    limit = allowed.pop(str(path), LIMITS[path.suffix])
    if len(lines) > limit:
        findings.append(f"{path}: {len(lines)} lines, at most {limit}")
    for name, length in functions(lines):
        limit = allowed.pop(f"{path}:{name}", FUNCTION_LIMIT)
        if length > limit:
            findings.append(f"{path}: {name} has {length} lines, at most {limit}")


found = []
sources = tree.files(".c", ".h")
permitted = exceptions()
for source in sources:
    check(source, permitted, found)
found += [f"{EXCEPTIONS}: {what} is not in the tree" for what in permitted]
tree.finish("style/sizes", found, sources)
