"""Includes point downward only, are written from the root, and h2o.h stays in the files that are its dialect."""
import re

import tree

# Folder -> folders it may include from. engine/base lies under everything of libgyre, as libc does.
MAY_SEE = {
    "engine/base": {"engine/base"},
    "engine": {"engine", "engine/base"},
    "api": {"api", "engine", "engine/base"},
    "server": {"server", "server/s3", "server/http", "api"},
    "server/http": {"server", "server/http", "api"},
    "server/s3": {"server", "server/s3", "api"},
    "plugins": {"plugins", "api"},
    "api/examples": set(),
}
ANYTHING = ("tests", "bench")
# These name their neighbours without a folder, because they are installed side by side.
INSTALLED = {"api/gyre.h": {"gyre_err.h", "gyre_stats.def", "gyre_async.h", "gyre_miss.h", "gyre_pool.h", "gyre_send.h", "gyre_upload.h", "gyre_vector.h", "gyre_verify.h"}, "engine/base/gyre_err.h": {"gyre_err.def"}}
# These are built by themselves, as packages of another language, against the installed library.
PACKAGES = {"api/python"}
# What the server may include of api/: the installed interface.
INTERFACE = {"api/gyre.h", "api/gyre_stats.def"}
MAY_INCLUDE_H2O = {f"server/{name}" for name in ("loop.c", "listen.c", "gate_h1.c", "gate_h2.c", "glue.c", "body_in.c",
                                                 "body_out.c", "out_h1.c", "h2_head.c", "h2_frames.c", "h2_own.c", "h2_probe.c", "h2_length.c",
                                                 "linger.c", "h2o_write.c", "h2o_glue.h")}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def check(path, findings):
    folder = str(path.parent)
    for quote, name in INCLUDE.findall(tree.text(path)):
        if name == "h2o.h" or name.startswith("h2o/"):
            if str(path) not in MAY_INCLUDE_H2O and folder.split("/")[0] not in ANYTHING:
                findings.append(f"{path}: includes {name}; only {', '.join(sorted(MAY_INCLUDE_H2O))} may")
            continue
        if quote == "<" or name in INSTALLED.get(str(path), ()) or (folder in PACKAGES and "/" not in name):
            continue
        if not (tree.ROOT / name).is_file():
            findings.append(f'{path}: "{name}" is not a path from the root')
            continue
        if folder.split("/")[0] in ANYTHING:
            continue
        target = name.rpartition("/")[0]
        if target not in MAY_SEE.get(folder, set()):
            findings.append(f"{path}: includes {name}; {folder} may see {', '.join(sorted(MAY_SEE.get(folder, ()))) or '<gyre.h>'}")
        elif target == "api" and folder != "api" and name not in INTERFACE:
            findings.append(f"{path}: includes {name}; of api/ only {', '.join(sorted(INTERFACE))} may be used")


found = []
sources = tree.files(".c", ".h", ".def")
for source in sources:
    check(source, found)
tree.finish("style/layers", found, sources)
