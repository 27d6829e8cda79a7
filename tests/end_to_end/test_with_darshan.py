"""Together with Darshan, in either order and either way in, both record each call once.

ENSIO_TEST_DARSHAN names a Darshan library, built for the MPI of mpicc or without MPI. The tests of other
tracers, test_with_another_tracer.py and test_with_another_mpi_tracer.py, need none.
"""

import datetime
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from places import ENSIO_CC, PATIENCE_S, PRELOAD, PROGRAMS
from test_calls import names

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

DARSHAN = os.environ.get("ENSIO_TEST_DARSHAN")
pytestmark = pytest.mark.skipif(not DARSHAN, reason="ENSIO_TEST_DARSHAN names no libdarshan.so")

TASKS = 2
H5PY = """
import h5py
with h5py.File("data.h5", "w", libver=("earliest", "v110")) as file:
    table = file.create_dataset("table", (300, 1000), chunks=(30, 100), dtype="f8")
    for row in range(0, 300, 30):
        table[row : row + 30] = row
with h5py.File("data.h5") as file:
    print(file["table"][:].sum())
"""
FIO = ["--ioengine=psync", "--rw=randrw", "--bs=16k", "--size=1m", "--randseed=3", "--thread"]
COUNTERS = ("OPENS", "READS", "WRITES", "SEEKS", "STATS", "FSYNCS", "FLUSHES", "BYTES_READ", "BYTES_WRITTEN")
COUNTERS += ("INDEP_OPENS", "COLL_OPENS", "INDEP_WRITES", "COLL_WRITES", "INDEP_READS", "COLL_READS", "SYNCS")
READ_LOGS = """
import json, sys, darshan
for path in sys.argv[1:]:
    report = darshan.DarshanReport(path, read_all=True)
    for module in {"POSIX", "STDIO", "MPI-IO"} & set(report.records):
        for record in report.records[module]:
            counters = dict(zip(report.counters[module]["counters"], map(int, record["counters"])))
            print(json.dumps([module, report.name_records[record["id"]], counters]))
"""

PRELOADED = {"ensio, Darshan": ("", "", "ensio darshan"), "Darshan, ensio": ("", "", "darshan ensio")}
LINKED = {
    "Darshan linked, ensio preloaded": ("", "linked", "ensio"),
    "Darshan wrapped, ensio preloaded": ("", "wrapped", "ensio"),
    "ensio linked, Darshan preloaded": ("linked", "", "darshan"),
}


def has_mpi() -> bool:
    """Whether the library was built for an MPI."""
    symbols = subprocess.run(["nm", "-D", DARSHAN], capture_output=True, text=True, check=True).stdout
    return " T MPI_Init" in symbols


def build(folder: Path, program: str, ensio: str, darshan: str) -> Path:
    """A C program, linked with the tracers whose way in is not by preload."""
    library = Path(DARSHAN)
    compiler = "mpicc" if program.startswith("mpi") else "gcc"
    more: list[object] = []
    if darshan == "linked":
        more = ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{library.parent}"]
    elif darshan == "wrapped":
        options = library.parents[1] / "share" / "ld-opts" / "darshan-ld-opts"
        if not library.with_suffix(".a").exists() or compiler == "gcc":
            pytest.skip("Darshan comes as a static library only for MPI programs")
        more = [f"-Wl,@{options}", library.with_suffix(".a"), "-lz", "-lrt", "-lm"]
    path = folder / f"{program}-{ensio}-{darshan}"
    driver = [ENSIO_CC] if ensio == "linked" else []
    command = [*driver, compiler, "-w", PROGRAMS / f"{program}.c", *more, "-o", path, "-pthread"]
    subprocess.run(command, check=True)
    return path


class Outcome:
    """What one run of a program printed, and what the tracers recorded of the files in its folder."""

    def __init__(self, folder: Path, command: list[object], preloaded: str):
        data, logs, record = folder / "data", folder / "logs", folder / "run"
        data.mkdir(parents=True)
        today = datetime.datetime.now()
        for day in (today, today + datetime.timedelta(days=1)):
            (logs / f"{day.year}/{day.month}/{day.day}").mkdir(parents=True)
        libraries = {"ensio": str(PRELOAD), "darshan": DARSHAN}
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
        environment = kept | ANY_TASKS | {
            "ENSIO_DIR": str(record),
            "DARSHAN_LOGPATH": str(logs),
            "DARSHAN_MMAP_LOGPATH": str(folder),
        }  # fmt: skip
        settings = [f"LD_PRELOAD={':'.join(libraries[name] for name in preloaded.split())}"]
        if command[0] != "mpiexec":
            settings.append("DARSHAN_ENABLE_NONMPI=1")
        launcher = [*command[:3], "env"] if command[0] == "mpiexec" else ["env"]
        program = command[3:] if command[0] == "mpiexec" else command
        words = [str(word).replace("{data}", str(data)) for word in (*launcher, *settings, *program)]
        done = subprocess.run(words, cwd=data, env=environment, capture_output=True, timeout=PATIENCE_S)
        self.said = (done.returncode, done.stdout, done.stderr)
        self.run = ensembles.open(record) if record.exists() else None
        self.recorded = self._recorded(data) if self.run else Counter()
        self.counted = self._counted(data, sorted(logs.rglob("*.darshan")))

    def _recorded(self, data: Path) -> Counter:
        events = self.run.select(file=f"{data}/*")
        files = [os.path.relpath(self.run.files[file], data) for file in events.file]
        columns = (events.requested.tolist(), events.moved.tolist())
        return Counter(zip(names(events), files, *columns, strict=True))

    def _counted(self, data: Path, logs: list[Path]) -> Counter:
        done = subprocess.run([sys.executable, "-c", READ_LOGS, *logs], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found: Counter = Counter()
        for line in done.stdout.splitlines():
            module, name, counters = json.loads(line)
            for counter, value in counters.items():
                kind = counter.split("_", 1)[1]
                if Path(name).is_relative_to(data) and kind in COUNTERS:
                    found[module, os.path.relpath(name, data), kind] += value
        return +found


def check(tmp_path: Path, command, preloaded: str, alone: str, said=lambda outcome: outcome.said) -> Outcome:
    """Both record the same together as each records alone, and the program does the same."""
    ensio = Outcome(tmp_path / "ensio", command("ensio"), alone if alone == "ensio" else "")
    with_darshan = "darshan" if "darshan" in preloaded.split() else ""
    darshan = Outcome(tmp_path / "darshan", command("darshan"), with_darshan)
    both = Outcome(tmp_path / "both", command("both"), preloaded)
    assert said(both) == said(ensio) == said(darshan)
    assert both.said[0] == darshan.said[0]
    assert darshan.counted
    assert both.counted == darshan.counted
    assert ensio.recorded
    assert both.recorded == ensio.recorded
    assert (both.run.info.dropped_events, both.run.notes) == (0, ensio.run.notes)
    return both


@pytest.mark.parametrize("ways", (PRELOADED | LINKED).values(), ids=(PRELOADED | LINKED).keys())
def test_a_program_of_threads_streams_and_children(tmp_path, ways):
    ensio, darshan, preloaded = ways

    def command(which):
        tracers = {"ensio": (ensio, ""), "darshan": ("", darshan), "both": (ensio, darshan)}
        return [build(tmp_path, "traced_twice", *tracers[which])]

    check(tmp_path, command, preloaded, "linked" if ensio else "ensio")


@pytest.mark.parametrize("ways", PRELOADED.values(), ids=PRELOADED.keys())
def test_fio(tmp_path, ways):
    command = ["fio", "--name=job", "--filename=data", *FIO]
    check(tmp_path, lambda _: command, ways[2], "ensio", lambda outcome: outcome.said[0])


@pytest.mark.parametrize("ways", PRELOADED.values(), ids=PRELOADED.keys())
def test_h5py(tmp_path, ways):
    script = tmp_path / "script.py"  # PyDarshan cannot read the log of a command line with line ends
    script.write_text(H5PY)
    check(tmp_path, lambda _: [sys.executable, script], ways[2], "ensio")


@pytest.mark.parametrize("ways", (PRELOADED | LINKED).values(), ids=(PRELOADED | LINKED).keys())
def test_an_mpi_program(tmp_path, ways):
    if not has_mpi():
        pytest.skip(f"{DARSHAN} was built without MPI")
    ensio, darshan, preloaded = ways

    def command(which):
        tracers = {"ensio": (ensio, ""), "darshan": ("", darshan), "both": (ensio, darshan)}
        return ["mpiexec", "-n", str(TASKS), build(tmp_path, "mpiio_totals", *tracers[which]), "{data}"]

    alone = "linked" if ensio else "ensio"
    both = check(tmp_path, command, preloaded, alone, lambda outcome: outcome.said[0])
    assert {process.rank for process in both.run.info.processes} == set(range(TASKS))
    calls = Counter(names(both.run.select(layer="mpisync")))
    assert calls["MPI_Init"] == calls["MPI_Finalize"] == TASKS


@pytest.mark.parametrize("ways", PRELOADED.values(), ids=PRELOADED.keys())
def test_darshans_own_logs_are_not_in_the_run(tmp_path, ways):
    program = build(tmp_path, "traced_twice", "", "")
    both = Outcome(tmp_path / "both", [program], ways[2])
    assert both.counted
    assert [path for path in both.run.files if ".darshan" in path] == []
