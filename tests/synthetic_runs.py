"""Synthetic runs: run directories of any size with known events, for tests and benchmarks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from spool_writer import POSIX_CALLS, SpoolContent, write_spool

from ensembles.model.c_layout import CONSTANTS, EVENT

_MEETINGS = CONSTANTS["ENSIO_MEETINGS"]
_LATENCY_NS = 10_000
"""Duration of a barrier after the last task has entered."""


@dataclass(frozen=True, slots=True)
class NodeClock:
    """The clocks of a node as functions of true time, which is 0 at the start of the job.

    Examples
    --------
    >>> clock = NodeClock(ticks_per_ns=2.0, booted_ns=1_000, unix_ns=5_000, drift=0.5)
    >>> clock.reading("first", 100)
    {'first_ticks': 2200, 'first_monotonic_ns': 1150, 'first_realtime_ns': 5150}
    """

    ticks_per_ns: float  # Frequency of the tick counter
    booted_ns: int  # Monotonic clock at time 0
    unix_ns: int  # Time of day at time 0
    drift: float  # Relative drift of these two clocks; the tick counter does not drift

    def ticks(self, time_ns: np.ndarray | float) -> np.ndarray:
        """Return the tick counter at true times in nanoseconds."""
        first = int(self.booted_ns * self.ticks_per_ns)
        return np.uint64(first) + np.rint(np.multiply(time_ns, self.ticks_per_ns)).astype("u8")

    def reading(self, name: str, time_ns: int) -> dict[str, int]:
        """Return the members of a spool's head with the reading `name` of all clocks."""
        elapsed_ns = time_ns + round(time_ns * self.drift)
        return {
            f"{name}_ticks": int(self.ticks(time_ns)),
            f"{name}_monotonic_ns": self.booted_ns + elapsed_ns,
            f"{name}_realtime_ns": self.unix_ns + elapsed_ns,
        }


class Barriers:
    """Times at which the tasks of a job enter and leave its barriers.

    `skew_ns`: mean of the exponentially distributed delays with which they do.
    """

    def __init__(
        self, random: np.random.Generator, tasks: int, begin_ns: Mapping[str, int], skew_ns: float
    ) -> None:
        self._times: dict[str, np.ndarray] = {}
        for name, begin in begin_ns.items():
            left = np.full(tasks, float(begin))
            times = np.empty((_MEETINGS, 2, tasks))
            for barrier in times:
                barrier[0] = left + random.exponential(skew_ns, tasks)
                left = barrier[0].max() + _LATENCY_NS + random.exponential(skew_ns, tasks)
                barrier[1] = left
            self._times[name] = times

    def readings(self, rank: int, clock: NodeClock, meetings: Sequence[str]) -> dict[str, int]:
        """Return the members of a spool's head with the readings of a task at these meetings."""
        return {
            f"{name}{number}_{edge}": int(ticks)
            for name in meetings
            for number, barrier in enumerate(clock.ticks(self._times[name][:, :, rank]))
            for edge, ticks in zip(("entered", "left"), barrier, strict=True)
        }


@dataclass(frozen=True)
class SyntheticRun:
    """The events of a synthetic run, one row per task."""

    call: np.ndarray  # ndarray, u2, shape (events,): Index into `POSIX_CALLS`; equal for all tasks
    requested: np.ndarray  # ndarray, u8, shape (events,): Bytes
    offset: np.ndarray  # ndarray, i8, shape (tasks, events): Bytes
    # start_ns, duration_ns: ndarray, i8, shape (tasks, events): Nanoseconds since the start of the job
    start_ns: np.ndarray
    duration_ns: np.ndarray


def synthetic_events(tasks: int, events_per_task: int, seed: int = 0, phases: int = 5) -> SyntheticRun:
    """Generate events like those of IOR on one shared file: open, writes, reads, close.

    All tasks wait for each other between phases: `phases` of writes, and as many of reads. A call of 1 MiB
    takes 1/64 s, the fair share of a file system with 64 MiB/s per task. In some tasks it takes a half or a
    quarter of that (harmonics). Durations have log-normal noise, and there are a few stragglers.

    Examples
    --------
    >>> run = synthetic_events(tasks=4, events_per_task=12)
    >>> run.start_ns.shape
    (4, 12)
    >>> bool((run.start_ns[:, 1:] >= run.start_ns[:, :-1] + run.duration_ns[:, :-1]).all())
    True
    """
    if tasks < 1 or events_per_task < 2 or phases < 1:
        raise ValueError("a synthetic run needs at least one task, two events per task and one phase")
    random = np.random.default_rng(seed)
    transfer_bytes = 1 << 20
    transfers = events_per_task - 2
    shape = (tasks, events_per_task)
    call = np.empty(events_per_task, "u2")
    requested = np.full(events_per_task, transfer_bytes, "u8")
    offset, start, duration = (np.empty(shape, "i8") for _ in range(3))
    call[0], call[-1] = 1, 2
    requested[[0, -1]] = 0
    offset[:, [0, -1]] = -1
    start[:, 0] = random.integers(0, 5_000_000, tasks)
    duration[:, 0] = random.lognormal(np.log(2e5), 0.5, tasks)
    edges = 1 + np.linspace(0, transfers, 2 * phases + 1).astype(int)
    for phase, (low, high) in enumerate(itertools.pairwise(edges)):
        calls = high - low
        call[low:high] = 6 if phase < phases else 5
        _fill_phase(random, start, duration, low, high)
        first_of_task = (np.arange(tasks) + (phase % phases) * tasks) * calls
        offset[:, low:high] = (first_of_task[:, None] + np.arange(calls)) * transfer_bytes
    start[:, -1] = (start[:, -2] + duration[:, -2]).max() + random.integers(0, 100_000, tasks)
    duration[:, -1] = random.lognormal(np.log(5e4), 0.5, tasks)
    return SyntheticRun(call, requested, offset, start, duration)


def _fill_phase(
    random: np.random.Generator, start: np.ndarray, duration: np.ndarray, low: int, high: int
) -> None:
    """Set the times of the calls `low` to `high` of all tasks, which start after all earlier calls."""
    tasks, calls = len(start), high - low
    fair_share_ns = 1e9 / 64
    share = random.choice([1.0, 0.5, 0.25], (tasks, 1), p=[0.7, 0.2, 0.1])
    noise = np.exp(0.15 * random.standard_normal((tasks, calls), dtype="f4"))
    straggle = 1 + 9 * (random.random((tasks, 1)) < 0.002)
    duration[:, low:high] = fair_share_ns * share * straggle * noise
    gap_ns = 2_000
    begin = (start[:, low - 1] + duration[:, low - 1]).max() + random.integers(1_000, 200_000, tasks)
    start[:, low:high] = begin[:, None] + gap_ns * np.arange(calls)
    start[:, low + 1 : high] += np.cumsum(duration[:, low : high - 1], axis=1)


def synthetic_run(
    directory: str | os.PathLike[str],
    tasks: int,
    events_per_task: int,
    seed: int = 0,
    phases: int = 5,
    tasks_per_node: int = 32,
    ahead_ns: Sequence[int] = (),
    drift: Sequence[float] = (),
    skew_ns: float = 0,
    meetings: Sequence[str] = ("begin", "end"),
) -> SyntheticRun:
    """Write a run directory with one spool per task and the events of `synthetic_events`.

    As on real machines, the tick counters of nodes differ in frequency and origin: their clocks are
    `ahead_ns` at the start of the job. `skew_ns`: mean delay with which tasks enter and leave the barriers.
    `meetings`: of which the spools contain readings: ``"begin"``, ``"end"`` or both.
    """
    run = synthetic_events(tasks, events_per_task, seed, phases)
    random = np.random.default_rng([seed, 1])
    nodes = -(-tasks // tasks_per_node)
    began_unix_ns = 1_700_000_000_000_000_000
    ticks_per_ns = random.uniform(2.0, 3.0, nodes)
    booted_ns = random.integers(10**12, 10**15, nodes)
    clocks = [
        NodeClock(
            ticks_per_ns=ticks_per_ns[node],
            booted_ns=int(booted_ns[node]),
            unix_ns=began_unix_ns + (ahead_ns[node] if ahead_ns else 0),
            drift=drift[node] if drift else 0.0,
        )
        for node in range(nodes)
    ]
    lasted_ns = int((run.start_ns[:, -1] + run.duration_ns[:, -1]).max()) + 1_000_000
    barriers = Barriers(random, tasks, {"begin": 0, "end": lasted_ns - 1_000_000}, skew_ns)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    events = np.zeros(events_per_task, EVENT.dtype)
    events["call"] = run.call
    events["requested"] = run.requested
    events["moved"] = run.requested
    events["file"] = 1
    for rank in range(tasks):
        node = rank // tasks_per_node
        clock = clocks[node]
        events["start"] = clock.ticks(run.start_ns[rank])
        events["duration"] = np.rint(run.duration_ns[rank] * clock.ticks_per_ns)
        events["offset"] = run.offset[rank]
        head = {
            "clock": CONSTANTS["ENSIO_CLOCK_TSC"],
            "pid": 2000 + rank % tasks_per_node,
            "parent_pid": 1999,
            "rank": rank,
            "tasks": tasks,
            **clock.reading("first", 0),
            **clock.reading("last", lasted_ns),
            **barriers.readings(rank, clock, meetings),
        }
        properties = {
            "host": f"node{node:04d}",
            "program": "/opt/synthetic/bin/ior",
            "command": "ior\x1f-t\x1f1m",
            "cwd": "/scratch/synthetic",
            "user": "someone",
            "job": "1234",
            "launcher": "synthetic",
            "mode": "trace",
            "recorder": "synthetic",
            "start_unix_ns": str(began_unix_ns),
        }
        files = {1: "/scratch/synthetic/shared.dat"}
        write_spool(folder / f"{rank}.spool", SpoolContent([events], files, POSIX_CALLS, properties, head))
    return run
