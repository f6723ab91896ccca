"""What `cmake --install` leaves is enough for a user: headers, both libraries, pkg-config, find_package; in C17 and C++17."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = ["bin/gyre", "lib/libgyre.so", "lib/libgyre.a", "lib/pkgconfig/gyre.pc", "lib/cmake/gyre/gyre-config.cmake",
             *(f"include/gyre/{name}" for name in ("gyre.h", "gyre_err.h", "gyre_err.def", "gyre_stats.def"))]
passed = failed = 0


def check(what, holds, detail=""):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAILED {what}\n{detail}")
    return holds


def run(what, command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    check(what, result.returncode == 0, result.stdout)
    return result.stdout


def check_pkg_config(prefix, tmp):
    pkg_config = ["pkg-config", "--cflags", "--libs"]
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for compiler in (["gcc", "-std=c17"], ["clang", "-std=c17"], ["g++", "-std=c++17", "-x", "c++"]):
        for kind in ("shared", "static"):
            what = f"pkg-config {compiler[0]} {kind}"
            flags = run(f"{what}: flags", [*pkg_config, *(["--static"] if kind == "static" else []), "gyre"], env=env).split()
            if kind == "static":  # the archive by name, for the shared library lies beside it
                flags = ["-l:libgyre.a" if flag == "-lgyre" else flag for flag in flags]
            program = tmp / f"{compiler[0]}-{kind}"
            run(f"{what}: compile", [*compiler, *strict, HERE / "consumer.c", "-x", "none", "-o", program, *flags])
            check_program(what, program, tmp, prefix)
            if kind == "shared":
                needs = run(f"{what}: readelf", ["readelf", "-V", program])
                check(f"{what}: functions have versions", "libgyre.so.0.1" in needs and "GYRE_0.1" in needs, needs)


def check_exports(prefix):
    declared = set()
    for header in (prefix / "include/gyre").glob("*.h"):
        declared |= set(re.findall(r"GYRE_API[^;(]*?\b(gyre_\w+)\(", header.read_text()))
    listed = run("nm", ["nm", "-D", "--defined-only", "--without-symbol-versions", prefix / "lib/libgyre.so"])
    exported = {line.split()[2] for line in listed.splitlines() if " T " in line}
    check("what the headers declare is what the library exports", declared == exported, sorted(declared ^ exported))


def check_cmake(prefix, tmp):
    build = tmp / "build"
    run("find_package: configure", ["cmake", "-S", HERE, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    run("find_package: build", ["cmake", "--build", build])
    for name in ("c_gyre", "c_static", "cxx_gyre", "cxx_static"):
        check_program(f"find_package {name}", build / name, tmp, prefix)


def check_program(what, program, tmp, prefix):
    if not program.exists():
        return
    data = tmp / "data"
    data.mkdir()
    env = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    output = run(f"{what}: run", [program, data], env=env)
    check(f"{what}: output", "success" in output, output)
    shutil.rmtree(data)


def main():
    with tempfile.TemporaryDirectory(prefix="gyre-install-") as name:
        tmp = pathlib.Path(name)
        prefix = tmp / "first"
        run("install", ["cmake", "--install", sys.argv[1], "--prefix", prefix])
        # An installed tree may be moved: nothing in it names the place it was made for.
        moved = tmp / "moved"
        if prefix.exists():
            prefix.rename(moved)
        for path in INSTALLED:
            check(f"{path} is installed", (moved / path).exists())
        check_exports(moved)
        check_pkg_config(moved, tmp)
        check_cmake(moved, tmp)
        run("the installed program runs", [moved / "bin/gyre", "version"])
    print(f"install/install_test: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
