"""ensio-replay makes calls of NetCDF and PnetCDF as its plan says, and the record holds them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import BUILD, PATIENCE_S
from plans import Row, everyone, write_plan
from replaying import SEED, calls_of, check_written, recorded, start

import ensembles

ENSIO = Path(sys.executable).with_name("ensio")
TASKS = 3
PLANES, ROWS, ROW = 4, 5, 30
VARIABLE = {
    "bytes": PLANES * ROWS * ROW,
    "pieces": ROWS,
    "stride": ROW,
    "planes": PLANES,
    "plane_stride": ROWS * ROW,
}


def blocks(call: str, file: int, plane: int) -> list[Row]:
    """Blocks of 2 planes, 3 rows and 10 bytes that go round among the tasks."""
    return [
        Row(task, call, file, plane * ROWS * ROW + ROW + 10 * task, 60, 3, ROW, 2, ROWS * ROW)
        for task in range(TASKS)
    ]


def rows(call: str, file: int, row: int) -> list[Row]:
    """A whole row of each task: one piece."""
    return [Row(task, call, file, (row + task) * ROW, bytes=ROW) for task in range(TASKS)]


NETCDF, PNETCDF = range(2)
STEPS = [
    (
        "netcdf",
        everyone(TASKS, "netcdf.create", file=NETCDF)
        + everyone(TASKS, "netcdf.variable_create", file=NETCDF, **VARIABLE)
        + blocks("netcdf.write_all", NETCDF, 0)
        + blocks("netcdf.write", NETCDF, 2)
        + [Row(0, "netcdf.write_all", NETCDF), *rows("netcdf.write_all", NETCDF, 4)[1:]]
        + everyone(TASKS, "netcdf.sync", file=NETCDF)
        + everyone(TASKS, "netcdf.close", file=NETCDF),
    ),
    (
        "netcdf-read",
        everyone(TASKS, "netcdf.open", file=NETCDF)
        + everyone(TASKS, "netcdf.variable_open", file=NETCDF)
        + blocks("netcdf.read_all", NETCDF, 0)
        + blocks("netcdf.read", NETCDF, 2)
        + everyone(TASKS, "netcdf.close", file=NETCDF),
    ),
    (
        "pnetcdf",
        everyone(TASKS, "pnetcdf.create", file=PNETCDF)
        + everyone(TASKS, "pnetcdf.variable_create", file=PNETCDF, **VARIABLE)
        + blocks("pnetcdf.write_all", PNETCDF, 0)
        + [Row(0, "pnetcdf.write_all", PNETCDF), *rows("pnetcdf.write_all", PNETCDF, 4)[1:]]
        + everyone(TASKS, "pnetcdf.begin_independent", file=PNETCDF)
        + [Row(1, "pnetcdf.write", PNETCDF, 10 * ROW, bytes=ROW)]
        + everyone(TASKS, "pnetcdf.end_independent", file=PNETCDF)
        + [Row(0, "pnetcdf.iput", PNETCDF, 17 * ROW, bytes=3 * ROW)]  # the others post nothing
        + everyone(TASKS, "pnetcdf.wait_all", file=PNETCDF)
        + everyone(TASKS, "pnetcdf.sync", file=PNETCDF),
    ),
    (
        "pnetcdf-read",
        blocks("pnetcdf.read_all", PNETCDF, 0)
        + everyone(TASKS, "pnetcdf.begin_independent", file=PNETCDF)
        + [Row(2, "pnetcdf.read", PNETCDF, 10 * ROW, bytes=ROW)]
        + everyone(TASKS, "pnetcdf.end_independent", file=PNETCDF)
        + [Row(1, "pnetcdf.iget", PNETCDF, 17 * ROW, bytes=3 * ROW)]
        + rows("pnetcdf.iget", PNETCDF, 4)[1:]  # PnetCDF does not read overlapping requests together
        + everyone(TASKS, "pnetcdf.wait_all", file=PNETCDF)
        + everyone(TASKS, "pnetcdf.close", file=PNETCDF),
    ),
]


@pytest.mark.parametrize("way", ["relinked", "preloaded"])
def test_calls_and_content_are_those_of_the_plan(replay_program, tmp_path, way):
    paths = [tmp_path / "netcdf.nc", tmp_path / "pnetcdf.nc"]
    plan = write_plan(tmp_path / "all.plan", TASKS, paths, STEPS, seed=SEED)
    preloaded = way == "preloaded"
    finished = start(replay_program("openmpi"), "openmpi", plan, tmp_path / "run", TASKS, preloaded=preloaded)
    assert finished.returncode == 0, finished.stderr
    planned = [row for _, rows in STEPS for row in rows]
    run = ensembles.open(tmp_path / "run")
    assert run.tasks == TASKS
    assert run.info.dropped_events == 0
    for number, (layer, path) in enumerate(zip(("netcdf", "pnetcdf"), paths, strict=True)):
        for rank in range(TASKS):
            own = [row for row in planned if row.file == number and row.task == rank]
            assert calls_of(run, layer, path, rank) == [call for row in own for call in recorded(row)]
        check_written(path, number, planned)
        if preloaded:
            below = run.select(layer="mpiio", op="write", file=str(path))
            assert (below.depth > 0).all()
            moved = sum(row.bytes for name, rows in STEPS if name == layer for row in rows if moves(row))
            assert below.moved.sum() >= moved
    requests = run.select(call="ncmpi_iput_vara,ncmpi_iget_vara")
    assert len(requests) == 1 + 1 + TASKS - 1
    assert (requests.flight >= requests.duration).all()


def moves(row: Row) -> bool:
    """Whether a row writes to its variable."""
    return ".write" in row.call or row.call.endswith("iput")


def test_a_simulation_refuses_the_layer_in_one_sentence(tmp_path):
    command = [ENSIO, "simulate", "s3dio", "--fs", "healthy", "-o", tmp_path / "run"]
    environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert finished.returncode == 2
    assert "pnetcdf.create, which this ensio-simulate does not know: ensio replay makes it" in finished.stderr
    assert "Traceback" not in finished.stderr
