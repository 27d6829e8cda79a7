"""Bytes of MPI-IO in the background count once, wherever MPI gets on with it."""

import platform
import subprocess
from pathlib import Path

import commands_here
import pytest
from compiling import build
from places import ENSIO_CC, PATIENCE_S, PROGRAMS

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

REQUESTS = tuple(f"i{name}{how}" for name in ("write", "read") for how in ("", "_at", "_all", "_at_all"))
SHARED = ("iwrite_shared", "iread_shared")
SPLIT = tuple(f"{name}{how}_begin" for name in ("write", "read") for how in ("_all", "_at_all"))
BLOCKING = ("write_at_all", "read_at_all")

# Requests of many pieces: MPI submits the later ones when the first are done, in whatever call it is in then.
SCATTERED = ("iwrite_scattered", "iread_scattered")

STEPS, BLOCK, SCATTERED_BLOCK, TASKS = 3, 1 << 16, 8 * 3000, 2


def expected(ways) -> tuple[int, int]:
    """Bytes that all tasks read and write, by the source of the program."""
    moved = {"read": 0, "write": STEPS * BLOCK}
    for way in ways:
        bytes_ = SCATTERED_BLOCK if way in SCATTERED else BLOCK
        moved["write" if "write" in way else "read"] += STEPS * bytes_
    return TASKS * moved["read"], TASKS * moved["write"]


def check(recorder, flavour, io, end, ways, **environment) -> dict:
    """Run the program; what ``ensio info --json`` says is what it did."""
    program = recorder.folder / f"program-{flavour}"
    if not program.exists():
        build(program, f"mpicc.{flavour}", "-O1", "-w", PROGRAMS / "mpiio_background.c")
    folder = recorder.folder / "data"
    folder.mkdir(exist_ok=True)
    choice = ["--mca", "io", io] if io else []
    command = [f"mpiexec.{flavour}", "-n", str(TASKS), *choice, program, folder, end, *ways]
    done = subprocess.run(
        command,
        env=recorder.environment(**ANY_TASKS, **environment),
        check=True,
        timeout=PATIENCE_S,
        capture_output=True,
    )
    told = tuple(map(int, done.stdout.split()))
    assert told == expected(ways)
    info = commands_here.told("info", recorder.run)
    assert (info["bytes_read"], info["bytes_written"]) == told
    assert info["dropped_events"] == 0
    return info


MODES = ("trace", "profile", "tail")
BESIDES = (*SPLIT, "write_ordered_begin", *BLOCKING, *SCATTERED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("end", "ways"),
    [
        ("wait", REQUESTS + SHARED + BESIDES),
        ("test", REQUESTS + SHARED),
        ("blocked", REQUESTS + SHARED + SCATTERED),
    ],
    ids=["wait", "test", "blocked"],
)
def test_bytes_of_ompio_count_once(preload, mode, end, ways):
    info = check(preload, "openmpi", "ompio", end, ways, ENSIO_MODE=mode)
    assert info["calls"]["aio_write"]["count"] > 0
    assert info["calls"]["aio_read"]["count"] > 0


def test_bytes_count_once_where_the_calls_that_wait_are_not_recorded(preload):
    ways = ("iwrite_at", "iread_at", *BESIDES)
    info = check(preload, "openmpi", "ompio", "wait", ways, ENSIO_LAYERS="posix,mpiio")
    assert info["layers"].keys() == {"posix", "mpiio"}


def test_bytes_of_posix_count_where_mpiio_is_not_recorded(preload):
    info = check(preload, "openmpi", "ompio", "wait", ("iwrite_at", "iread_at"), ENSIO_LAYERS="posix,mpisync")
    assert info["layers"].keys() == {"posix", "mpisync"}


def test_requests_lie_inside_the_call_that_began_them(preload):
    info = check(preload, "openmpi", "ompio", "wait", REQUESTS)
    run = ensembles.open(preload.run)
    for op, bit in (("read", 1), ("write", 2)):
        requests = run.select(call=f"aio_{op}")
        assert len(requests) > 0
        assert set(requests.depth.tolist()) == {1}
        assert set((requests.carried & bit).tolist()) == {bit}
    mpiio, posix = info["layers"]["mpiio"], info["layers"]["posix"]
    inside_s = mpiio["time_s"] - mpiio["exclusive_time_s"]
    assert 0 < inside_s <= posix["time_s"] * (1 + 1e-9)  # rounding
    assert mpiio["exclusive_time_s"] > 0


# Not among these: calls on the shared position, for which ROMIO reads and writes another file;
# iwrite_scattered, for which it reads what lies between the pieces, and such bytes count; and of Open
# MPI's ROMIO the non-blocking collectives, in which the plain program dies.
OF_ROMIO = (*SPLIT, *BLOCKING, "iread_scattered")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("flavour", "io", "ways"),
    [
        ("openmpi", "romio321", ("iwrite", "iread", "iwrite_at", "iread_at", *OF_ROMIO)),
        ("mpich", "", (*REQUESTS, *OF_ROMIO)),
    ],
    ids=["openmpi", "mpich"],
)
def test_bytes_of_romio_count_once(preload, flavour, io, ways, mode):
    check(preload, flavour, io, "later", ways, ENSIO_MODE=mode)


def test_bytes_count_once_in_a_static_program(relinked):
    libraries = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
    options = ["-I", f"/usr/include/{platform.machine()}-linux-gnu/mpich", libraries / "libmpich.a", "-lm"]
    options += [f"-l:lib{name}" for name in ("hwloc.so.15", "ucp.so.0", "ucs.so.0", "uct.so.0")]
    program = relinked.folder / "program-mpich"
    source = PROGRAMS / "mpiio_background.c"
    subprocess.run([ENSIO_CC, "gcc", "-O1", "-w", source, "-o", program, *options], check=True)
    info = check(relinked, "mpich", "", "later", (*REQUESTS, *OF_ROMIO))
    assert info["calls"]["aio_write"]["count"] > 0
