"""The extension is made of the C files here and the static libgyre that pkg-config finds, so that the module needs nothing at run time."""
import shlex
import subprocess

from setuptools import Extension, setup


def pkg_config(*options):
    try:
        return shlex.split(subprocess.run(["pkg-config", *options, "gyre"], check=True, capture_output=True, text=True).stdout)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit("libgyre is not installed, or pkg-config does not find it: cmake --install build --prefix DIR, then set "
                         "PKG_CONFIG_PATH=DIR/lib/pkgconfig") from error


libraries = ["-l:libgyre.a" if flag == "-lgyre" else flag for flag in pkg_config("--libs", "--static")]
setup(ext_modules=[Extension("gyre", ["module.c", "key.c", "store.c", "object.c", "writer.c"], depends=["module.h"],
                             extra_compile_args=["-std=gnu17", "-fvisibility=hidden", *pkg_config("--cflags")],
                             extra_link_args=libraries)])
