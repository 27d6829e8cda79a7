"""MPI programs of both families, in C and Fortran."""

import errno
import json
import platform
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import strace
from compiling import build
from places import BUILD, ENSIO_CC, PATIENCE_S, PROGRAMS, ROOT

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.run.collect import collect
from ensembles.run.information import collect_information

FLAVOURS = ("openmpi", "mpich")


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_what_is_known_without_a_header_is_what_the_header_says(relinked, tmp_path, flavour):
    program = tmp_path / "constants"
    include = ["-I", ROOT / "libtrace", "-I", ROOT / "libtrace/include"]
    library = BUILD / "lib/libensio-mpi.a"
    source = PROGRAMS / "mpi_constants.c"
    subprocess.run([f"mpicc.{flavour}", *include, source, library, "-o", program], check=True)
    done = subprocess.run([program], env=relinked.environment(**ANY_TASKS), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def compiled(recorder, name: str, compiler: str, *options: object) -> Path:
    """Build a program of C or Fortran for this way in."""
    (source,) = (path for path in PROGRAMS.glob(f"{name}.*"))
    driver = [ENSIO_CC] if recorder.way == "relinked" else []
    program = recorder.folder / f"{name}-{recorder.way}"
    return build(program, *driver, compiler, "-w", source, *options)


def executed(recorder, flavour: str, program: Path, *arguments: object, tasks: int = 2, **more: str):
    """Run a program in its own folder; what it said, by rank, and the run."""
    folder = recorder.folder / "data"
    folder.mkdir()
    run = recorder.tasks(flavour, program, folder, *arguments, tasks=tasks, **more)
    said = []
    for log in sorted(folder.glob("log.*")):
        lines = [line.split() for line in log.read_text().splitlines()]
        said.append(Counter((name, *map(int, numbers)) for name, *numbers in lines))
    return said, run


def done(run, rank: int, layers: str) -> Counter:
    """Name, offset, bytes asked for and moved of a task's calls."""
    events = run.select(layer=layers, rank=str(rank))
    names = [events.calls[call].name for call in events.call]
    return Counter(
        zip(names, events.offset.tolist(), events.requested.tolist(), events.moved.tolist(), strict=True)
    )


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_call_of_mpiio_is_what_the_program_did(recorder, flavour):
    said, run = executed(recorder, flavour, compiled(recorder, "mpiio_calls", f"mpicc.{flavour}"))
    assert [sum(calls.values()) for calls in said] == [83, 81]
    assert [done(run, rank, "mpiio") for rank in (0, 1)] == said
    table = {call.name for call in run.calls if call.layer == "mpiio"}
    assert {name for name, *_ in said[0]} == table
    check_of_calls_of_mpi(run)
    check_of_requests(run)
    # The program's waits for messages complete I/O too, so none is a wait for tasks alone.
    assert not COMPLETIONS & {run.calls[call].name for call in run.select(layer="mpisync").call}
    failed = run.select(layer="mpiio")
    failed = failed[failed.error > 0]
    codes = zip([failed.calls[call].name for call in failed.call], failed.error.tolist(), strict=True)
    assert set(codes) == {
        ("MPI_File_open", errno.ENOENT),
        ("MPI_File_delete", errno.ENOENT),
        ("MPI_File_write_at", errno.EROFS),
    }
    facts = run.info.file_facts[str(recorder.folder / "data" / "data")]
    assert facts["asked.cb_nodes"] == "1"
    assert any(key.startswith("hint.") for key in facts)
    assert run.notes == []


COMPLETIONS = {f"MPI_{kind}{of}" for kind in ("Wait", "Test") for of in ("", "all", "any", "some")}


def check_of_calls_of_mpi(run) -> None:
    """None is recorded inside another. Calls about one file name it; completions may be of several."""
    assert not run.select(layer="mpiio,mpisync").depth.any()
    for events in run.select(layer="mpiio"), run.select(layer="mpisync"):
        of_files = [run.calls[call].name.startswith("MPI_File_") for call in events.call]
        assert {Path(run.files[file]).name for file in events.file[of_files]} <= {"data"}
        assert not events.file[np.logical_not(of_files)].any()


def check_of_requests(run) -> None:
    """A request is in flight until the end of the call that completes it, which is a later one."""
    events = run.select(layer="mpiio")
    is_wait = np.array([run.calls[call].op == "wait" for call in events.call])
    for rank in range(run.tasks):
        posts = events[(events.rank == rank) & (events.flight >= 0)]
        waits = events[(events.rank == rank) & is_wait]
        by_number = dict(zip(posts.request.tolist(), range(len(posts)), strict=True))
        assert 0 not in by_number
        assert len(set(waits.request.tolist())) == len(waits) > 0
        for number, wait_start, wait_end in zip(waits.request, waits.start, waits.end, strict=True):
            post = by_number[int(number)]
            completed = posts.start[post] + posts.flight[post]
            assert posts.end[post] <= wait_start
            assert abs(completed - wait_end) <= 2  # ns: times are rounded one by one
        assert (posts.duration <= posts.flight).all()


def is_of_io(name: str) -> bool:
    return name.startswith("MPI_File_") or name in COMPLETIONS


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_fortran_programs_are_recorded_as_those_in_c(recorder, flavour, module):
    option = "-DF08" if module == "mpi_f08" else "-UF08"
    program = compiled(recorder, "mpiio_fortran", f"mpif90.{flavour}", option)
    said, run = executed(recorder, flavour, program, ENSIO_POINT_TO_POINT="1")
    frame = Counter({("MPI_Init", -1, 0, 0): 1, ("MPI_Finalize", -1, 0, 0): 1})
    assert [sum(calls.values()) for calls in said] == [33, 33]
    # All requests of this program are of I/O, and so are the calls that complete them.
    io = [Counter({call: n for call, n in calls.items() if is_of_io(call[0])}) for calls in said]
    assert [done(run, rank, "mpiio") for rank in (0, 1)] == io
    assert [done(run, rank, "mpisync") for rank in (0, 1)] == [
        calls - of_io + frame for calls, of_io in zip(said, io, strict=True)
    ]
    assert {"MPI_Waitall", "MPI_Waitany", "MPI_Waitsome", "MPI_Test"} <= {name for name, *_ in io[0]}
    check_of_calls_of_mpi(run)
    check_of_requests(run)
    assert run.info.file_facts[str(recorder.folder / "data" / "data")]["asked.cb_nodes"] == "1"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_call_in_which_tasks_wait_is_recorded_once(recorder, flavour):
    program = compiled(recorder, "mpisync_calls", f"mpicc.{flavour}")
    said, run = executed(recorder, flavour, program, ENSIO_POINT_TO_POINT="1")
    assert [done(run, rank, "mpisync") for rank in (0, 1)] == said
    table = {call.name for call in run.calls if call.layer == "mpisync"}
    unsaid = {"MPI_Init", "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"}
    assert {name for name, *_ in said[0]} == table - unsaid
    check_of_calls_of_mpi(run)
    assert {run.calls[call].op for call in run.select(layer="mpisync").call} == {"wait"}


MESSAGES = {"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome", "MPI_Recv", "MPI_Sendrecv", "MPI_Probe"}


@pytest.mark.parametrize("mode", ["trace", "profile"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_waits_for_messages_are_summed_and_not_events(recorder, flavour, mode):
    program = compiled(recorder, "mpisync_calls", f"mpicc.{flavour}")
    said, run = executed(recorder, flavour, program, ENSIO_MODE=mode)
    expected = [Counter({call: n for call, n in all_.items() if call[0] not in MESSAGES}) for all_ in said]
    if mode == "trace":
        assert [done(run, rank, "mpisync") for rank in (0, 1)] == expected
    told = collect_information(run)
    names = Counter(name for all_ in said for name, *_ in all_.elements())
    assert {name: call["count"] for name, call in told["calls"].items() if name.startswith("MPI_")} == names
    assert names.keys() >= MESSAGES
    assert told["summed_calls"] == (sum(names[name] for name in MESSAGES) if mode == "trace" else 0)
    assert told["dropped_events"] == 0
    for name in MESSAGES:
        assert 0 < told["calls"][name]["max_s"] <= told["calls"][name]["time_s"]
    layer = told["layers"]["mpisync"]
    times = [call["time_s"] for call in told["calls"].values() if call["layer"] == "mpisync"]
    assert layer["time_s"] == pytest.approx(sum(times))
    assert layer["calls"] == names.total()
    collect(str(recorder.run))
    again = collect_information(ensembles.open(recorder.run / "trace.h5"))
    assert again["calls"] == told["calls"]
    assert again["summed_calls"] == told["summed_calls"]


@pytest.mark.parametrize("job_file", ["1", pytest.param("0", marks=pytest.mark.long)])
def test_many_waits_leave_no_gap_in_the_events_around_them(preload, tmp_path, job_file):
    """Their slots stay empty in the spool; the job file closes up, and the spools go."""
    written = 1000
    program = compiled(preload, "messages", "mpicc.openmpi")
    command = ["mpiexec.openmpi", "-n", "2", program, str(5 * written)]
    sizes = {}
    for stored in ("0", "1"):
        preload.run = preload.folder / f"run{stored}"
        more = {"ENSIO_POINT_TO_POINT": stored, "ENSIO_JOBFILE": job_file}
        subprocess.run(
            command,
            env=preload.environment(**ANY_TASKS, **more),
            check=True,
            cwd=tmp_path,
            timeout=PATIENCE_S,
        )
        assert bool(list(preload.run.glob("*.spool"))) == (job_file == "0")
        sizes[stored] = sum(file.stat().st_size for file in preload.run.iterdir())
        run = ensembles.open(preload.run)
        assert run.notes == []
        for rank in (0, 1):
            writes = run.select(call="write", rank=str(rank), file="*/data.*")
            assert writes.moved.tolist() == [i % 3 + 1 for i in range(written)]
            assert (writes.start[1:] >= writes.end[:-1]).all()
            assert len(run.select(call="MPI_Wait", rank=str(rank))) == (10 * written if stored == "1" else 0)
        told = collect_information(run)
        assert told["calls"]["MPI_Wait"]["count"] == 20 * written
        assert told["calls"]["write"]["count"] >= 2 * written
    assert job_file == "0" or sizes["0"] < sizes["1"] / 2


# Open MPI aborts programs that give up a request of I/O.
@pytest.mark.parametrize(
    ("flavour", "end"),
    [("openmpi", "wait"), ("openmpi", "never"), ("mpich", "wait"), ("mpich", "free"), ("mpich", "never")],
)
def test_requests_end_wherever_the_program_ends_them(recorder, flavour, end):
    program = compiled(recorder, "mpiio_loose_ends", f"mpicc.{flavour}", "-pthread")
    _, run = executed(recorder, flavour, program, *([] if end == "wait" else [end]), tasks=1)
    expected = Counter({("MPI_File_iwrite_at", 64 * i, 64, 64): 1 for i in range(100)})
    expected["MPI_File_iread_at", 64, 10, 10] += 1
    expected["MPI_File_iread_at", 128, 30, 30] += 1
    expected["MPI_File_iwrite_at", 0, 11, 11] += 1
    expected["MPI_File_iwrite_at", 0, 12, 12] += end != "wait"
    found = done(run, 0, "mpiio")
    for name in ("MPI_Waitall", "MPI_Testall", "MPI_Testsome", "MPI_Wait"):  # whatever was tested in vain
        expected[name, -1, 0, 0] += 1
    assert +(found - expected) == Counter(
        {("MPI_File_open", -1, 0, 0): 1} | ({("MPI_File_close", -1, 0, 0): 1} if end == "wait" else {})
    )
    assert expected - found == Counter()
    assert not COMPLETIONS & {run.calls[call].name for call in run.select(layer="mpisync").call}
    assert collect_information(run)["summed_calls"] == 0
    posts = run.select(call="MPI_File_iwrite_at,MPI_File_iread_at")
    assert posts.thread.max() == 1  # another thread has waited
    assert run.select(call="MPI_Wait").thread.tolist() == [1]
    # The flight of a request that the program never ended is unknown.
    ended = posts.requested != 12
    assert set(posts.flight[~ended].tolist()) == (set() if end == "wait" else {-1})
    assert (posts.flight[ended] >= posts.duration[ended]).all()
    check_of_requests(run)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_bytes_count_once_and_time_goes_to_the_layer_that_spent_it(recorder, flavour):
    program = compiled(recorder, "mpiio_totals", f"mpicc.{flavour}")
    _, run = executed(recorder, flavour, program, *(["ufs:"] if flavour == "mpich" else []))
    told = collect_information(run)
    assert str(recorder.folder / "data" / "data") in run.files
    assert not [path for path in run.files if "ufs:" in path]
    assert told["bytes_written"] == 2 * (4 + 4) * 16384
    calls = told["calls"]
    assert calls["MPI_File_write_all"]["bytes"] == calls["MPI_File_iwrite_at"]["bytes"] == 2 * 4 * 16384
    layers = told["layers"]
    assert layers["mpisync"]["time_s"] > 0
    inside = run.select(layer="posix", file="*/data")
    if recorder.way == "relinked":  # what a shared library does inside is not visible
        assert not len(inside)
        assert layers["mpiio"]["exclusive_time_s"] == layers["mpiio"]["time_s"]
        assert told["bytes_read"] == 2 * 16384
    else:
        assert inside.depth.min() == 1
        assert int(inside.moved[inside.op == 1].sum()) > 0
        assert 0 < layers["mpiio"]["exclusive_time_s"] < layers["mpiio"]["time_s"]
        # Two-phase writing may read what lies between; reads inside reads count once.
        reads = inside[(inside.op == 0) & (inside.carried & 1 == 0)]
        assert told["bytes_read"] == 2 * 16384 + int(reads.moved[reads.moved > 0].sum())
    assert json.loads(json.dumps(told))["file_facts"] == run.info.file_facts


def test_static_mpich_shows_the_calls_under_mpiio_and_strace_agrees(relinked):
    libraries = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
    options = ["-I", f"/usr/include/{platform.machine()}-linux-gnu/mpich", libraries / "libmpich.a", "-lm"]
    options += [f"-l:lib{name}" for name in ("hwloc.so.15", "ucp.so.0", "ucs.so.0", "uct.so.0")]
    program = compiled(relinked, "mpiio_calls", "gcc", *options)
    said, run = executed(relinked, "mpich", program)
    assert [done(run, rank, "mpiio") for rank in (0, 1)] == said
    inside = run.select(layer="posix", file="*/data/data")
    assert inside.depth.tolist() == [1] * len(inside)

    # Once more, alone, under strace: what is recorded is what the kernel saw.
    folder, relinked.run = relinked.folder / "alone", relinked.folder / "alone-run"
    folder.mkdir()
    environment = relinked.environment(**ANY_TASKS)
    kernel = strace.counted(
        [str(program), str(folder)],
        relinked.folder / "log",
        folder / "data",
        env=environment,
        timeout=PATIENCE_S,
    )
    events = ensembles.open(relinked.run).select(layer="posix", file=f"{folder}/data*")
    recorded = Counter(events.calls[call].name for call in events.call)
    assert recorded["pwrite"] > 10
    # The C library's threads do what ROMIO hands to aio: seven independent non-blocking calls of each kind.
    in_threads = {"pread": 7, "pwrite": 7}
    for name in ("pread", "pwrite", "read", "write", "fsync", "ftruncate"):
        assert recorded[name] == kernel[name] - in_threads.get(name, 0)


@pytest.mark.parametrize("layers", ["mpiio", "mpisync", "posix"])
def test_layers_that_are_not_named_are_not_recorded(preload, layers):
    program = compiled(preload, "mpiio_calls", "mpicc.openmpi")
    said, run = executed(preload, "openmpi", program, ENSIO_LAYERS=layers)
    assert {call.layer for call in run.calls if call in {run.calls[i] for i in run.events.call}} == {layers}
    if layers == "mpiio":
        assert [done(run, rank, "mpiio") for rank in (0, 1)] == said
    if layers == "posix":
        assert not run.events.depth.any()
        assert not (run.events.carried & 3).any()  # no call around these is recorded


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_program_needs_of_its_mpi_only_what_it_calls(relinked, flavour):
    program = compiled(relinked, "mpi_writes", f"mpicc.{flavour}")
    needed = subprocess.run(["nm", "-u", program], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1].lower() for line in needed.splitlines() if line.split()[0] == "U"]
    assert any(name.startswith("mpi_init") for name in names)
    assert not [name for name in names if name.startswith(("mpi_file_", "pmpi_file_"))]
    assert not [name for name in names if name.startswith("mpi_") and name.endswith("_")]


def test_python_that_loads_its_mpi_locally_is_recorded(preload):
    data = preload.folder / "shared"
    script = preload.folder / "script.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "w = MPI.COMM_WORLD\n"
        f"f = MPI.File.Open(w, {str(data)!r}, MPI.MODE_CREATE | MPI.MODE_RDWR)\n"
        "f.Write_at_all(1000 * w.rank, bytearray(1000))\n"
        "r = f.Iwrite_at(5000 + w.rank, b'x')\n"
        "w.Barrier()\n"
        "r.Wait()\n"
        "f.Close()\n"
    )
    command = ["mpiexec.openmpi", "-n", "2", "/usr/bin/python3", script]
    subprocess.run(command, env=preload.environment(**ANY_TASKS), check=True, timeout=PATIENCE_S)
    run = ensembles.open(preload.run)
    for rank in (0, 1):
        assert done(run, rank, "mpiio") == Counter(
            {
                ("MPI_File_open", -1, 0, 0): 1,
                ("MPI_File_write_at_all", 1000 * rank, 1000, 1000): 1,
                ("MPI_File_iwrite_at", 5000 + rank, 1, 1): 1,
                ("MPI_Wait", -1, 0, 0): 1,
                ("MPI_File_close", -1, 0, 0): 1,
            }
        )
    assert collect_information(run)["bytes_written"] == 2002
    assert data.stat().st_size == 5002


def test_an_mpi_of_another_kind_is_left_alone(preload):
    library, program = preload.folder / "libother.so", preload.folder / "program"
    subprocess.run(["gcc", "-shared", "-fPIC", PROGRAMS / "other_mpi.c", "-o", library], check=True)
    subprocess.run(["gcc", PROGRAMS / "mpi_on_another.c", library, "-o", program], check=True)
    done = preload.execute(program, preload.folder / "out")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"", b"")
    run = ensembles.open(preload.run)
    assert {run.calls[call].name for call in run.events.call} == {"open", "write", "close"}
