"""Every room has a README.md whose tables of files name all that is there.

A name in a first column stands for files with any ending: `pin` for pin.c and pin.h; `*` in it is any text, and NAME as in `x.py NAME` an argument.
"""
import fnmatch
import re

import tree

# One README speaks for what mirrors the tree, folder by folder.
SPOKEN_FOR = re.compile(r"\.|tests/(?!conform$)\w+(/.+)?|tests/conform/.+|cmake/libh2o")


def named(text):
    """What stands in the first columns of its tables."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield from re.findall(r"`([^` ]+)[^`]*`", line.split("|")[1])


folders, found = {}, []
for path in tree.files(".c", ".h", ".def", ".py", ".sh", ".cmake"):
    if not SPOKEN_FOR.fullmatch(str(path.parent)):
        folders.setdefault(path.parent, []).append(path)
for folder, paths in folders.items():
    if not (tree.ROOT / folder / "README.md").is_file():
        found.append(f"{folder}: has no README.md")
        continue
    names = list(named(tree.text(folder / "README.md")))
    found += [f"{folder}/README.md: no table of files names {path.name}" for path in paths
              if not any(fnmatch.fnmatch(word, name) for name in names for word in (path.name, path.stem))]
tree.finish("style/readmes", found, folders)
