"""False alarms and power of ``ensio history check``, on months of simulated nights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.page import say, show
from ensembles.history.check import BASELINE, judge
from ensembles.history.windows import WINDOWS
from ensembles.history.record import KindRecord, RunRecord
from ensembles.statistics.samples.counted_durations import CountedDurations

CALLS, SYNCS = 2000, 16


@dataclass(frozen=True)
class Nights:
    """How nights of an unchanged experiment vary.

    Attributes
    ----------
    spread : float
        Standard deviation of the log of the factor that is common to a night.
    memory : float
        Correlation of that factor with the night before.
    slow : float
        Share of nights on which everything takes twice as long, without a cause in the experiment.
    """

    spread: float
    memory: float = 0.0
    slow: float = 0.0


@dataclass(frozen=True)
class Change:
    """What is changed from one night on: factors of the second mode, its weight, the tail, and syncs."""

    place: float = 1.0
    weight: float = 1.0
    tail: float = 1.0
    syncs: float = 1.0


CHANGES = {
    "second mode + 10 %": Change(place=1.1),
    "second mode + 20 %": Change(place=1.2),
    "second mode from 5 % of the calls to 10 %": Change(weight=2.0),
    "tail twice as heavy": Change(tail=2.0),
    "syncs doubled": Change(syncs=2.0),
}

KINDS_OF_NIGHTS = {
    "independent nights": (0.0, 0.0),
    "correlation 0.7 from night to night": (0.7, 0.0),
    "one night of 20 twice as slow": (0.0, 0.05),
}


def main(quick: bool = False) -> None:
    """Print false alarms, then power."""
    months, nights = (2, 10) if quick else (20, 15)
    rows = []
    for number, (name, (memory, slow)) in enumerate(KINDS_OF_NIGHTS.items()):
        for spread in (0.05, 0.1, 0.2):
            alarms = [
                verdict
                for month in range(months)
                for verdict in verdicts(100 * number + month, Nights(spread, memory, slow), Change(), nights)
            ]
            rows.append(
                (name, f"{spread:.0%}", rate(alarms, "regression"), rate(alarms, "improvement"), "≤ 1 %")
            )
    show(rows, ("unchanged experiment", "variation", "regression", "improvement", "goal"))
    rows = []
    for number, (name, change) in enumerate(CHANGES.items()):
        for spread in (0.05, 0.1, 0.2):
            found = [
                next(verdicts(10_000 + 100 * number + trial, Nights(spread), change, 1))
                for trial in range(months * 5)
            ]
            rows.append((name, f"{spread:.0%}", rate(found, "regression")))
    show(rows, ("change", "variation", "found in the first night"))
    say(
        f"± is one standard error. A night has {CALLS:,} writes of two log-normal modes (95 % at 1 ms, 5 % "
        f"at 8 ms), 1 % of them with a Pareto tail, and {SYNCS} syncs. Variation is the standard deviation "
        "of the log of what is common to all calls of a night; each mode varies by a third of it more. The "
        f"baseline is the {BASELINE} nights before."
    )


def verdicts(seed: int, nights: Nights, change: Change, checked: int) -> Iterator[str]:
    """Yield the verdict of each night after a baseline; the change begins with the first of them."""
    rng = np.random.default_rng([seed, 97])
    factor = nights.spread * rng.standard_normal()
    records: list[RunRecord] = []
    for number in range(BASELINE + checked):
        own = np.sqrt(1 - nights.memory**2) * nights.spread * rng.standard_normal()
        factor = nights.memory * factor + own
        slow = 2.0 if rng.random() < nights.slow else 1.0
        is_changed = number >= BASELINE
        records.append(
            night(rng, slow * np.exp(factor), nights.spread / 3, change if is_changed else Change())
        )
        if is_changed:
            yield judge(records[-BASELINE - max(WINDOWS) :]).verdict


def night(rng: np.random.Generator, common: float, own: float, change: Change) -> RunRecord:
    """Simulate a night."""
    is_second = rng.random(CALLS) < 0.05 * change.weight
    places = np.exp(own * rng.standard_normal(2)) * [1e-3, 8e-3 * change.place]
    writes = common * places[is_second.astype(int)] * rng.lognormal(0, 0.15, CALLS)
    is_tail = rng.random(CALLS) < 0.01 * change.tail
    writes[is_tail] *= 10 * rng.pareto(1.5, is_tail.sum()) + 10
    syncs = common * 5e-3 * rng.lognormal(0, 0.3, round(SYNCS * change.syncs))
    kinds = [kind("write", writes, CALLS << 20), kind("sync", syncs, 0)]
    return RunRecord(
        identity="",
        path="night",
        program="simulated",
        job="",
        command=[],
        start_unix_ns=0,
        tasks=16,
        nodes=1,
        totals={"calls": float(len(writes) + len(syncs)), "io_time_s": float(writes.sum() + syncs.sum())},
        rates_bytes_per_s={},
        kinds=kinds,
        phases=[],
        findings=[],
        notes=[],
    )


def kind(op: str, durations_s: np.ndarray, moved: int) -> KindRecord:
    """Make the record of one kind of calls."""
    sample = CountedDurations.from_durations(durations_s)
    return KindRecord(
        "posix",
        op,
        len(durations_s),
        moved,
        float(durations_s.sum()),
        float(sample.min_s[0]),
        float(sample.max_s[0]),
        sample.bin.tolist(),
        sample.count.tolist(),
    )


def rate(verdicts: list[str], verdict: str) -> str:
    """Format how often a verdict was given, with its standard error."""
    share = verdicts.count(verdict) / len(verdicts)
    error = np.sqrt(max(share * (1 - share), 1 / len(verdicts) / 4) / len(verdicts))
    return f"{share:.1%} ± {error:.1%}"
