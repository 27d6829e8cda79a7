"""Spools with known contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spool_writer import SpoolContent, write_spool

from ensembles.model.c_layout import CONSTANTS, EVENT

UNIX_NS = 1_700_000_000_000_000_000
RUNNING = CONSTANTS["ENSIO_STATE_RUNNING"]
MONOTONIC = CONSTANTS["ENSIO_CLOCK_MONOTONIC"]
TSC = CONSTANTS["ENSIO_CLOCK_TSC"]


def made_events(count: int, seed: int = 0, first_ticks: int = 1000) -> np.ndarray:
    """Completed writes one after the other, with times in ticks from `first_ticks` on."""
    random = np.random.default_rng(seed)
    events = np.zeros(count, EVENT.dtype)
    events["duration"] = random.integers(1, 10_000, count)
    gaps = random.integers(0, 10_000, count)
    events["start"] = first_ticks + np.cumsum(gaps) + np.cumsum(events["duration"]) - events["duration"]
    events["offset"] = random.integers(-1, 1 << 40, count)
    events["requested"] = random.integers(0, 1 << 22, count)
    events["moved"] = events["requested"]
    events["file"] = 1
    events["call"] = 6
    return events


def head(**members: int) -> dict[str, int]:
    """Members of a spool's head: a clock that ticks once a ns, from tick 1000 on."""
    return {
        "pid": 100,
        "first_ticks": 1000,
        "first_monotonic_ns": 1000,
        "first_realtime_ns": UNIX_NS,
        "last_ticks": 1_000_001_000,
        "last_monotonic_ns": 1_000_001_000,
        "last_realtime_ns": UNIX_NS + 1_000_000_000,
        **members,
    }


def _ends(threads: Sequence[np.ndarray]) -> dict[str, int]:
    """Last readings of a clock that ticks once a ns, if calls end after those of `head`."""
    last = max((int((each["start"] + each["duration"]).max()) for each in threads if len(each)), default=0)
    is_possible = head()["last_ticks"] < last < 10**15
    return {"last_ticks": last, "last_monotonic_ns": last} if is_possible else {}


def spool(
    path: Path,
    threads: Sequence[np.ndarray] = (),
    *,
    files: Mapping[int, str | bytes] | None = None,
    properties: Mapping[str, str] | None = None,
    host: str = "alpha",
    program: str = "/opt/app/bin/solver",
    calls: Any = None,
    losses: Mapping[str, int] | None = None,
    surroundings: np.ndarray | None = None,
    facts: Mapping[int, Mapping[str, str]] | None = None,
    **members: int,
) -> Path:
    """Write a spool; `members` are those of its head."""
    content = SpoolContent(
        threads=threads,
        files={1: "/data/one"} if files is None else files,
        properties={"host": host, "program": program, **(properties or {})},
        head=head(**{**_ends(threads), **members}),
        losses=losses or {},
        surroundings=surroundings,
        file_facts=facts or {},
    )
    if calls is not None:
        content.calls = calls
    path.parent.mkdir(parents=True, exist_ok=True)
    write_spool(path, content)
    return path
