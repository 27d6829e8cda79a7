"""Nights of an experiment: runs as spools, each with a factor that is common to the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from made_runs import Call, run_of

from ensembles.api.run import Run
from ensembles.history.record import KindRecord, RunRecord
from ensembles.statistics.samples.counted_durations import CountedDurations

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


def simulated(
    rng: np.random.Generator,
    common: float,
    place: float = 1.0,
    weight: float = 1.0,
    syncs: float = 1.0,
    first: float = 1.0,
    number: int = 0,
) -> RunRecord:
    """The record of a night of which only durations are drawn: writes of two modes, and 50 syncs."""
    is_slow = rng.random(2000) < 0.05 * weight
    own = np.exp(0.01 * rng.standard_normal(2))
    writes = (
        common
        * np.where(is_slow, 8e-3 * place * own[0], 1e-3 * first * own[1])
        * rng.lognormal(0, 0.15, 2000)
    )
    sync = common * 5e-3 * rng.lognormal(0, 0.1, round(50 * syncs))
    return drawn_record({"write": writes, "sync": sync}, number)


def drawn_record(durations_of: dict[str, np.ndarray], number: int = 0) -> RunRecord:
    """The record of a night of which only durations are known, in seconds, by operation."""
    kinds = []
    for op, durations_s in durations_of.items():
        sample = CountedDurations.from_durations(durations_s)
        ends = float(sample.min_s[0]), float(sample.max_s[0])
        bins, counts = sample.bin.tolist(), sample.count.tolist()
        total_s = float(durations_s.sum())
        kinds.append(KindRecord("posix", op, len(durations_s), 0, total_s, *ends, bins, counts))
    time_s = sum(kind.time_s for kind in kinds)
    return RunRecord(
        identity=str(number),
        path=f"night {number}",
        program="simulated",
        job="",
        command=[],
        start_unix_ns=1_700_000_000 * 10**9 + number * 86_400 * 10**9,
        tasks=16,
        nodes=1,
        totals={
            "calls": float(sum(kind.calls for kind in kinds)),
            "io_time_s": time_s,
            "span_s": time_s / 16,
        },
        rates_bytes_per_s={"write": 1e9 / time_s},
        kinds=kinds,
        phases=[],
        findings=[],
        notes=[],
    )
