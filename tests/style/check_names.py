"""The prefix is the reach: gyre_ installed, eng_ inside the engine, srv_ inside the server; nothing else leaves a file."""
import pathlib
import re
import subprocess

import tree

NEEDS_BUILD = True  # the symbols of build/

# Archive -> prefixes its global symbols may have. The engine holds gyre_err_*, which is installed as it is.
ARCHIVES = {
    "engine/libgyre_engine.a": ("eng_", "gyre_err_"),
    "api/libgyre.a": ("gyre_", "eng_", "api_"),
    "server/libgyre_server_core.a": ("srv_",),
}
# Definitions that stand in front of libh2o's own on purpose.
INTERPOSED = {"h2o_hpack_flatten_response", "h2o_hpack_parse_headers", "h2o_socket_notify_write", "h2o_socket_write", "h2o_strtosize"}
MACROS = {"engine": ("ENG_", "GYRE_"), "api": ("GYRE_", "API_"), "server": ("SRV_",)}
FREE_MACROS = {"X", "TRY", "likely", "unlikely", "PY_SSIZE_T_CLEAN"}


def symbols(path, *options):
    output = subprocess.run(["nm", "--defined-only", "--extern-only", *options, path], capture_output=True, text=True, check=True)
    rows = [line.split() for line in output.stdout.splitlines()]
    return [row[2] for row in rows if len(row) == 3 and row[1] != "A"]  # A: a version of symbols, which is none itself


def check_symbols(findings):
    build = pathlib.Path(tree.ROOT / "build")
    for archive, prefixes in ARCHIVES.items():
        if (build / archive).exists():
            for symbol in symbols(build / archive):
                if not symbol.startswith(prefixes) and symbol not in INTERPOSED:
                    findings.append(f"{archive}: {symbol} should be static, or start with {' or '.join(prefixes)}")
    shared = build / "api/libgyre.so"
    if shared.exists():
        for symbol in symbols(shared, "--dynamic"):
            if not symbol.startswith("gyre_"):
                findings.append(f"libgyre.so exports {symbol}")


def check_header(path, findings):
    content = tree.text(path)
    if "#pragma once" not in content:
        findings.append(f"{path}: no #pragma once")
    if not content.startswith("/*"):
        findings.append(f"{path}: a header opens with one sentence on what it is")
    top = path.parts[0]
    if top in MACROS:
        for macro in re.findall(r"^#define (\w+)", content, re.M):
            if not macro.startswith(MACROS[top]) and macro not in FREE_MACROS:
                findings.append(f"{path}: macro {macro} should start with {' or '.join(MACROS[top])}")


def check_source(path, findings):
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        if re.match(r"\s*typedef\s+(struct|union|enum)\b", line):
            findings.append(f"{path}:{number}: typedef of a struct, union or enum")
        if re.match(r"^[A-Za-z].*[ *]_[a-z]\w+\(", line):
            findings.append(f"{path}:{number}: leading underscore")


found = []
sources = tree.files(".c", ".h")
check_symbols(found)
for source in sources:
    if source.suffix == ".h":
        check_header(source, found)
    check_source(source, found)
tree.finish("style/names", found, sources)
