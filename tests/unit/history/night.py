"""Nights of an experiment: runs as spools, each with a factor that is common to the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_runs import Call, run_of

from ensembles.history.record import RunRecord
from ensembles.run.run import Run

TASKS, CALLS = 4, 200


def night(folder: Path, seed: int, slower: float = 1.0, syncs: int = 4) -> Run:
    """A run of a night: writes of two modes by each task, and syncs."""
    rng = np.random.default_rng(seed)
    common = slower * np.exp(0.05 * rng.standard_normal())
    tasks: list[list[Call]] = []
    for _ in range(TASKS):
        is_slow = rng.random(CALLS) < 0.1
        duration_s = np.where(is_slow, 8e-3, 1e-3) * common * rng.lognormal(0, 0.1, CALLS)
        start_s = np.cumsum(duration_s) - duration_s
        writes: list[Call] = [
            ("pwrite", float(start), float(duration), 1 << 20)
            for start, duration in zip(start_s, duration_s, strict=True)
        ]
        end_s = float(start_s[-1] + duration_s[-1])
        tasks.append([*writes, *(("fsync", end_s + 1e-3 * k, 5e-4, 0) for k in range(syncs))])
    return run_of(folder, tasks, lasted_s=10.0)


def night_record(folder: Path, seed: int, slower: float = 1.0, syncs: int = 4) -> RunRecord:
    """The record of a night; nights follow one another by a day."""
    import msgspec

    record = RunRecord.of_run(night(folder, seed, slower, syncs))
    return msgspec.structs.replace(record, start_unix_ns=record.start_unix_ns + seed * 86_400 * 10**9)
