"""Runs of real programs as OTF2 archives: otf2-print takes them, and reading gives what was written."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from places import BUILD, PATIENCE_S, ROOT
from test_hdf5 import flags
from test_mpi import compiled, executed

import ensembles
from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.events import COLUMNS, Events
from ensembles.writers.exchange.otf2 import PARADIGMS, estimate_cost, write_otf2


def fact(run, name):
    return getattr(run if hasattr(run, name) else run.info, name)


KEPT = [
    "tasks",
    "threads",
    "calls",
    "files",
    "processes",
    "notes",
    "mode",
    "job",
    "user",
    "libc_version",
    "mpi_version",
    "hosts",
    "clock_error_s",
    "clock_step_s",
    "environment",
    "mounts",
    "file_facts",
    "origin_unix_ns",
]
ARCHIVES = Path(__file__).parent / "archives"
INCLUDE = f"-I{ROOT / 'libtrace/include'}"


@pytest.fixture(autouse=True)
def program_to_write_with(monkeypatch):
    """The tree's own ensio-otf2."""
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")


def in_one_order(events):
    columns = events.columns
    order = np.lexsort([columns[name] for name in COLUMNS])
    return {name: columns[name][order] for name in COLUMNS}


def printed(anchor, *options):
    """What otf2-print says, and that it has nothing to complain of."""
    done = subprocess.run(
        ["otf2-print", *options, anchor], capture_output=True, text=True, errors="surrogateescape"
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def check_round_trip(run, folder, ranks_per_location=1):
    """Write, read, compare; the archive's anchor."""
    written = write_otf2(run, str(folder / f"archive-{ranks_per_location}"), ranks_per_location)
    again = ensembles.open(os.path.dirname(written.anchor))
    before, after = in_one_order(run.events), in_one_order(again.events)
    for name in COLUMNS:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    assert [site.label for site in again.info.sites] == [site.label for site in run.info.sites]
    for name in KEPT:
        assert fact(again, name) == fact(run, name), name
    assert again.regions.names == run.regions.names or set(again.regions.names) <= set(run.regions.names)
    ours, theirs = run.regions.to_pandas(), again.regions.to_pandas()
    by = ["rank", "thread", "start", "duration"]
    for column in ("rank", "thread", "kind", "name", "start", "duration", "ended"):
        one, other = (
            table.sort_values([*by, "name"])[column].astype(str).tolist() for table in (ours, theirs)
        )
        assert one == other, column
    return written.anchor


def check_print(run, anchor):
    """The counts of records are those of the calls."""
    records = Counter(re.findall(r"^([A-Z_0-9]+) ", printed(anchor), re.MULTILINE))
    events = run.events
    ops = Counter(run.calls[call].op for call in events.call if run.calls[call].layer in PARADIGMS)
    operations = ops["read"] + ops["write"] + ops["sync"]
    assert records["IO_OPERATION_BEGIN"] == records["IO_OPERATION_COMPLETE"] == operations
    assert records["ENTER"] == records["LEAVE"] == len(events) + len(run.regions)
    printed(anchor, "-G")


def check(run, folder):
    anchor = check_round_trip(run, folder)
    check_print(run, anchor)
    if run.tasks > 1:
        check_print(run, check_round_trip(run, folder, 2))
    check_round_trip(run, folder, 64)


@pytest.mark.parametrize("program", ["every_call", "metadata_calls"])
def test_every_posix_call_with_its_errors(preload, tmp_path, program):
    (tmp_path / "data").mkdir()
    preload.execute(preload.build(program), tmp_path / "data")
    run = ensembles.open(preload.run)
    assert (run.events.error > 0).any()
    check(run, tmp_path)


def test_threads_signal_handlers_and_positions(preload, tmp_path):
    preload.execute(preload.build("threads"), tmp_path, 4, 2000, 2, check=True)
    run = ensembles.open(preload.run)
    assert run.info.threads >= 8
    assert (run.events.depth >= 0).all()
    check(run, tmp_path)


def test_forked_and_executed_processes(preload, tmp_path):
    preload.execute(preload.build("processes"), tmp_path / "out")
    run = ensembles.open(preload.run)
    assert len(run.info.processes) == 4
    check(run, tmp_path)


def test_requests_that_go_on_after_their_call(preload, tmp_path):
    preload.execute(preload.build("aio_calls"), tmp_path, "ask")
    run = ensembles.open(preload.run)
    check(run, tmp_path)
    text = printed(tmp_path / "archive-1/traces.otf2")
    assert text.count("Operation Flags: {NON_BLOCKING}") == text.count("IO_OPERATION_ISSUED") >= 14
    # The completion of a request is at the end of its flight, however short the call that posted it.
    flying = run.events[run.events.flight >= 0]
    assert len(flying) >= 12
    ends = Counter((flying.start + flying.flight + run.info.origin_unix_ns).tolist())
    completions = re.findall(r"^IO_OPERATION_COMPLETE +\d+ +(\d+)", text, re.MULTILINE)
    assert not ends - Counter(map(int, completions))


def test_regions_and_phases(preload, tmp_path):
    preload.execute(preload.build("regions", INCLUDE), 3, cwd=preload.folder)
    run = ensembles.open(preload.run)
    assert not run.regions.ended.all()
    check(run, tmp_path)
    text = printed(tmp_path / "archive-1/traces.otf2")
    assert len(re.findall(r'^ENTER .*Region: "inner"', text, re.MULTILINE)) == 18


def test_mpi_io_with_posix_inside(preload, tmp_path):
    _, run = executed(preload, "openmpi", compiled(preload, "mpiio_calls", "mpicc.openmpi"))
    assert (run.events.depth > 0).any()
    assert (run.events.carried > 0).any()
    check(run, tmp_path)


def test_handles_have_the_access_that_the_program_asked_for(recorder, tmp_path):
    """The names of the files say it (``programs/opens.c``)."""
    program = recorder.build("opens", compiler="mpicc.openmpi")
    (tmp_path / "data").mkdir()
    recorder.execute(program, cwd=tmp_path / "data", environment=ANY_TASKS, check=True, timeout=PATIENCE_S)
    run = ensembles.open(recorder.run)
    anchor = check_round_trip(run, tmp_path)
    handles = re.findall(
        r'^IO_CREATE_HANDLE .* Handle: "\[(\S+)\]file://\S*/([\w-]+)" <\d+>, Access Mode: (\w+)',
        printed(anchor),
        re.MULTILINE,
    )
    # MPI-IO may open a file in POSIX with more rights than it was asked for.
    handles = [each for each in handles if each[0] == "MPI-IO" or "mpi" not in each[1]]
    told = [(name, mode) for _, name, mode in handles if name.startswith(("READ", "WRITE"))]
    assert {layer for layer, _, _ in handles} >= {"POSIX", "ISOC", "MPI-IO"}
    assert len(told) >= 14
    assert [(name, mode) for name, mode in told if not name.startswith(f"{mode}-")] == []


def test_parallel_hdf5_over_mpi_io_over_posix(preload, tmp_path):
    options = flags("cflags", "hdf5-openmpi") + flags("libs", "hdf5-openmpi")
    program = preload.build("hdf5_parallel", *options, compiler="mpicc.openmpi")
    command = [
        "mpiexec.openmpi",
        "-n",
        "3",
        "env",
        f"LD_PRELOAD={preload.library}",
        program,
        tmp_path / "a.h5",
        "20",
        "30",
    ]
    environment = {**os.environ, "ENSIO_DIR": str(preload.run), **ANY_TASKS}
    subprocess.run(
        [str(word) for word in command], env=environment, check=True, capture_output=True, timeout=PATIENCE_S
    )
    run = ensembles.open(preload.run)
    assert {"hdf5", "mpiio", "posix"} <= {run.calls[call].layer for call in run.events.call}
    check(run, tmp_path)
    text = printed(tmp_path / "archive-1/traces.otf2")
    assert {f'"[{paradigm}]file://{tmp_path}/a.h5"' for paradigm in ("HDF5", "MPI-IO", "POSIX")} <= set(
        re.findall(r'"\[[^"]*"', text)
    )


def test_the_cost_that_is_told_is_what_is_written(preload, tmp_path):
    preload.execute(preload.build("threads"), tmp_path, 4, 500, 1, check=True)
    run = ensembles.open(preload.run)
    for ranks in (1, 8):
        written = write_otf2(run, str(tmp_path / f"a{ranks}"), ranks)
        files = sum(len(names) for _, _, names in os.walk(os.path.dirname(written.anchor)))
        assert estimate_cost(run, ranks).files == files


def test_export_tells_the_cost_and_names_what_is_in_the_way(preload, tmp_path, capsys):
    preload.execute(preload.build("threads"), tmp_path, 2, 100, 1, check=True)
    archive = str(tmp_path / "archive")
    assert main(["export", str(preload.run), "--to", "otf2", archive]) == 0
    told = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"ensio: {archive}: up to \d+ files, about .*", told[0])
    assert told[1].endswith(f" calls in {archive} (otf2)")
    printed(f"{archive}/traces.otf2")
    for source in (archive, f"{archive}/traces.otf2"):
        assert main(["info", source, "--json"]) == 0
    assert main(["export", str(preload.run), "--to", "otf2", archive]) == 2
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == f"ensio: {archive} exists already: name a folder that does not exist yet"
    )


def test_without_the_program_a_sentence_names_the_package(preload, tmp_path, capsys, monkeypatch):
    preload.execute(preload.build("threads"), tmp_path, 2, 100, 1, check=True)
    archive = write_otf2(ensembles.open(preload.run), str(tmp_path / "archive")).anchor
    monkeypatch.setattr("ensembles.recorder.install_paths.install_prefixes", lambda: iter(()))
    # Before a run is looked at, even.
    export = ["export", str(tmp_path / "no run"), "--to", "otf2", str(tmp_path / "b")]
    for words in (export, ["info", archive]):
        capsys.readouterr()
        assert main(words) == 2
        (told,) = capsys.readouterr().err.splitlines()
        assert "libopen-trace-format2-dev pkgconf" in told
        assert "./dev setup" in told
    assert not (tmp_path / "b").exists()


def test_a_call_around_more_calls_than_are_held_comes_late_and_unchanged(tmp_path):
    kept = ensembles.open(ARCHIVES / "ours")
    count = 1_100_000
    columns = {name: np.zeros(count + 1, dtype) for name, dtype in COLUMNS.items()}
    columns["flight"][:] = -1
    columns["start"][:count] = np.arange(count) * 1000 + 10
    columns["duration"][:count] = 500
    columns["depth"][:count] = 1
    columns["duration"][count] = count * 1000 + 2000  # the call around them, which ends and so comes last
    columns["call"][:] = kept.events.call[5]
    columns["offset"][:] = np.arange(count + 1) * 7
    events = Events(columns, kept.calls, kept.files)

    class Long:
        """A run with these calls, else as the kept one."""

        def __getattr__(self, name):
            return getattr(kept, name)

        def chunks(self, most_events):
            return (events[low : low + most_events] for low in range(0, len(events), most_events))

    written = write_otf2(Long(), str(tmp_path / "archive"))
    assert written.late_calls == 1
    before, after = in_one_order(events), in_one_order(ensembles.open(tmp_path / "archive").events)
    for name in COLUMNS:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
