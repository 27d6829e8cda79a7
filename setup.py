"""The compiled code under the summaries, the readers and the phases; all else is in setup.cfg."""

import shutil
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

INCLUDE = "libtrace/include"
HEADERS = [str(path) for folder in ("ensembles", INCLUDE) for path in sorted(Path(folder).rglob("*.h"))]
SOURCES = """
    _compiled
    diagnosis/_evidence
    readers/common/_sorted
    readers/native/_columns
    readers/native/_decode
    structure/ordinals/_ordinals
    structure/phases/_gaps
    structure/strides/_strides
    summaries/_callsums
    summaries/_counts
    summaries/_keyed
    summaries/_spread
    summaries/_totals
    summaries/_uses
"""


class BuildCompiled(build_ext):
    """Building of the modules in C, which begins with a look at what it needs."""

    def build_extensions(self) -> None:
        """Build the modules, or say what is missing."""
        compiler = self.compiler.compiler_so[0]
        header = Path(sysconfig.get_path("include"), "Python.h")
        missing = f"the C compiler {compiler}" if not shutil.which(compiler) else f"Python's header {header}"
        if not shutil.which(compiler) or not header.exists():
            raise PlatformError(
                f"ensio is built from C code, and {missing} is missing: install it (Debian: build-essential "
                "and python3-dev, Fedora: gcc and python3-devel, conda: c-compiler), or install a wheel of "
                "ensio, which needs no compiler"
            )
        super().build_extensions()


def compiled(
    module: str, sources: list[str], libraries: tuple[str, ...] = (), optional: bool = False
) -> Extension:
    """A module in C, of sources below ensembles."""
    return Extension(
        module,
        sources=[f"ensembles/{source}.c" for source in sources],
        depends=HEADERS,
        include_dirs=[INCLUDE, "ensembles"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        # Without contraction to fused operations the results are those of NumPy, to the last bit. Loops are
        # aligned, as else what one costs changes by a third with the code that happens to lie before it.
        extra_compile_args=[
            "-std=c11",
            "-Werror=implicit-function-declaration",
            "-O3",
            "-ffp-contract=off",
            "-falign-loops=32",
            "-fvisibility=hidden",
        ],
        libraries=["m", *libraries],
        py_limited_api=True,
        optional=optional,
    )


setup(
    cmdclass={"build_ext": BuildCompiled},
    ext_modules=[
        compiled("ensembles._compiled", SOURCES.split()),
        # A separate module, as libdeflate is missing on many machines.
        compiled(
            "ensembles.readers.tracefile._chunks", ["readers/tracefile/_chunks"], ("deflate",), optional=True
        ),
    ],
)
