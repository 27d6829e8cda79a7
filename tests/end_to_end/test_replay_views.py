"""ensio-replay sets one view for collective calls whose pieces come again, else one for each call."""

from dataclasses import replace

import pytest
from plans import BOX, Row, everyone, write_plan
from replaying import SEED, check_written, start

import ensembles

TASKS, TILE, TIMES = 3, 240, 4


def strided(call: str, offset: int) -> list[Row]:
    """Pieces of 10 bytes that go round among the tasks, 3 in a row, 2 rows with a hole between them."""
    return [
        Row(task, call, 0, offset + 10 * task, bytes=60, pieces=3, stride=30, planes=2, plane_stride=120)
        for task in range(TASKS)
    ]


def views_of(folder, program, flavour: str, steps: list[tuple[str, list[Row]]]) -> list[int]:
    """Replays, checks the content of the file, and returns how many views each task set."""
    rows = [
        replace(row, call="mpiio.write_at") if row.call == BOX else row for _, rows in steps for row in rows
    ]
    plan = write_plan(folder / "plan", TASKS, [folder / "data"], steps, seed=SEED)
    done = start(program, flavour, plan, folder / "run", TASKS)
    assert done.returncode == 0, done.stderr
    check_written(folder / "data", 0, rows)
    events = ensembles.open(folder / "run").select(call="MPI_File_set_view")
    return [int((events.rank == rank).sum()) for rank in range(TASKS)]


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_one_view_after_each_open_serves_calls_whose_pieces_come_again(replay_program, tmp_path, flavour):
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        *(("write", strided("mpiio.write_at_all", k * TILE)) for k in range(TIMES)),
        ("reopen", everyone(TASKS, "mpiio.close", file=0) + everyone(TASKS, "mpiio.open", file=0)),
        *(("read", strided("mpiio.read_at_all", k * TILE)) for k in range(TIMES)),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    assert views_of(tmp_path, replay_program(flavour), flavour, steps) == [2] * TASKS
    run = ensembles.open(tmp_path / "run")
    writes = run.select(call="MPI_File_write_at_all", rank="1")
    assert writes.offset.tolist() == [10 + k * TILE for k in range(TIMES)]


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_boxes_of_a_call_are_in_one_view(replay_program, tmp_path, flavour):
    """Each task has a box at the start of the tile and one further back, of another shape."""

    def boxes(call: str, offset: int) -> list[Row]:
        return [
            row
            for task in range(TASKS)
            for row in (
                Row(task, call, 0, offset + 10 * task, bytes=40, pieces=4, stride=30),
                Row(task, BOX, 0, offset + 120 + 20 * (TASKS - 1 - task), bytes=40, pieces=2, stride=60),
            )
        ]

    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        *(("write", boxes("mpiio.write_at_all", k * TILE)) for k in range(TIMES)),
        ("reopen", everyone(TASKS, "mpiio.close", file=0) + everyone(TASKS, "mpiio.open", file=0)),
        *(("read", boxes("mpiio.read_at_all", k * TILE)) for k in range(TIMES)),
        ("alone", boxes("mpiio.read_at", 0)),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    # One view after each open, and one for the independent call of each task.
    assert views_of(tmp_path, replay_program(flavour), flavour, steps) == [3] * TASKS
    run = ensembles.open(tmp_path / "run")
    writes = run.select(call="MPI_File_write_at_all", rank="1")
    assert writes.offset.tolist() == [10 + k * TILE for k in range(TIMES)]
    assert writes.moved.tolist() == [80] * TIMES


def test_calls_at_irregular_places_have_a_view_each(replay_program, tmp_path):
    places = (0, TILE, 2 * TILE + 1)
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        *(("write", strided("mpiio.write_at_all", place)) for place in places),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    assert views_of(tmp_path, replay_program("openmpi"), "openmpi", steps) == [len(places)] * TASKS


def test_all_tasks_agree_on_views_if_the_calls_of_one_are_irregular(replay_program, tmp_path):
    later = strided("mpiio.write_at_all", TILE)
    later[2] = Row(2, "mpiio.write_at_all", 0)
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        ("write", strided("mpiio.write_at_all", 0)),
        ("write", later),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    assert views_of(tmp_path, replay_program("openmpi"), "openmpi", steps) == [2] * TASKS


def test_pieces_that_reach_beyond_the_tile_have_a_view_each(replay_program, tmp_path):
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        *(("write", strided("mpiio.write_at_all", place)) for place in (0, 90)),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    assert views_of(tmp_path, replay_program("openmpi"), "openmpi", steps) == [2] * TASKS


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_calls_at_the_position_have_a_view_each_and_leave_none_behind(replay_program, tmp_path, flavour):
    """Also contiguous ones; a call at an offset of the whole file comes between them."""
    blocks = [Row(task, "mpiio.write_all", 0, 1000 + 50 * task, bytes=50) for task in range(TASKS)]
    alone = [Row(task, "mpiio.write_at", 0, 2000 + 7 * task, bytes=7) for task in range(TASKS)]
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        ("write", strided("mpiio.write_all", 0)),
        ("write", blocks),
        ("write", alone),
        ("read", strided("mpiio.read_all", 0)),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    # Three calls with a view each, after which the whole file is in view again for the independent call.
    assert views_of(tmp_path, replay_program(flavour), flavour, steps) == [2 * 3] * TASKS
    run = ensembles.open(tmp_path / "run")
    assert run.select(call="MPI_File_write_all", rank="1").offset.tolist() == [10, 1050]
    assert run.select(call="MPI_File_read_all", rank="1").offset.tolist() == [10]


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_parts_of_an_array_have_views_of_the_whole_array(replay_program, tmp_path, flavour):
    """The pieces of 3 tasks fill 90 bytes and, behind a hole, 90 more, so that the array ends at 210."""
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        ("write", strided("mpiio.write_all", 0)),
        ("reopen", everyone(TASKS, "mpiio.close", file=0) + everyone(TASKS, "mpiio.open", file=0)),
        ("read", strided("mpiio.read_all", 0)),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    assert views_of(tmp_path, replay_program(flavour), flavour, steps) == [2] * TASKS
    run = ensembles.open(tmp_path / "run")
    views = run.select(call="MPI_File_set_view")
    assert set(views.offset.tolist()) == {0}
    assert set(views.requested.tolist()) == {210}
    assert run.select(call="MPI_File_write_all", rank="2").offset.tolist() == [20]


def test_parts_that_move_have_views_of_their_own(replay_program, tmp_path):
    steps = [
        ("open", everyone(TASKS, "mpiio.open", file=0)),
        *(("write", strided("mpiio.write_all", place)) for place in (0, 300)),
        ("close", everyone(TASKS, "mpiio.close", file=0)),
    ]
    assert views_of(tmp_path, replay_program("openmpi"), "openmpi", steps) == [2] * TASKS
    views = ensembles.open(tmp_path / "run").select(call="MPI_File_set_view", rank="1")
    assert views.offset.tolist() == [10, 310]
