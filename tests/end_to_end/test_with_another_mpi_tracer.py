"""Together with another tracer of MPI-IO, which calls PMPI_X, both record each call once."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from places import ENSIO_CC, PATIENCE_S, PRELOAD, PROGRAMS
from test_mpi import FLAVOURS, done

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

TASKS = 2
SOURCE = PROGRAMS / "other_mpi_tracer.c"
PROGRAM = PROGRAMS / "mpiio_calls.c"
WRAPPED = [*re.findall(r"^CALL\((\w+)", SOURCE.read_text(), re.M), "Finalize"]

# Way in of ensio and of the other tracer, and the order of those that are preloaded.
TOGETHER = {
    "ensio, other": ("preloaded", "preloaded", "ensio other"),
    "other, ensio": ("preloaded", "preloaded", "other ensio"),
    "ensio preloaded, other linked": ("preloaded", "linked", "ensio"),
    "ensio preloaded, other wrapped": ("preloaded", "wrapped", "ensio"),
    "ensio linked, other preloaded": ("linked", "preloaded", "other"),
}


def build(folder: Path, flavour: str, ensio: str, other: str) -> Path:
    """The program, linked with the tracers whose way in is not by preload."""
    compiler, path = f"mpicc.{flavour}", folder / f"program-{ensio}-{other}"
    driver = [ENSIO_CC] if ensio == "linked" else []
    more: list[object] = []
    if other in ("linked", "wrapped"):
        more = [folder / "other.o"]
        wrapped = other == "wrapped"
        command = [compiler, "-w", "-c", SOURCE, "-o", more[0], *(["-DWRAPPED"] if wrapped else [])]
        subprocess.run(command, check=True)
        more += [f"-Wl,--wrap=MPI_{name}" for name in WRAPPED] if wrapped else []
    subprocess.run([*driver, compiler, "-w", PROGRAM, *more, "-o", path], check=True)
    return path


def execute(folder: Path, name: str, flavour: str, program: Path, preloaded: list[Path], environment):
    """Run the program: what its tasks said of their calls, the other's counts, and the recorder's run."""
    data, log, run = (folder / name / part for part in ("data", "other.log", "run"))
    data.mkdir(parents=True)
    environment = environment | ANY_TASKS | {
        "ENSIO_DIR": str(run),
        "ENSIO_EXCLUDE": f"{log}*:/proc/*:/dev/*:*.so*:*/ompi.*/*:/sys/*",
        "OTHER_TRACER_LOG": str(log),
    }  # fmt: skip
    preload = f"LD_PRELOAD={':'.join(map(str, preloaded))}"
    command = [f"mpiexec.{flavour}", "-n", str(TASKS), "env", preload, program, data]
    finished = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S)
    assert finished.returncode == 0, finished.stderr.decode()
    said = []
    for told in sorted(data.glob("log.*")):
        lines = [line.split() for line in told.read_text().splitlines()]
        said.append(Counter((call, *map(int, numbers)) for call, *numbers in lines))
    counted = dict(re.findall(r"(\w+) (\d+)", log.read_text())) if log.exists() else {}
    return said, counted, ensembles.open(run) if run.exists() else None


def inside(run, folder: Path) -> Counter:
    """POSIX calls that move the program's data, by name and depth.

    How often Open MPI truncates a file depends on which task comes first.
    """
    events = run.select(layer="posix", op="read,write", file=f"{folder}/data/data*")
    return Counter(zip([events.calls[call].name for call in events.call], events.depth.tolist(), strict=True))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("ways", TOGETHER.values(), ids=TOGETHER.keys())
def test_both_record_every_call_of_mpi_once(preload, tmp_path, flavour, ways):
    ensio, other, order = ways
    library = tmp_path / "libother.so"
    subprocess.run([f"mpicc.{flavour}", "-w", "-shared", "-fPIC", SOURCE, "-o", library], check=True)
    libraries = {"ensio": PRELOAD, "other": library}
    environment = {key: value for key, value in preload.environment().items() if key != "LD_PRELOAD"}

    def run(name, ensio, other, order):
        program = build(tmp_path, flavour, ensio, other)
        preloaded = [libraries[word] for word in order.split()]
        return execute(tmp_path, name, flavour, program, preloaded, environment)

    said_alone, _, alone = run("ensio", ensio, "", "ensio" if ensio == "preloaded" else "")
    said_of_other, counted_alone, _ = run("other", "", other, "other" if other == "preloaded" else "")
    said, counted, both = run("both", ensio, other, order)
    assert said == said_alone == said_of_other
    assert counted == counted_alone
    assert int(counted["MPI_File_open"]) >= TASKS
    for rank in range(TASKS):
        assert done(both, rank, "mpiio") == done(alone, rank, "mpiio") == said[rank]
        assert done(both, rank, "mpisync") == done(alone, rank, "mpisync")
    assert inside(both, tmp_path / "both") == inside(alone, tmp_path / "ensio")
    assert not both.select(layer="mpiio,mpisync").depth.any()
    assert (len(both.info.processes), both.info.dropped_events, both.notes) == (TASKS, 0, alone.notes)
    assert {process.rank for process in both.info.processes} == set(range(TASKS))
    assert not [path for path in both.files if os.path.basename(path).startswith("other.log")]
    assert (tmp_path / "both" / "run" / "job.ensio").exists()
