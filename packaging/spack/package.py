# Copyright: the authors of ensio, licence BSD-3-Clause
"""Spack's recipe of ensio."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Ensio(CMakePackage):
    """Record every I/O call of a program, and say why its I/O is slow."""

    homepage = "https://example.org/ensio"
    git = "https://example.org/ensio.git"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("otf2", default=False, when="+python", description="Export to and import from OTF2")
    variant("python", default=False, description="The commands that read runs")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("awk", type="run")
    depends_on("otf2@3:", when="+otf2")
    depends_on("pkgconfig", type="build", when="+otf2")
    extends("python@3.11:", when="+python")
    for package in ("h5py@3.10:", "numpy@1.26:", "scipy@1.13:"):
        depends_on(f"py-{package}", type=("build", "run"), when="+python")
    depends_on("py-pip", type="build", when="+python")

    @run_after("install", when="+python")
    def install_commands(self):
        """Install the Python package beside the recorder, and from PyPI what it needs besides."""
        python("-m", "pip", "install", "--prefix", self.prefix, f"{self.stage.source_path}[full]")

    def setup_run_environment(self, env):
        """Let `ensio run` find the preload library."""
        env.set("ENSIO_PRELOAD", join_path(self.prefix.lib, "libensio-preload.so"))
