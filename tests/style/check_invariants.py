"""Every invariant of a README has a test, and every invariant test has its sentence.

The sentence: a line of a section "Invariants" in a folder's README.md that names it as **I3**. The test: inv_I3_... anywhere in tests/.
"""
import re

import tree

SENTENCE = re.compile(r"\*\*([A-Z]{1,3}\d+[a-z]?)\*\*")
TEST = re.compile(r"\binv_([A-Z]{1,3}\d+[a-z]?)_\w+")


def sentences():
    """{id: README that has it}; an id given twice is a finding of its own."""
    where, twice = {}, []
    for path in tree.files("README.md"):
        inside = False
        for line in tree.text(path).splitlines():
            heading = re.match(r"#+\s*(.*)", line)
            if heading:
                inside = heading.group(1).lower().startswith("invariants")
            elif inside:
                for name in SENTENCE.findall(line):
                    if name in where and re.match(rf"[-*|\s]*\*\*{name}\*\*", line):
                        twice.append(f"{path}: {name} is in {where[name]} already")
                    where.setdefault(name, path)
    return where, twice


def tested():
    where = {}
    for path in tree.files("_test.c", "_test.py", "_fuzz.c"):
        for name in TEST.findall(tree.text(path)):
            where.setdefault(name, path)
    return where


said, found = sentences()
shown = tested()
found += [f"{said[name]}: {name} has no test inv_{name}_..." for name in sorted(said.keys() - shown.keys())]
found += [f"{shown[name]}: inv_{name}_... has no sentence in a README's section Invariants" for name in sorted(shown.keys() - said.keys())]
tree.finish("style/invariants", found, True)
