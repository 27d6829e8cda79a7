"""Real programs, recorded by relinking and by preload."""

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import ClassVar

import pytest
from compiling import build
from places import BUILD, ENSIO_CC, PATIENCE_S, PRELOAD, PROGRAMS, ROOT

import ensembles
from ensembles import Run
from ensembles.cli.replay_program import ANY_TASKS

sys.path.append(str(ROOT / "tests" / "unit"))  # modules that serve tests of all folders
WAYS = ("relinked", "preloaded")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests of this folder are slow, but for those marked as quick, and take each value once."""
    if not item.get_closest_marker("quick"):
        item.add_marker(pytest.mark.slow)
    if not item.get_closest_marker("all_cases"):
        item.add_marker(pytest.mark.each_once)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests whose only parameter is the way into a program, those of a file take the ways in turn."""
    places: defaultdict[Path, dict[str, int]] = defaultdict(dict)
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if params.keys() == {"recorder"} and item.get_closest_marker("each_once"):
            tests = places[item.path]
            place = tests.setdefault(item.nodeid.partition("[")[0], len(tests))
            if params["recorder"] != WAYS[place % len(WAYS)]:
                item.add_marker(pytest.mark.long)


class Recorder:
    """Builds programs of this folder and runs them, recorded or not.

    Parameters
    ----------
    way : str
        ``"relinked"`` with ensio-cc, or ``"preloaded"``.
    folder : Path
        Where programs and run directories go.
    """

    settings: ClassVar[dict[str, str]] = {}
    """Settings of all recordings of a test, by environment variable."""

    def __init__(self, way: str, folder: Path):
        self.way = way
        self.folder = folder
        self.run = folder / "run"
        self.library = PRELOAD
        self.driver = ENSIO_CC

    def source(self, name: str) -> Path:
        """The file ``programs/<name>.c``."""
        return PROGRAMS / f"{name}.c"

    def build(self, name: str, *options: str, compiler: str = "gcc") -> Path:
        """Compile ``programs/<name>.c`` for this way in."""
        driver = [self.driver] if self.way == "relinked" else []
        command = [*driver, compiler, "-O2", "-w", self.source(name), "-pthread", *options]
        return build(self.folder / f"{name}-{self.way}", *command)

    def copy_library(self, folder: Path) -> None:
        """Preload from a folder: only root may look where the library lies."""
        for library in self.library.parent.glob("libensio-*.so"):
            shutil.copy(library, folder)
        self.library = folder / self.library.name

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a recorded program."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
        preload = {"LD_PRELOAD": str(self.library)} if self.way == "preloaded" else {}
        return clean | preload | {"ENSIO_DIR": str(self.run)} | self.settings | more

    def execute(self, *command: object, **options) -> subprocess.CompletedProcess:
        """Run a program to its end, recorded into `run`."""
        environment = self.environment(**options.pop("environment", {}))
        return subprocess.run(
            [str(word) for word in command], env=environment, capture_output=True, **options
        )

    def tasks(self, flavour: str, program: Path, *arguments: object, tasks: int = 2, **more: str) -> Run:
        """Run a program of an MPI in `folder` to its end, recorded into `run`; gives the opened run."""
        command = [f"mpiexec.{flavour}", "-n", str(tasks), *map(str, (program, *arguments))]
        done = subprocess.run(
            command,
            env=self.environment(**ANY_TASKS, **more),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return ensembles.open(self.run)

    def untraced(self, *command: object, **options) -> subprocess.CompletedProcess:
        """Run a program of the same build without recording."""
        environment = self.environment(**options.pop("environment", {}))
        environment.pop("LD_PRELOAD", None)
        environment["ENSIO_DISABLE"] = "1"
        return subprocess.run(
            [str(word) for word in command], env=environment, capture_output=True, **options
        )


@pytest.fixture
def uncoded(monkeypatch) -> None:
    """Processes leave their spools as they are at their end."""
    monkeypatch.setattr(Recorder, "settings", {"ENSIO_JOBFILE": "0"})


@pytest.fixture(params=WAYS)
def recorder(request, tmp_path) -> Recorder:
    """A recorder for each way into a program."""
    if not ENSIO_CC.exists() or not PRELOAD.exists():
        pytest.fail(f"the recorder is not built in {BUILD}; run ./dev setup")
    return Recorder(request.param, tmp_path)


@pytest.fixture
def relinked(tmp_path) -> Recorder:
    """A recorder for programs that are linked with ensio-cc."""
    if not ENSIO_CC.exists():
        pytest.fail(f"the recorder is not built in {BUILD}; run ./dev setup")
    return Recorder("relinked", tmp_path)


@pytest.fixture
def preload(tmp_path) -> Recorder:
    """A recorder for programs that this project did not build."""
    if not PRELOAD.exists():
        pytest.fail(f"the recorder is not built in {BUILD}; run ./dev setup")
    return Recorder("preloaded", tmp_path)


@pytest.fixture(scope="session", autouse=True)
def programs_of_the_session(tmp_path_factory):
    """Processes of one session build each program once: they find each other's in its temporary folder."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENSIO_TESTS_BUILT", str(folder))
        patch.setenv("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")  # tasks of MPICH that wait leave the processor
        yield


@pytest.fixture(scope="session")
def replay_program(tmp_path_factory):
    """Gives the ensio-replay of an MPI, built when it is first asked for."""
    from replaying import build_replay  # which imports modules of tests: not before pytest does

    folder = tmp_path_factory.mktemp("replay")

    def program(flavour: str, libraries: bool = True) -> Path:
        path = folder / f"ensio-replay-{flavour}{'-libraries' if libraries else ''}"
        return path if path.exists() else build_replay(path, flavour, libraries)

    return program
