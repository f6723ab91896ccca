"""The table of numbers in server/README.md is what server/counters.def and api/gyre_stats.def say; --write makes it so."""
import re
import sys

import tree

README = "server/README.md"
BEGIN, END = "<!-- numbers: tests/style/check_counters.py --write -->\n", "<!-- /numbers -->\n"
LOOP = re.compile(r'^SRV_(?:LOOP|READ)\((\w+), (COUNTER|GAUGE), "([^"]+)"\)', re.M)
POOL = re.compile(r'^SRV_POOL\((\w+), (COUNTER|GAUGE), "([^"]+)"\)', re.M)
STORE = re.compile(r'^X\((\w+), (\w+), "([^"]+)"\)', re.M)


def rows():
    for name, kind, text in LOOP.findall(tree.text("server/counters.def")):
        yield name + ("_total" if kind == "COUNTER" else ""), kind.lower(), text
    for name, unit, text in STORE.findall(tree.text("api/gyre_stats.def")):
        kind = "counter" if unit.startswith("COUNTER") else "gauge"
        yield f"store_{name}" + ("_total" if kind == "counter" else ""), kind, text
    for name, kind, text in POOL.findall(tree.text("server/counters.def")):
        yield f"pool_{name}" + ("_total" if kind == "COUNTER" else "") + '{pool="..."}', kind.lower(), text


def table():
    lines = ["| `gyre_` | kind | what |\n", "|---|---|---|\n"]
    lines += [f"| `{name}` | {kind} | {text} |\n" for name, kind, text in rows()]
    return "".join(lines)


text = tree.text(README)
before, begin, rest = text.partition(BEGIN)
old, end, after = rest.partition(END)
found = []
if not begin or not end:
    found.append(f"{README}: the marks around the table of numbers are missing")
elif "--write" in sys.argv:
    (tree.ROOT / README).write_text(before + BEGIN + table() + END + after)
elif old != table():
    found.append(f"{README}: the table of numbers is not that of the lists; python3 tests/style/check_counters.py --write")
names = [row[0] for row in rows()]
found += [f"{name} is there twice" for name in set(names) if names.count(name) > 1]
tree.finish("style/counters", found, names)
