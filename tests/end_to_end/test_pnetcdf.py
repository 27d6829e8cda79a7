"""Calls of PnetCDF and of parallel NetCDF in all ranks of MPI programs."""

import errno
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands_here import told
from test_netcdf import fortran
from test_stdio import counts, done

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

COMMAND = ["gcc", "-print-file-name=libpnetcdf.so"]
LIBRARIES = Path(subprocess.run(COMMAND, capture_output=True, text=True).stdout).parent
MODULES = [f"-I{folder}" for folder in LIBRARIES.glob("fortran/gfortran-mod-*")]
STATIC = ["-Wl,-Bstatic", "-lpnetcdf", "-Wl,-Bdynamic", "-lmpi_cxx", "-lm"]


def execute(recorder, program, *arguments, tasks: int) -> list[tuple]:
    """Run a program on some tasks, recorded; returns what task 0 says that it did."""
    # The preload library is for the tasks and not for their launcher.
    inner = [f"LD_PRELOAD={recorder.library}"] if recorder.way == "preloaded" else []
    command = ["mpiexec.openmpi", "-n", tasks, "env", *inner, program, *arguments]
    environment = {"ENSIO_DIR": str(recorder.run), **ANY_TASKS, **os.environ}
    finished = subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=600
    )
    assert finished.returncode == 0, finished.stderr
    assert "wrong" not in finished.stderr
    lines = [line.split() for line in finished.stdout.splitlines()]
    return [(name, *map(int, numbers)) for name, *numbers in lines]


def check_flights(run, posts, waited):
    """Of the requests of each task, those that the program waits for have a flight that ends with a wait."""
    names = [call.name for call in run.calls if re.match("ncmpi_([ib]put|iget)_", call.name)]
    here = run.select(call=",".join(names))
    waits = run.select(call="ncmpi_wait,ncmpi_wait_all")
    for rank in set(here.rank.tolist()):
        mine = here.rank == rank
        assert mine.sum() == posts
        flies = mine & (here.flight >= 0)
        assert flies.sum() == waited
        assert np.all(here.duration[flies] <= here.flight[flies])
        assert len(set(here.request[flies].tolist())) == waited
        assert set(waits.request[waits.rank == rank].tolist()) <= set(here.request[flies].tolist())


@pytest.mark.all_cases
@pytest.mark.parametrize("linking", ["shared", "static"])
def test_calls_of_pnetcdf_are_what_the_program_did(recorder, tmp_path, linking):
    in_program = linking == "static" and recorder.way == "relinked"  # nothing of it could be preloaded
    libraries = STATIC if in_program else ["-lpnetcdf"]
    program = recorder.build("pnetcdf_calls", *libraries, compiler="mpicc.openmpi")
    expected = execute(recorder, program, tmp_path / "a.nc", tasks=2)
    run = ensembles.open(recorder.run)
    for rank in range(2):
        assert done(run.select(layer="pnetcdf", rank=rank)) == expected
    here = run.select(layer="pnetcdf")
    assert not here.depth.any()
    assert {run.files[number] for number in here.file[here.error == 0]} == {str(tmp_path / "a.nc")}
    assert run.notes == []
    check_flights(run, posts=9, waited=8)  # one is cancelled


def test_lists_of_a_refused_call_are_not_read(recorder, tmp_path):
    program = recorder.build("pnetcdf_refused", "-lpnetcdf", compiler="mpicc.openmpi")
    assert execute(recorder, program, tasks=1) == [("refused", 4)]
    here = ensembles.open(recorder.run).select(layer="pnetcdf")
    assert (len(here), set(here.error.tolist())) == (4, {errno.EBADF})


def test_requests_that_are_cancelled_or_left_move_nothing(recorder, tmp_path):
    program = recorder.build("pnetcdf_cancelled", "-lpnetcdf", compiler="mpicc.openmpi")
    inner = [f"LD_PRELOAD={recorder.library}"] if recorder.way == "preloaded" else []
    command = ["mpiexec.openmpi", "-n", "1", "env", *inner, program, tmp_path / "a.nc"]
    environment = {"ENSIO_DIR": str(recorder.run), **ANY_TASKS, **os.environ}
    done = subprocess.run([str(word) for word in command], env=environment, check=True, capture_output=True)
    moved = int(done.stdout.decode().splitlines()[0])
    posts = ensembles.open(recorder.run).select(call="ncmpi_iput_vara,ncmpi_iget_vara")
    sizes = [
        (int(asked) // 8, int(got) // 8) for asked, got in zip(posts.requested, posts.moved, strict=True)
    ]
    assert sizes == [
        *[(1000, 1000), (1, 0), (10, 0)],  # two cancelled by their numbers
        *[(2, 2), (3, 0), (4, 0), (5, 0)],  # all writes cancelled, then all requests
        *[(100, 100), (6, 0)],  # complete at the second wait; left
    ]
    assert posts.moved.sum() == moved
    assert posts.error.tolist() == [0] * len(posts)
    assert (posts.flight >= 0).tolist() == (posts.moved > 0).tolist()


def test_bytes_of_requests_count_once_when_they_are_complete(preload, tmp_path):
    program = preload.build("pnetcdf_calls", "-lpnetcdf", compiler="mpicc.openmpi")
    execute(preload, program, tmp_path / "a.nc", tasks=2)
    run = ensembles.open(preload.run)
    for op, key in (("write", "bytes_written"), ("read", "bytes_read")):
        moved = run.select(layer="pnetcdf", op=op).moved
        assert told("info", preload.run)[key] == int(moved[moved > 0].sum())
    below = run.select(layer="mpiio", file=str(tmp_path / "a.nc"))
    assert counts(below)["MPI_File_open"] >= 2
    assert (below.depth >= 1).all()
    assert counts(run.select(op="wait", layer="pnetcdf")) == {"ncmpi_wait_all": 6, "ncmpi_wait": 2}


@pytest.mark.all_cases
def test_parallel_netcdf_4(recorder, tmp_path):
    options = [f"-I{LIBRARIES}/netcdf/mpi/include", "-lnetcdf_mpi"]
    program = recorder.build("netcdf_parallel", *options, compiler="mpicc.openmpi")
    expected = execute(recorder, program, tmp_path / "a.nc", tasks=3)
    run = ensembles.open(recorder.run)
    for rank in range(3):
        here = run.select(layer="netcdf", rank=rank)
        assert done(here) == expected
        assert not here.depth.any()
        assert {run.files[number] for number in here.file} == {str(tmp_path / "a.nc")}
    if recorder.way == "preloaded":
        below = run.select(layer="hdf5,mpiio", file=str(tmp_path / "a.nc"), op="write")
        assert set(below.depth.tolist()) == {1, 2}  # HDF5 in NetCDF, MPI-IO in HDF5
        assert told("info", recorder.run)["bytes_written"] == 3 * 8 * 50 * 100


@pytest.mark.parametrize("interface", ["77", "90"])
@pytest.mark.parametrize("linking", ["shared", "static"])
def test_fortran_calls_of_pnetcdf(recorder, tmp_path, linking, interface):
    in_program = linking == "static" and recorder.way == "relinked"
    program = fortran(
        recorder, "pnetcdf_fortran", "mpifort.openmpi", MODULES, STATIC if in_program else ["-lpnetcdf"]
    )
    expected = execute(recorder, program, interface, tmp_path / "a.nc", tasks=2)
    run = ensembles.open(recorder.run)
    for rank in range(2):
        here = run.select(layer="pnetcdf", rank=rank)
        assert done(here) == expected
        assert not here.depth.any()
        assert {run.files[number] for number in here.file} == {str(tmp_path / "a.nc")}
    check_flights(run, posts=2, waited=2)


SLACK_S = 0.001
"""Between two clocks, over a run."""


def overlapped(recorder, tmp_path, way, tasks=2):
    """Own seconds of each task (posts, waits, work), the run, and what ``ensio info --json`` says."""
    program = recorder.build("pnetcdf_overlap", "-lpnetcdf", compiler="mpicc.openmpi")
    inner = [f"LD_PRELOAD={recorder.library}"] if recorder.way == "preloaded" else []
    command = ["mpiexec.openmpi", "-n", tasks, "env", *inner, program, tmp_path / "a.nc", way]
    environment = {"ENSIO_DIR": str(recorder.run), **ANY_TASKS, **os.environ}
    words = [str(word) for word in command]
    printed = subprocess.run(words, env=environment, check=True, capture_output=True)
    lines = [line.split() for line in printed.stdout.decode().splitlines()]
    own = np.array([numbers for word, *numbers in lines if word == "seconds"], float)
    return own, ensembles.open(recorder.run), told("info", recorder.run)


@pytest.mark.parametrize("way", ["wait", "all", "each"])
def test_requests_fly_from_their_post_to_their_wait(recorder, tmp_path, way):
    own, run, told = overlapped(recorder, tmp_path, way)
    posts = run.select(call="ncmpi_iput_vara,ncmpi_iget_vara")
    assert len(posts) == 2 * 2 * 4
    assert len(set(zip(posts.rank.tolist(), posts.request.tolist(), strict=True))) == len(posts)
    waits = run.select(call="ncmpi_wait_all")
    for rank in range(2):
        flight_s = float(posts.flight[posts.rank == rank].sum()) * 1e-9
        waiting, working = own[:, 1].max(), own[:, 2].min()
        # Two requests a step: both are in flight during the work.
        assert 2 * working <= flight_s + SLACK_S
        assert flight_s <= 2 * (own[:, 0].max() + waiting + own[:, 2].max()) + SLACK_S
        waited = waits.request[waits.rank == rank]
        assert waited.all()
        assert set(waited.tolist()) <= set(posts.request[posts.rank == rank].tolist())
    assert np.all(posts.duration <= posts.flight)
    # PnetCDF moves nothing before the wait, so the work hides nothing.
    assert told["hidden_share"] == 0
    assert {kind: part["requests"] for kind, part in told["non_blocking"].items()} == {"read": 8, "write": 8}
    assert told["flight_s"] == pytest.approx(float(posts.flight.sum()) * 1e-9, abs=1e-6)


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_requests_without_a_wait_have_no_flight(recorder, tmp_path, way):
    _, run, told = overlapped(recorder, tmp_path, way)
    assert np.all(run.select(call="ncmpi_iput_vara,ncmpi_iget_vara").flight == -1)
    assert told["flight_s"] == 0
