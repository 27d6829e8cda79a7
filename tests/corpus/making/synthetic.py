"""Makes the held runs of which the truth is known: distributions and clocks on which statistics go wrong.

    python -m tests.corpus.making.synthetic OUTPUT

Each is a run directory of spools, or a log of Darshan, whose calls are drawn from a fixed seed.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from spool_writer import SpoolContent, write_spool

from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Call

BEGAN_UNIX_NS = 1_700_000_000_000_000_000
MIB = 1 << 20
_DXT_POSIX = 10
"""Number of the module in a log's head."""
CALLS = {
    1: Call("open", "posix", "open"),
    2: Call("pwrite", "posix", "write"),
    3: Call("close", "posix", "close"),
    4: Call("MPI_Barrier", "mpisync", "wait"),
}


def phased_run(
    folder: Path,
    durations_s: np.ndarray,
    requested: np.ndarray | int = MIB,
    clock: Callable[[np.ndarray], np.ndarray] = np.rint,
) -> None:
    """Write a run of writes to one shared file with a barrier behind each phase.

    Parameters
    ----------
    folder : Path
    durations_s : ndarray, shape (phases, tasks, calls)
    requested : ndarray or int
        Bytes, broadcast to the same shape.
    clock : function
        From ns, start or end of a call, to what the clock shows.
    """
    folder.mkdir(parents=True)
    phases, tasks, calls = durations_s.shape
    requested = np.broadcast_to(requested, durations_s.shape)
    lasts_ns = durations_s * 1e9
    gap_ns = 2_000.0
    ends = np.cumsum(lasts_ns + gap_ns, axis=2)  # of each call, from the start of its phase
    lengths = ends[:, :, -1].max(axis=1) + 50_000.0
    begins = 1e6 + np.concatenate([[0.0], np.cumsum(lengths)])
    for task in range(tasks):
        events = np.zeros(2 + phases * (calls + 1), EVENT.dtype)
        start, end = (np.empty(len(events)) for _ in range(2))
        start[0], end[0] = 10_000.0 + 100 * task, 60_000.0 + 100 * task
        events["call"][0], events["call"][-1] = 1, 3
        events["offset"] = -1
        for phase in range(phases):
            rows = slice(1 + phase * (calls + 1), 1 + phase * (calls + 1) + calls)
            events["call"][rows] = 2
            events["requested"][rows] = events["moved"][rows] = requested[phase, task]
            events["offset"][rows] = ((phase * tasks + task) * calls + np.arange(calls)) * MIB
            start[rows] = begins[phase] + ends[phase, task] - lasts_ns[phase, task]
            end[rows] = begins[phase] + ends[phase, task]
            events["call"][rows.stop] = 4
            start[rows.stop] = end[rows.stop - 1] + 1_000
            end[rows.stop] = begins[phase + 1] - 1_000 + task
        start[-1], end[-1] = begins[-1] + 1_000, begins[-1] + 9_000
        shown = clock(start), clock(end)
        events["start"], events["duration"] = shown[0], np.maximum(shown[1] - shown[0], 0)
        events["file"] = np.where(events["call"] == 4, 0, 1)
        _write(folder, task, tasks, events, int(begins[-1] + 1e6))


def _write(folder: Path, task: int, tasks: int, events: np.ndarray, lasted_ns: int) -> None:
    head = {
        "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
        "pid": 100 + task,
        "parent_pid": 99,
        "rank": task,
        "tasks": tasks,
        "first_realtime_ns": BEGAN_UNIX_NS,
        "last_ticks": lasted_ns,
        "last_monotonic_ns": lasted_ns,
        "last_realtime_ns": BEGAN_UNIX_NS + lasted_ns,
    }
    properties = {
        "host": "node0001",
        "program": "/srv/app/synthetic",
        "command": "synthetic",
        "cwd": "/srv/app",
        "user": "someone",
        "job": "1234",
        "mode": "trace",
        "start_unix_ns": str(BEGAN_UNIX_NS),
    }
    content = SpoolContent([events], {1: "/srv/app/shared.dat"}, CALLS, properties, head)
    write_spool(folder / f"{task:04d}.spool", content)


def ticks_of(step_ns: float) -> Callable[[np.ndarray], np.ndarray]:
    """A clock that shows whole steps, in ns without a fraction."""
    return lambda ns: np.rint(np.floor(ns / step_ns) * step_ns)


def clock_1us(folder: Path) -> None:
    """One log-normal mode at 12 us, by a clock of 1 us."""
    rng = np.random.default_rng(101)
    phased_run(folder, rng.lognormal(np.log(12e-6), 0.3, (10, 16, 25)), clock=ticks_of(1000))


def clock_10ns(folder: Path) -> None:
    """One log-normal mode at 900 ns, by ticks of 10.017 ns."""
    rng = np.random.default_rng(102)
    phased_run(folder, rng.lognormal(np.log(900e-9), 0.08, (5, 4, 250)), 4096, ticks_of(10.017))


def clock_4ms(folder: Path) -> None:
    """One log-normal mode at 30 ms, by a clock of 4 ms."""
    rng = np.random.default_rng(103)
    phased_run(folder, rng.lognormal(np.log(30e-3), 0.4, (10, 16, 5)), clock=ticks_of(4e6))


def far_outliers(folder: Path) -> None:
    """A thousand calls of 1 ms, and two of 1.0 and 1.3 s."""
    rng = np.random.default_rng(104)
    durations = rng.lognormal(np.log(1e-3), 0.2, (10, 20, 5))
    durations[3, 7, 2], durations[8, 1, 4] = 1.0, 1.3
    phased_run(folder, durations)


def clustered_slow(folder: Path) -> None:
    """2 % of the calls are 8 times slower; nearly all of them in few of 20 phases."""
    rng = np.random.default_rng(105)
    share = rng.beta(0.5, 0.5 / 0.02 - 0.5, 20)[:, None, None]
    slow = rng.random((20, 64, 1)) < share
    phased_run(folder, np.exp(rng.normal(np.log(0.1), 0.3, (20, 64, 1)) + np.log(8) * slow))


def two_hills(folder: Path) -> None:
    """Two hills three decades apart, and a few calls between."""
    rng = np.random.default_rng(106)
    near = np.exp(rng.uniform(np.log(0.2e-3), np.log(1e-3), 136))
    between = np.exp(rng.uniform(np.log(1e-3), np.log(56e-3), 42))
    far = np.exp(rng.uniform(np.log(56e-3), np.log(0.72), 78))
    phased_run(folder, rng.permutation(np.r_[near, between, far]).reshape(8, 16, 2))


def plateau(folder: Path) -> None:
    """Durations that are uniform from 40 to 440 ms: 5 phases of 8 calls, and no peak."""
    phased_run(folder, np.random.default_rng(107).uniform(0.04, 0.44, (5, 8, 1)))


def small_sample(folder: Path) -> None:
    """5 phases of 8 calls with one log-normal mode at 200 ms."""
    phased_run(folder, np.random.default_rng(108).lognormal(np.log(0.2), 0.5, (5, 8, 1)))


def harmonics(folder: Path) -> None:
    """Three modes at T, T/2 and T/4, as of a node whose tasks take turns."""
    rng = np.random.default_rng(109)
    part = rng.choice([1.0, 0.5, 0.25], (5, 64, 1), p=[0.5, 0.3, 0.2])
    phased_run(folder, 0.8 * part * np.exp(rng.normal(0, 0.06, (5, 64, 1))), 8 * MIB)


def autocorrelated(folder: Path) -> None:
    """32 ordinals whose common load varies slowly (correlation .8), and does not get worse."""
    rng = np.random.default_rng(110)
    load = np.empty(32)
    load[0] = rng.normal()
    for number in range(1, 32):
        load[number] = 0.8 * load[number - 1] + 0.6 * rng.normal()
    log_s = np.log(5e-3) + 0.3 * load[:, None, None] + rng.normal(0, 0.3, (32, 32, 1))
    phased_run(folder, np.exp(log_s))


def worsening(folder: Path) -> None:
    """Each phase takes a tenth longer than the one before."""
    rng = np.random.default_rng(111)
    growth = 1.1 ** np.arange(10)[:, None, None]
    phased_run(folder, 0.02 * growth * rng.lognormal(0, 0.15, (10, 16, 1)))


def sizes(folder: Path) -> None:
    """Requests of 4 KiB, 64 KiB and 4 MiB: seconds per MiB have modes where durations have others."""
    rng = np.random.default_rng(112)
    requested = rng.choice([4 << 10, 64 << 10, 4 << 20], (8, 16, 6), p=[0.4, 0.4, 0.2])
    phased_run(folder, (50e-6 + requested / 400e6) * rng.lognormal(0, 0.15, requested.shape), requested)


def all_equal(folder: Path) -> None:
    """Each call takes exactly 1 ms."""
    phased_run(folder, np.full((4, 8, 5), 1e-3))


def doubles_of_1970(log: Path) -> None:
    """A log of Darshan with DXT: a clock of 1 us, kept as doubles of seconds since 1970; one mode at 3 us."""
    rng = np.random.default_rng(113)
    zero = 1.7e9
    body = b""
    for rank in range(8):
        lasts = np.maximum(rng.lognormal(np.log(3e-6), 0.15, 400), 0)
        start = 0.5 + np.cumsum(lasts + rng.uniform(2e-3, 4e-3, 400))
        first, last = np.floor(start * 1e6) / 1e6, np.floor((start + lasts) * 1e6) / 1e6
        seen = (zero + first) - zero, (zero + last) - zero
        body += struct.pack("<Qqq64sqq", 7, rank, 0, b"node0001", 0, 400)
        for number in range(400):
            body += struct.pack("<qqdd", (rank * 400 + number) * 512, 512, seen[0][number], seen[1][number])
    log.write_bytes(_darshan_log(body, b"/srv/app/shared.dat"))


def _darshan_log(dxt_posix: bytes, path: bytes) -> bytes:
    """A log of version 3.41 with one module, by the description of the format."""
    job = struct.pack("<qqqqqqq1024s", 1000, 1_700_000_000, 0, 1_700_000_060, 0, 8, 4242, b"lib_ver=3.4.4\n")
    job = (job + b"/srv/app/synthetic\next4\t/").ljust(4096, b"\0")
    job, names = zlib.compress(job), zlib.compress(struct.pack("<Q", 7) + path + b"\0")
    module = zlib.compress(dxt_posix)
    places, versions = [(0, 0)] * 65, [0] * 64
    places[0] = (1328 + len(job), len(names))
    places[1 + _DXT_POSIX] = (1328 + len(job) + len(names), len(module))
    versions[_DXT_POSIX] = 1
    numbers = [number for place in places for number in place]
    head = struct.pack("<8sqB7xQ130Q64I", b"3.41", 6567223, 0, 0, *numbers, *versions)
    return head + job + names + module


DIRECTORIES = (
    clock_1us,
    clock_10ns,
    clock_4ms,
    far_outliers,
    clustered_slow,
    two_hills,
    plateau,
    small_sample,
    harmonics,
    autocorrelated,
    worsening,
    sizes,
    all_equal,
)


def main(output: str) -> None:
    """Make them all in this folder."""
    for make in DIRECTORIES:
        make(Path(output) / make.__name__.replace("_", "-"))
    doubles_of_1970(Path(output) / "clock-1970.darshan")


if __name__ == "__main__":
    main(sys.argv[1])
