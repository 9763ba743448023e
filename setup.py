"""Build of the compiled core: one extension per piece of docs/architecture.

CGRAD_BOUNDSCHECK=1   index and None checks in the Cython code, for the test run that looks for them
CGRAD_ONLY=_blas      build only the named extension, while working on it
"""
import os
import sys
from glob import glob

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED = os.environ.get("CGRAD_BOUNDSCHECK") == "1"
ONLY = os.environ.get("CGRAD_ONLY", "").split()
MSVC = os.name == "nt"

# -fno-math-errno and -fno-trapping-math change no result; without them GCC does not vectorise selects.
# -g0 undoes the -g that many Pythons were built with: debug information is most of such a wheel.
OPTIMISE = (["/O2"] if MSVC else
            ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-unused-function"])
STRIP = ["-Wl,-s"] if sys.platform == "linux" else []

# name -> (sources, further files whose change means a rebuild)
PIECES = {
    "_kernels": (["src/kernels.pyx", *sorted(glob("src/c/kernels_*.c"))], sorted(glob("src/c/kernels*.h"))),
    "_loops": (["src/loops.pyx"], ["cgrad/_loops.pxd"]),
    "_blas": (["src/blas.pyx"], ["cgrad/_blas.pxd", "src/c/small_products.h"]),
    "_program": (["src/program.pyx"], ["cgrad/_program.pxd", "cgrad/_loops.pxd"]),
    "_tape": (["src/tape.pyx"], ["cgrad/_tape.pxd"]),
    "_record": (["src/record.pyx"], ["cgrad/_record.pxd", "cgrad/_tape.pxd", "cgrad/_loops.pxd"]),
    "_parts": (["src/parts.pyx"], ["cgrad/_parts.pxd", "cgrad/_record.pxd", "cgrad/_tape.pxd", "src/c/unique.h"]),
    "_array": (["src/array.pyx"], ["cgrad/_array.pxd", "cgrad/_parts.pxd", "cgrad/_record.pxd", "cgrad/_tape.pxd"]),
    "_direct": (["src/direct.pyx"], ["cgrad/_record.pxd", "cgrad/_tape.pxd"]),
    "_sweep": (["src/sweep.pyx"], ["cgrad/_sweep.pxd", "cgrad/_array.pxd", "cgrad/_tape.pxd",
                                   "cgrad/_program.pxd"]),
    "_trace": (["src/trace.pyx"], ["cgrad/_array.pxd", "cgrad/_tape.pxd"]),
}


def extension(name):
    sources, depends = PIECES[name]
    return Extension(
        f"cgrad.{name}", sources, depends=depends,
        include_dirs=[numpy.get_include(), "src", "src/c"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                       ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=OPTIMISE, extra_link_args=STRIP)


setup(ext_modules=cythonize(
    [extension(name) for name in PIECES if not ONLY or name in ONLY],
    build_dir="build/cython",
    include_path=["."],
    compiler_directives=dict(
        language_level=3, boundscheck=CHECKED, wraparound=False, initializedcheck=CHECKED,
        nonecheck=CHECKED, cdivision=True, freethreading_compatible=True)))
