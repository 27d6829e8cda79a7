"""ensio-replay makes the calls of all layers as its plan says, and the record holds them."""

from collections import Counter

import h5py
import numpy as np
import pytest
from commands_here import told
from plans import Row, everyone, write_plan
from replaying import SEED, calls_of, check_written, recorded, start
from test_mpi import FLAVOURS

import ensembles

TASKS = 3


def strided(call: str, file: int, first: int) -> list[Row]:
    """Pieces of 10 bytes that go round among the tasks, 3 in a row, 2 rows with a hole between them."""
    return [
        Row(task, call, file, first + 10 * task, bytes=60, pieces=3, stride=30, planes=2, plane_stride=120)
        for task in range(TASKS)
    ]


def blocks(call: str, file: int, first: int, bytes: int = 100) -> list[Row]:
    """A block of each task, one after the other."""
    return [Row(task, call, file, first + bytes * task, bytes=bytes) for task in range(TASKS)]


POSIX, STDIO, MPIIO, VIEWS, HDF5 = range(5)
FILES = ("posix", "stdio", "mpiio", "views", "hdf5")

ALL_LAYERS = [
    (
        "posix",
        everyone(TASKS, "posix.open", file=POSIX)
        + blocks("posix.pwrite", POSIX, 0)
        + blocks("posix.lseek", POSIX, 300, 0)
        + [Row(0, "posix.write", POSIX, 300, 50)]
        + everyone(TASKS, "posix.fsync", file=POSIX)
        + everyone(TASKS, "posix.fdatasync", file=POSIX)
        + everyone(TASKS, "posix.stat", file=POSIX)
        + blocks("posix.pread", POSIX, 0)
        + [Row(0, "posix.lseek", POSIX, 300), Row(0, "posix.read", POSIX, 300, 50)]
        + [Row(0, "posix.ftruncate", POSIX, bytes=1000)]
        + everyone(TASKS, "posix.close", file=POSIX),
    ),
    (
        "stdio",
        everyone(TASKS, "stdio.fopen", file=STDIO)
        + [Row(task, "stdio.fseek", STDIO, 100 * task) for task in range(TASKS)]
        + blocks("stdio.fwrite", STDIO, 0)
        + everyone(TASKS, "stdio.fflush", file=STDIO)
        + [Row(task, "stdio.fseek", STDIO, 100 * task) for task in range(TASKS)]
        + blocks("stdio.fread", STDIO, 0)
        + everyone(TASKS, "stdio.fclose", file=STDIO),
    ),
    (
        "mpiio-write",
        everyone(TASKS, "mpiio.open", file=MPIIO)
        + blocks("mpiio.write_at_all", MPIIO, 0)
        + [Row(0, "mpiio.write_at_all", MPIIO), *blocks("mpiio.write_at_all", MPIIO, 300)[1:]]
        + [Row(1, "mpiio.write_at", MPIIO, 700, 33)]
        + [Row(task, "mpiio.seek", MPIIO, 1000 + 10 * task) for task in range(TASKS)]
        + blocks("mpiio.write", MPIIO, 1000, 10)
        + everyone(TASKS, "mpiio.sync", file=MPIIO)
        + everyone(TASKS, "mpiio.set_size", file=MPIIO, bytes=2000),
    ),
    (
        "mpiio-read",
        blocks("mpiio.read_at_all", MPIIO, 0)
        + [Row(2, "mpiio.read_at", MPIIO, 700, 33)]
        + [Row(task, "mpiio.seek", MPIIO, 1000 + 10 * task) for task in range(TASKS)]
        + blocks("mpiio.read", MPIIO, 1000, 10)
        + everyone(TASKS, "mpiio.close", file=MPIIO),
    ),
    (
        "views",
        everyone(TASKS, "mpiio.open", file=VIEWS)
        + strided("mpiio.write_at_all", VIEWS, 0)
        + strided("mpiio.write_at", VIEWS, 1000)
        + blocks("mpiio.write_at", VIEWS, 2000)
        + blocks("mpiio.write_at_all", VIEWS, 3000)
        + everyone(TASKS, "mpiio.sync", file=VIEWS),
    ),
    (
        "views-read",
        strided("mpiio.read_at_all", VIEWS, 0)
        + strided("mpiio.read_at", VIEWS, 1000)
        + blocks("mpiio.read_at", VIEWS, 2000)
        + blocks("mpiio.read_at_all", VIEWS, 3000)
        + everyone(TASKS, "mpiio.close", file=VIEWS),
    ),
    (
        "hdf5",
        everyone(TASKS, "hdf5.create", file=HDF5)
        + everyone(TASKS, "hdf5.dataset_create", file=HDF5, bytes=4000)
        + strided("hdf5.write_all", HDF5, 0)
        + strided("hdf5.write", HDF5, 1000)
        + [Row(0, "hdf5.write_all", HDF5), *blocks("hdf5.write_all", HDF5, 2000)[1:]]
        + everyone(TASKS, "hdf5.metadata", file=HDF5, bytes=100)
        + everyone(TASKS, "hdf5.metadata", file=HDF5)
        + everyone(TASKS, "hdf5.flush", file=HDF5)
        + everyone(TASKS, "hdf5.dataset_close", file=HDF5)
        + everyone(TASKS, "hdf5.close", file=HDF5),
    ),
    (
        "hdf5-read",
        everyone(TASKS, "hdf5.open", file=HDF5)
        + everyone(TASKS, "hdf5.dataset_open", file=HDF5)
        + strided("hdf5.read_all", HDF5, 0)
        + strided("hdf5.read", HDF5, 1000)
        + everyone(TASKS, "hdf5.dataset_close", file=HDF5)
        + everyone(TASKS, "hdf5.close", file=HDF5),
    ),
    (
        "mpi",
        everyone(TASKS, "mpi.barrier", file=-1)
        + everyone(TASKS, "mpi.allgather", file=-1, bytes=33)
        + everyone(TASKS, "mpi.allreduce", file=-1, bytes=17)
        + [Row(task, "mpi.exchange", -1, (task + 1) % TASKS, 5000) for task in range(TASKS)]
        + [Row(task, "mpi.exchange", -1, (task - 1) % TASKS, -5000) for task in range(TASKS)]
        + everyone(TASKS, "task.compute", file=-1, bytes=1000),
    ),
    ("away", [Row(0, "posix.unlink", POSIX)]),
]


def recorded_bytes(rows: list[Row]) -> list[tuple[str, int]]:
    """What the recorder should say of those calls that read and write."""
    rows = [row for row in rows if row.call == "hdf5.metadata" or "read" in row.call or "write" in row.call]
    return [call for row in rows for call in recorded(row) if call[0] not in ("H5Acreate", "H5Aclose")]


@pytest.mark.parametrize("way", ["relinked", "preloaded"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_calls_and_content_of_all_layers_are_those_of_the_plan(replay_program, tmp_path, flavour, way):
    paths = [tmp_path / name for name in FILES]
    plan = write_plan(tmp_path / "all.plan", TASKS, paths, ALL_LAYERS, seed=SEED)
    finished = start(
        replay_program(flavour), flavour, plan, tmp_path / "run", TASKS, preloaded=way == "preloaded"
    )
    assert finished.returncode == 0, finished.stderr
    rows = [row for _, rows in ALL_LAYERS for row in rows]
    run = ensembles.open(tmp_path / "run")

    assert run.tasks == TASKS
    assert run.info.dropped_events == 0
    for number, path in enumerate(paths):
        for rank in range(TASKS):
            own = [row for row in rows if row.file == number and row.task == rank]
            expected = [call for row in own for call in recorded(row)]
            if number == VIEWS:  # opened by the task alone too, for its independent calls of several pieces
                expected = [call for call in expected for _ in range(1 + call[0].endswith(("open", "close")))]
            assert calls_of(run, own[0].call.split(".")[0], path, rank) == expected

    phases = [name for name, _ in ALL_LAYERS]
    for rank in range(TASKS):
        named = run.regions[run.regions.rank == rank]
        assert [named.names[name] for name in named.name[np.argsort(named.start)]] == phases
        waits = run.select(layer="mpisync", rank=rank, call="MPI_Barrier")
        assert (waits.depth == 0).sum() == len(phases) + 1  # each step's own, and one of the plan
        assert len(run.select(layer="mpisync", rank=rank, call="MPI_Waitall")) == 1
    assert not any(str(plan) == name for name in run.files)

    for number, path in enumerate(paths):
        check_written(path, number, rows)
    assert paths[MPIIO].stat().st_size == 2000
    with h5py.File(paths[HDF5]) as file:
        assert [len(values) for values in file.attrs.values()] == [100, 8]

    if way == "preloaded":  # and what the libraries do by POSIX
        for number in (MPIIO, VIEWS, HDF5):
            below = run.select(layer="posix", op="write", file=str(paths[number]))
            assert (below.depth > 0).all()
            moved = sum(row.bytes for row in rows if row.file == number and ".write" in row.call)
            assert below.moved.sum() >= moved
        for rank in range(TASKS):  # collective transfers of HDF5 are collective calls of MPI-IO
            below = run.select(layer="mpiio", file=str(paths[HDF5]), rank=rank)
            names = Counter(below.calls[call].name for call in below.call)
            for way_of in ("write", "read"):
                planned = [row for row in rows if row.call == f"hdf5.{way_of}_all" and row.task == rank]
                assert names[f"MPI_File_{way_of}_at_all"] == len(planned)


def test_what_info_says_is_what_the_plan_says(replay_program, tmp_path):
    paths = [tmp_path / name for name in FILES]
    plan = write_plan(tmp_path / "all.plan", TASKS, paths, ALL_LAYERS, seed=SEED)
    finished = start(replay_program("openmpi"), "openmpi", plan, tmp_path / "run", TASKS)
    assert finished.returncode == 0, finished.stderr
    said = told("info", tmp_path / "run")
    rows = [row for _, rows in ALL_LAYERS for row in rows]
    assert said["tasks"] == TASKS
    assert said["dropped_events"] == 0
    assert {name for name, _ in recorded_bytes(rows)} <= said["calls"].keys()
    for name, count in Counter(name for name, _ in recorded_bytes(rows)).items():
        moved = sum(bytes for other, bytes in recorded_bytes(rows) if other == name)
        assert (said["calls"][name]["count"], said["calls"][name]["bytes"]) == (count, moved), name
    table = [line.split() for line in finished.stdout.splitlines()[1:]]
    assert [fields[0] for fields in table] == [name for name, _ in ALL_LAYERS]
    for fields, (_, rows_of_step) in zip(table, ALL_LAYERS, strict=True):
        moved = [bytes for name, bytes in recorded_bytes(rows_of_step) if name != "H5Awrite"]
        assert int(fields[4]) == sum(moved)
