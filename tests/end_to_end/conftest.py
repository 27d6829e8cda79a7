"""Real programs, recorded by both ways in."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ENSIO_BUILD", ROOT / "build"))
PROGRAMS = Path(__file__).parent / "programs"
PRELOAD = BUILD / "lib" / "libensio-preload.so"
ENSIO_CC = BUILD / "bin" / "ensio-cc"

WAYS = ("relinked", "preloaded")


class Recorder:
    """Builds programs of this folder and runs them, recorded or not.

    Parameters
    ----------
    way : str
        ``"relinked"`` with ensio-cc, or ``"preloaded"``.
    folder : Path
        Where programs and run directories go.
    """

    def __init__(self, way: str, folder: Path):
        self.way = way
        self.folder = folder
        self.run = folder / "run"
        self.library = PRELOAD

    def build(self, name: str, *options: str, compiler: str = "gcc") -> Path:
        """Compile ``programs/<name>.c`` for this way in."""
        program = self.folder / f"{name}-{self.way}"
        driver = [str(ENSIO_CC)] if self.way == "relinked" else []
        command = [
            *driver,
            compiler,
            "-O2",
            "-w",
            str(PROGRAMS / f"{name}.c"),
            "-o",
            str(program),
            "-pthread",
        ]
        subprocess.run([*command, *options], check=True)
        return program

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a recorded program."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
        preload = {"LD_PRELOAD": str(self.library)} if self.way == "preloaded" else {}
        return clean | preload | {"ENSIO_DIR": str(self.run)} | more

    def execute(self, *command: object, **options) -> subprocess.CompletedProcess:
        """Run a program to its end, recorded into `run`."""
        environment = self.environment(**options.pop("environment", {}))
        return subprocess.run(
            [str(word) for word in command], env=environment, capture_output=True, **options
        )

    def untraced(self, *command: object, **options) -> subprocess.CompletedProcess:
        """Run a program of the same build without recording."""
        environment = {key: value for key, value in self.environment().items() if key != "LD_PRELOAD"}
        environment["ENSIO_DISABLE"] = "1"
        return subprocess.run(
            [str(word) for word in command], env=environment, capture_output=True, **options
        )


@pytest.fixture(params=WAYS)
def recorder(request, tmp_path) -> Recorder:
    """A recorder for each way into a program."""
    if not ENSIO_CC.exists() or not PRELOAD.exists():
        pytest.fail(f"the recorder is not built in {BUILD}; run ./dev setup")
    return Recorder(request.param, tmp_path)


@pytest.fixture
def preload(tmp_path) -> Recorder:
    """A recorder for programs that nobody here built."""
    if not PRELOAD.exists():
        pytest.fail(f"the recorder is not built in {BUILD}; run ./dev setup")
    return Recorder("preloaded", tmp_path)
