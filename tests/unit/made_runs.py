"""Runs made for tests of pictures: written as spools and opened as a user would open them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from spool_writer import POSIX_CALLS, SpoolContent, write_spool

import ensembles
from ensembles.api.run import Run
from ensembles.model.c_layout import CONSTANTS, EVENT

NUMBER = {call.name: number for number, call in POSIX_CALLS.items()}
BEGAN_UNIX_NS = 1_700_000_000_000_000_000

Call = (
    tuple[str, float, float, int]
    | tuple[str, float, float, int, int]
    | tuple[str, float, float, int, int, int]
)
"""Name, start in s, duration in s, bytes moved, the offset if it is known (else -1), and the number of the
file from 1 on."""


def run_of(
    folder: Path,
    tasks: Sequence[Sequence[Call]],
    lasted_s: float = 1.0,
    path: str | Sequence[str] = "/scratch/data.out",
    properties: Mapping[str, str] | None = None,
    head: Mapping[str, int] | None = None,
    threads: int = 1,
) -> Run:
    """A run whose tasks made these calls.

    Parameters
    ----------
    folder : Path
        The run directory, which need not be there.
    tasks : sequence
        The calls of each task.
    lasted_s : float
        How long the processes lived at least: they live until their calls end.
    path : str or sequence of str
        The one file, or all of them.
    properties, head : mapping, optional
        As for `SpoolContent`; replace those that are made up here.
    threads : int
        Of each task, which make its calls in turns.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lasted_s = max(
        lasted_s, *(start_s + duration_s for calls in tasks for _, start_s, duration_s, *_ in calls), 0.0
    )
    for rank, calls in enumerate(tasks):
        events = np.zeros(len(calls), EVENT.dtype)
        for event, (name, start_s, duration_s, moved, *more) in zip(events, calls, strict=True):
            event["call"] = NUMBER[name]
            event["start"] = 10**12 + round(start_s * 1e9)
            event["duration"] = round(duration_s * 1e9)
            event["requested"] = event["moved"] = moved
            event["offset"], event["file"] = (*more, -1, 1)[:2] if len(more) != 1 else (more[0], 1)
        whole_head = {
            "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
            "pid": 100 + rank,
            "rank": rank,
            "tasks": len(tasks),
            "first_ticks": 10**12,
            "first_monotonic_ns": 10**12,
            "first_realtime_ns": BEGAN_UNIX_NS,
            "last_ticks": 10**12 + round(lasted_s * 1e9),
            "last_monotonic_ns": 10**12 + round(lasted_s * 1e9),
            "last_realtime_ns": BEGAN_UNIX_NS + round(lasted_s * 1e9),
            **(head or {}),
        }
        whole_properties = {
            "host": "node0001",
            "program": "/opt/bin/app",
            "command": "app\x1f--input\x1fdeck.in",
            "mode": "trace",
            "start_unix_ns": str(BEGAN_UNIX_NS),
            **(properties or {}),
        }
        files = dict(enumerate([path] if isinstance(path, str) else path, 1))
        content = SpoolContent(
            [events[each::threads] for each in range(threads)],
            files,
            POSIX_CALLS,
            whole_properties,
            whole_head,
        )
        write_spool(folder / f"{rank}.spool", content)
    return ensembles.open(folder)
