"""ensio-replay follows hints, tells what goes wrong, and refuses plans that it cannot follow."""

import h5py
import numpy as np
import pytest
from commands_here import executed
from plans import BOX, Row, everyone, write_plan
from replaying import start

import ensembles


def hints_of(tmp_path, program, hints) -> int:
    """Where in the file the dataset begins that is made under these hints."""
    path = tmp_path / "hints.h5"
    step = everyone(1, "hdf5.create") + everyone(1, "hdf5.dataset_create", bytes=10000)
    step += [Row(0, "hdf5.write", bytes=10000), Row(0, "hdf5.metadata")]
    step += everyone(1, "hdf5.dataset_close") + everyone(1, "hdf5.close")
    plan = write_plan(tmp_path / "hints.plan", 1, [path], [("all", step)], hints=hints)
    finished = start(program, "mpich", plan, tmp_path / "run", 1)
    assert finished.returncode == 0, finished.stderr
    with h5py.File(path) as file:
        return file["data"].id.get_offset()


def test_alignment_of_hdf5_is_a_hint(replay_program, tmp_path):
    assert hints_of(tmp_path, replay_program("mpich"), []) % 65536 != 0
    others = {"metadata_block_size": "8192", "defer_metadata": "1", "collective_metadata": "1"}
    hints = [("hdf5.alignment", "65536"), *((f"hdf5.{key}", value) for key, value in others.items())]
    assert hints_of(tmp_path, replay_program("mpich"), hints) % 65536 == 0


def test_hints_for_mpiio_reach_it(replay_program, tmp_path):
    step = everyone(2, "mpiio.open") + everyone(2, "mpiio.close")
    plan = write_plan(
        tmp_path / "h.plan", 2, [tmp_path / "data"], [("all", step)], hints=[("romio_cb_write", "enable")]
    )
    finished = start(replay_program("mpich"), "mpich", plan, tmp_path / "run", 2)
    assert finished.returncode == 0, finished.stderr
    facts = ensembles.open(tmp_path / "run").info.file_facts[str(tmp_path / "data")]
    assert facts["hint.romio_cb_write"] == "enable"


WRITTEN = [Row(0, "mpiio.open"), Row(0, "mpiio.write_at", bytes=100)]
HOLE_BEFORE = Row(0, "mpiio.write_at", offset=200, bytes=100)
STREAM = [Row(0, "stdio.fopen"), Row(0, "stdio.fwrite", bytes=10), Row(0, "stdio.fseek", offset=5)]
NO_HDF5 = [Row(0, "posix.open"), Row(0, "posix.pwrite", bytes=100), Row(0, "posix.close")]
DATASET = [Row(0, "hdf5.create"), Row(0, "hdf5.dataset_create", bytes=1000), Row(0, "hdf5.write", bytes=100)]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [*WRITTEN, HOLE_BEFORE, Row(0, "mpiio.read_at", offset=90, bytes=20)],
            "rank 0: mpiio.read_at of {file} at offset 90 returned other data than were written, "
            "from offset 100 on",
        ),
        (
            [*WRITTEN, HOLE_BEFORE, Row(0, "mpiio.read_at_all", bytes=40, pieces=4, stride=75)],
            "returned other data than were written, from offset 150 on",
        ),
        (
            [*WRITTEN, Row(0, "mpiio.read_at_all", offset=50, bytes=100)],
            "mpiio.read_at_all of {file} at offset 50 ended after 50 of 100 bytes",
        ),
        (
            [*DATASET, Row(0, "hdf5.read", offset=0, bytes=40, pieces=2, stride=500)],
            "returned other data than were written, from offset 500 on",
        ),
        (
            [*DATASET, Row(0, "hdf5.read", offset=990, bytes=20)],
            "hdf5.read of {file} at offset 990 failed: ",
        ),
        (
            [*NO_HDF5, Row(0, "hdf5.open")],
            "hdf5.open of {file} at offset 0 failed: ",
        ),
        (
            [*STREAM, Row(0, "stdio.fread", offset=5, bytes=10)],
            "stdio.fread of {file} at offset 5 ended after 5 of 10 bytes",
        ),
        (
            [Row(0, "mpiio.read_at", bytes=1)],
            "mpiio.read_at of {file} at offset 0 cannot be made: the file is not",
        ),
        (
            [Row(0, "hdf5.close")],
            "hdf5.close of {file} at offset 0 cannot be made: the file is not open there",
        ),
    ],
    ids=lambda value: value.split("{")[0][:40] if isinstance(value, str) else "",
)
def test_what_goes_wrong_is_told_with_task_call_and_place(replay_program, tmp_path, rows, told):
    path = tmp_path / "data"
    plan = write_plan(tmp_path / "wrong.plan", 1, [path], [("all", rows)])
    finished = start(replay_program("mpich"), "mpich", plan, tmp_path / "run", 1)
    assert finished.returncode == 1
    assert told.format(file=path) in finished.stderr


def test_message_that_does_not_come_whole_is_noticed(replay_program, tmp_path):
    step = [Row(0, "mpi.exchange", -1, 1, 100), Row(1, "mpi.exchange", -1, 0, -200)]
    plan = write_plan(tmp_path / "short.plan", 2, [], [("all", step)])
    finished = start(replay_program("openmpi"), "openmpi", plan, tmp_path / "run", 2)
    assert finished.returncode == 1
    assert "rank 1: mpi.exchange got something that task 0 did not send" in finished.stderr


@pytest.mark.parametrize(
    ("rows", "hints", "told"),
    [
        ([Row(0, "posix.dance")], [], "names the call posix.dance, which this ensio-replay does not know"),
        ([Row(0, "ncmpi.open")], [], "names the call ncmpi.open, which this ensio-replay does not know"),
        ([Row(0, "posix.open", -1)], [], "rank 0: the plan names no file for a posix.open"),
        ([Row(0, "mpi.exchange", -1, 1, 5)], [], "has an exchange with task 1, but there are 1 tasks"),
        (
            [Row(0, "posix.write", bytes=8), Row(0, BOX, offset=8, bytes=8)],
            [],
            "a posix.write of several boxes",
        ),
        ([Row(0, "hdf5.create")], [("hdf5.alignmnt", "1")], "the hint hdf5.alignmnt, which this"),
        ([Row(0, "hdf5.create")], [("hdf5.alignment", "1k")], "hdf5.alignment is 1k, it must be a"),
        ([Row(0, "hdf5.create")], [("hdf5.libver", "1")], "hdf5.libver is 1: it may be"),
    ],
)
def test_plan_that_cannot_be_followed_is_refused_before_any_call(replay_program, tmp_path, rows, hints, told):
    plan = write_plan(tmp_path / "wrong.plan", 1, [tmp_path / "data"], [("all", rows)], hints=hints)
    finished = start(replay_program("mpich"), "mpich", plan, tmp_path / "run", 1)
    assert finished.returncode == 2
    assert told in finished.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("call", "library"),
    [
        ("hdf5.create", "parallel HDF5"),
        ("netcdf.create", "parallel NetCDF"),
        ("pnetcdf.create", "PnetCDF"),
    ],
)
def test_program_without_a_library_refuses_its_calls_alone(replay_program, tmp_path, call, library):
    program = replay_program("mpich", libraries=False)
    plan = write_plan(tmp_path / "a.plan", 1, [tmp_path / "data"], [("all", [Row(0, call)])])
    finished = start(program, "mpich", plan, tmp_path / "run", 1)
    assert finished.returncode == 2
    assert f"the call {call}, but this ensio-replay was built without {library}: install" in finished.stderr
    plan = write_plan(tmp_path / "posix.plan", 1, [tmp_path / "data"], [("all", [Row(0, "posix.open")])])
    assert start(program, "mpich", plan, tmp_path / "run", 1).returncode == 0


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [Row(0, "pnetcdf.variable_create", bytes=60, pieces=3, stride=30)],
            "the rows and planes of a variable follow each other without holes",
        ),
        (
            [
                Row(0, "pnetcdf.variable_create", bytes=60, pieces=3, stride=20),
                Row(0, "pnetcdf.iput", offset=10, bytes=20),
            ],
            "pieces do not form a block of a variable of 1 planes, 3 rows and 20 bytes",
        ),
    ],
)
def test_pieces_that_are_no_block_of_a_variable_are_refused(replay_program, tmp_path, rows, told):
    rows = [Row(0, "pnetcdf.create"), *rows]
    plan = write_plan(tmp_path / "a.plan", 1, [tmp_path / "data"], [("all", rows)])
    finished = start(replay_program("openmpi"), "openmpi", plan, tmp_path / "run", 1)
    assert finished.returncode == 1
    assert told in finished.stderr


@pytest.mark.parametrize(
    "damage",
    [
        lambda plan: plan.replace(b"ensio-plan 2", b"ensio-plan 1"),
        lambda plan: plan[:-1],
        lambda plan: plan[:60],
        lambda plan: plan.replace(b"calls 1", b"calls 9"),
        lambda plan: plan.replace(b"seed ", b"soot "),
        lambda plan: b"",
        lambda plan: plan[:-72] + np.array([1, 0, 0, 0, 0, 1, 0, 1, 0]).tobytes(),  # of a second step
        lambda plan: plan[:-72] + np.array([0, 0, 5, 0, 0, 1, 0, 1, 0]).tobytes(),  # a sixth file
        lambda plan: plan[:-72] + np.array([0, 0, 0, 0, 10, 3, 9, 1, 0]).tobytes(),  # thirds of 10 bytes
        lambda plan: (
            plan[:-72] + np.array([0, -1, 0, 0, 10, 1, 0, 1, 0]).tobytes()
        ),  # a further box of no call
    ],
)
def test_damaged_plan_is_refused(replay_program, tmp_path, damage):
    plan = write_plan(tmp_path / "damaged.plan", 1, [tmp_path / "data"], [("all", [Row(0, "posix.open")])])
    plan.write_bytes(damage(plan.read_bytes()))
    finished = start(replay_program("mpich"), "mpich", plan, tmp_path / "run", 1)
    assert finished.returncode == 2
    assert (
        f"{plan} is not a plan of this version of ensio: make it again with ensio replay" in finished.stderr
    )


def test_a_layer_without_library_is_named_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("MPICC", "false")  # finds none
    refused = executed("replay", "s3dio", "-o", tmp_path / "run", folder=tmp_path)
    assert refused.returncode == 2
    assert "layer pnetcdf" in refused.stderr
    assert not list(tmp_path.iterdir())
