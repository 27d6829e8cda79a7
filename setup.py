"""The compiled code: modules of the package, and what CMake builds and installs; all else is in setup.cfg."""

import os
import shlex
import shutil
import subprocess
import sysconfig
from distutils.command.install_data import install_data  # setuptools has it from Python 3.12 on
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import PlatformError

INCLUDE = "libtrace/include"
HEADERS = [str(path) for folder in ("ensembles", INCLUDE) for path in sorted(Path(folder).rglob("*.h"))]
# A separate module, as libdeflate is missing on many machines.
CHUNKS = "ensembles/readers/tracefile/_chunks.c"
SOURCES = sorted({str(path) for path in Path("ensembles").rglob("*.c")} - {CHUNKS})


class BuildCompiled(build_ext):
    """Building of the modules in C, which begins with a look at what it needs."""

    def build_extensions(self) -> None:
        """Build the modules, or say what is missing."""
        compiler = self.compiler.compiler_so[0]
        header = Path(sysconfig.get_path("include"), "Python.h")
        missing = "" if header.exists() else f"Python's header {header}"
        if not shutil.which(compiler):
            missing = f"the C compiler {compiler}"
        if missing:
            raise PlatformError(
                f"ensio is built from C code, and {missing} is missing: install it (Debian: build-essential "
                "and python3-dev, Fedora: gcc and python3-devel, conda: c-compiler), or install a wheel of "
                "ensio, which needs no compiler"
            )
        super().build_extensions()


class InstallData(install_data):
    """Installation into Python's prefix, with what CMake builds: the recorder, its tools, the documents."""

    def run(self) -> None:
        """Install data, but an editable package uses what its sources' build/ has."""
        super().run()
        if self.get_finalized_command("build_ext").inplace:
            return
        folder = Path(self.get_finalized_command("build").build_temp, "cmake")
        options = ["-GNinja", "-DENSIO_TESTBED=ON", *shlex.split(os.environ.get("CMAKE_ARGS", ""))]
        subprocess.run(["cmake", "-S.", f"-B{folder}", *options], check=True)
        subprocess.run(["cmake", "--build", folder], check=True)
        subprocess.run(["cmake", "--install", folder, "--prefix", self.install_dir, "--strip"], check=True)


class MakeSources(sdist):
    """A source distribution whose bytes depend on the files and on SOURCE_DATE_EPOCH only."""

    def make_archive(self, base_name: str, *_: object, base_dir: str, **__: object) -> str:
        """Write the archive of a folder."""
        name, time = f"{base_name}.tar.gz", os.environ.get("SOURCE_DATE_EPOCH", "0")
        options = (
            f"--sort=name --mtime=@{time} --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX".split()
        )
        command = ["tar", *options, "--use-compress-program=gzip -n", "-cf", name, base_dir]
        subprocess.run(command, check=True)
        return name


# Without contraction to fused operations the results are those of NumPy, to the last bit. Loops are aligned,
# as else what one costs changes by a third with the code that happens to lie before it.
FLAGS = "-std=c11 -Werror=implicit-function-declaration -O3 -ffp-contract=off -falign-loops=32"
OPTIONS = {
    "depends": HEADERS,
    "include_dirs": [INCLUDE, "ensembles"],
    "define_macros": [("Py_LIMITED_API", "0x030B0000")],
    "extra_compile_args": [*FLAGS.split(), "-fvisibility=hidden"],
    "py_limited_api": True,
}

setup(
    cmdclass={"build_ext": BuildCompiled, "install_data": InstallData, "sdist": MakeSources},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    setup_requires=[tool for tool in ("cmake", "ninja") if not shutil.which(tool)],
    ext_modules=[
        Extension("ensembles._compiled", SOURCES, libraries=["m"], **OPTIONS),
        Extension(CHUNKS[:-2].replace("/", "."), [CHUNKS], libraries=["deflate"], optional=True, **OPTIONS),
    ],
)
