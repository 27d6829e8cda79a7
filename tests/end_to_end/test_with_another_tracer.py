"""Together with another tracer, in either order and either way in, both record each call once."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from places import ENSIO_CC, PATIENCE_S, PRELOAD, PROGRAMS
from test_calls import names

import ensembles

SOURCE = PROGRAMS / "other_tracer.c"
WRAPPED = re.findall(r"^(?:CALL|OPEN|SEEK)\((\w+)", SOURCE.read_text(), re.M)
LOG = "other_tracer.log"

# Way in of ensio and of the other tracer. The first of two preloaded libraries is called first.
TOGETHER = {
    "ensio, other": ("preloaded", "preloaded after"),
    "other, ensio": ("preloaded after", "preloaded"),
    "ensio preloaded, other linked": ("preloaded", "linked"),
    "ensio linked, other preloaded": ("linked", "preloaded"),
}


class Tracers:
    """Builds a program with the tracers that are linked, and runs it under those that are preloaded.

    Parameters
    ----------
    folder : Path
        Where programs, their folders and what the tracers recorded go.
    """

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder
        self.environment = environment
        self.library = folder / "libother.so"
        subprocess.run(["gcc", "-O2", "-w", "-shared", "-fPIC", SOURCE, "-o", self.library], check=True)

    def build(self, program: str, ensio: str, other: str) -> Path:
        """Compile ``programs/<program>.c``, linked with the tracers whose way in is ``linked``."""
        path = self.folder / f"{program}-{ensio}-{other}".replace(" ", "-")
        driver = [ENSIO_CC] if ensio == "linked" else []
        wrapped = [f"-Wl,--wrap={name}" for name in WRAPPED] if other == "linked" else []
        linked = [SOURCE, "-DLINKED", *wrapped] if wrapped else []
        command = [*driver, "gcc", "-O2", "-w", "-D_GNU_SOURCE", PROGRAMS / f"{program}.c", *linked]
        subprocess.run([*command, "-o", path, "-pthread"], check=True)
        return path

    def run(self, program: str, name: str, ensio: str = "", other: str = "", **more: str):
        """Run a program in its own folder. An empty way in: without that tracer.

        Returns
        -------
        said : tuple
            Exit status, standard output and standard error.
        recorded, counted : Counter
            Calls that ensio recorded on each file of the folder, with offset and bytes; the other's counts.
        run : Run
            ensio's record, or None.
        """
        folder = self.folder / name
        data, log = folder / "data", folder / LOG
        data.mkdir(parents=True)
        libraries = sorted([(ensio, str(PRELOAD)), (other, str(self.library))])
        preloaded = [library for way, library in libraries if way.startswith("preloaded")]
        environment = self.environment | {
            "ENSIO_DIR": str(folder / "run"),
            "ENSIO_EXCLUDE": f"*/{LOG}:/proc/*:/dev/*:*.so*",
            "OTHER_TRACER_LOG": str(log),
            "LD_PRELOAD": ":".join(preloaded),
        } | more  # fmt: skip
        done = subprocess.run(
            [self.build(program, ensio, other), *([data] if program == "every_call" else [])],
            cwd=data, env=environment, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip
        counted: Counter = Counter()
        for line in log.read_text().splitlines() if log.exists() else ():
            symbol, calls, size = line.split()
            counted.update({symbol: int(calls), f"bytes of {symbol}": int(size)})
        run = ensembles.open(folder / "run") if ensio else None
        return (done.returncode, done.stdout, done.stderr), recorded(run, data), +counted, run


def recorded(run, folder: Path) -> Counter:
    """Each recorded call: its name, file, offset, bytes asked for and moved, and errno."""
    if run is None:
        return Counter()
    events = run.events
    files = [os.path.relpath(run.files[file], folder) for file in events.file]
    columns = (events.offset, events.requested, events.moved, events.error)
    return Counter(zip(names(events), files, *(column.tolist() for column in columns), strict=True))


@pytest.fixture
def tracers(preload, tmp_path) -> Tracers:
    environment = {key: value for key, value in preload.environment().items() if key != "LD_PRELOAD"}
    return Tracers(tmp_path, environment)


@pytest.mark.parametrize("program", ["traced_twice", "every_call"])
@pytest.mark.parametrize("ways", TOGETHER.values(), ids=TOGETHER.keys())
def test_both_record_everything_once(tracers, program, ways):
    ensio, other = ways
    alone = "linked" if ensio == "linked" else "preloaded"
    said, _, _, _ = tracers.run(program, "plain")
    said_alone, recorded_alone, _, run_alone = tracers.run(program, "ensio", ensio=alone)
    said_of_other, _, counted_alone, _ = tracers.run(program, "other", other=other.split()[0])
    said_together, recorded_together, counted_together, run = tracers.run(program, "both", ensio, other)
    assert said[0] == 7
    assert said == said_alone == said_of_other == said_together
    assert sum(counted_alone.values()) > 20
    assert counted_together == counted_alone
    assert sum(recorded_alone.values()) > 40
    assert recorded_together == recorded_alone
    assert len(run.info.processes) == len(run_alone.info.processes)
    assert run.info.dropped_events == 0
    assert run.notes == run_alone.notes == []
    assert all(process.ended for process in run.info.processes)


@pytest.mark.parametrize("ways", TOGETHER.values(), ids=TOGETHER.keys())
def test_files_of_the_recorder_are_not_counted_by_the_other_tracer(tracers, ways):
    """The counts are those of a run in which the recorder is shut off."""
    ensio, other = ways
    _, _, without, _ = tracers.run("traced_twice", "off", other=other.split()[0])
    for mode in ("profile", "tail"):
        _, _, counted, run = tracers.run("traced_twice", mode, ensio, other, ENSIO_MODE=mode)
        assert counted == without
        assert run.mode == mode


@pytest.mark.parametrize("ways", TOGETHER.values(), ids=TOGETHER.keys())
def test_what_the_other_tracer_writes_is_its_own_file(tracers, ways):
    """It is recorded like any other I/O of the process, under its own name, unless ENSIO_EXCLUDE names it."""
    ensio, other = ways
    _, left_out, _, _ = tracers.run("traced_twice", "left out", ensio, other)
    others = "/proc/*:/dev/*:*.so*"
    _, let_in, _, _ = tracers.run("traced_twice", "let in", ensio, other, ENSIO_EXCLUDE=others)
    assert left_out - let_in == Counter()
    # The wrappers of a relinked program do not see what a library calls.
    expected = set() if ensio == "linked" else {LOG}
    assert {Path(file).name for _, file, *_ in let_in - left_out} == expected
