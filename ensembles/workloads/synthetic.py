"""Synthetic runs: run directories whose events are known, of any size, for tests and benchmarks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.writers.native.spool import POSIX_CALLS, SpoolContent, write_spool

_MEETINGS = CONSTANTS["ENSIO_MEETINGS"]
_LATENCY_NS = 10_000
"""A barrier takes so long after the last task has come."""


@dataclass(frozen=True, slots=True)
class NodeClock:
    """The clocks of a node at a true time, which is 0 when the job begins.

    Attributes
    ----------
    ticks_per_ns : float
    booted_ns : int
        Its monotonic clock at 0.
    unix_ns : int
        Its time of day at 0.
    drift : float
        Of both, ns more in each true ns; the tick counter does not drift.
    """

    ticks_per_ns: float
    booted_ns: int
    unix_ns: int
    drift: float

    def ticks(self, time_ns: np.ndarray | float) -> np.ndarray:
        """The tick counter at true times."""
        first = int(self.booted_ns * self.ticks_per_ns)
        return np.uint64(first) + np.rint(np.multiply(time_ns, self.ticks_per_ns)).astype("u8")

    def reading(self, name: str, time_ns: int) -> dict[str, int]:
        """Members of a spool's head: the reading `name` of all clocks."""
        elapsed_ns = time_ns + round(time_ns * self.drift)
        return {
            f"{name}_ticks": int(self.ticks(time_ns)),
            f"{name}_monotonic_ns": self.booted_ns + elapsed_ns,
            f"{name}_realtime_ns": self.unix_ns + elapsed_ns,
        }


class Barriers:
    """When the tasks of a job come to its barriers and leave them.

    Parameters
    ----------
    random : numpy.random.Generator
    tasks : int
    begin_ns : mapping of str to int
        True time at which the barriers of each meeting begin.
    skew_ns : float
        By how much tasks come and leave later than others: exponentially distributed with this mean.
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
        """Members of a spool's head: what a task reads at the barriers of these meetings."""
        return {
            f"{name}{number}_{edge}": int(ticks)
            for name in meetings
            for number, barrier in enumerate(clock.ticks(self._times[name][:, :, rank]))
            for edge, ticks in zip(("entered", "left"), barrier, strict=True)
        }


@dataclass(frozen=True)
class SyntheticRun:
    """The events of a synthetic run before they are written: one row a task.

    Attributes
    ----------
    call : ndarray, u2, shape (events,)
        Number in `POSIX_CALLS`; the same for every task.
    requested : ndarray, u8, shape (events,)
        Bytes.
    offset : ndarray, i8, shape (tasks, events)
        Bytes.
    start_ns, duration_ns : ndarray, i8, shape (tasks, events)
        Since the job began.
    """

    call: np.ndarray
    requested: np.ndarray
    offset: np.ndarray
    start_ns: np.ndarray
    duration_ns: np.ndarray


def synthetic_events(tasks: int, events_per_task: int, seed: int = 0, phases: int = 5) -> SyntheticRun:
    """Events like those of IOR on one shared file: open, phases of writes, phases of reads, close.

    All tasks wait for each other between phases. A call takes its fair share of a file system of 64 MiB/s a
    task, a half or a quarter of that in some tasks (harmonics), with log-normal noise and a few stragglers.

    Parameters
    ----------
    tasks : int
        At least 1.
    events_per_task : int
        At least 2 (open and close).
    seed : int
        The same seed gives the same run.
    phases : int
        Of writes, and again of reads.
    """
    if tasks < 1 or events_per_task < 2 or phases < 1:
        raise ValueError("a synthetic run needs a task, two events a task and a phase at least")
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
    """Times of the calls `low` to `high` of every task, from a common start after all earlier ones."""
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
    """Write a run directory with one spool a task, as `synthetic_events` describes them.

    Every node's tick counter has its own rate and its own zero, as on real machines.

    Parameters
    ----------
    ahead_ns, drift : sequence
        Of each node's clock, ns when the job begins and ns more in each ns; default: none.
    skew_ns : float
        By how much the tasks come to the barriers and leave them at different times, on the average.
    meetings : sequence of str
        ``"begin"`` and ``"end"``, or those of them whose readings the spools have.

    Returns
    -------
    SyntheticRun
        What was written.

    Raises
    ------
    OSError
        The directory or a file in it cannot be written.
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
