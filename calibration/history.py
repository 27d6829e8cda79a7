"""False alarms and power of ``ensio history check``, on months of simulated nights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.history.check import BASELINE, judge
from ensembles.history.record import KindRecord, PhaseRecord, RunRecord
from ensembles.history.series import WINDOWS
from ensembles.statistics.samples.counted_durations import CountedDurations

CALLS, SYNCS = 2000, 16


@dataclass(frozen=True)
class Nights:
    """How nights of an unchanged experiment vary."""

    spread: float  # Standard deviation of the log of the factor that is common to a night
    memory: float = 0.0  # Correlation of that factor with the night before
    # Share of nights on which everything takes twice as long, without a cause in the experiment
    slow: float = 0.0
    stay: float = 0.0  # Chance that another follows a slow night; such nights take 1.3 to 2.2 times as long


@dataclass(frozen=True)
class Change:
    """What is changed from one night on: factors of durations, weights and counts."""

    place: float = 1.0
    weight: float = 1.0
    tail: float = 1.0
    syncs: float = 1.0
    phase: float = 1.0
    everything: float = 1.0


CHANGES = {
    "second mode + 10 %": Change(place=1.1),
    "second mode + 20 %": Change(place=1.2),
    "second mode from 5 % of the calls to 10 %": Change(weight=2.0),
    "tail twice as heavy": Change(tail=2.0),
    "phase 2 + 15 %": Change(phase=1.15),
    "syncs doubled": Change(syncs=2.0),
    "everything + 20 %": Change(everything=1.2),
}

KINDS_OF_NIGHTS = {
    "independent nights": (0.0, 0.0, 0.0),
    "correlation 0.7 from night to night": (0.7, 0.0, 0.0),
    "one night of 20 twice as slow": (0.0, 0.05, 0.0),
    "spells of slow nights": (0.0, 0.03, 0.6),
}

SPREADS = (0.05, 0.1)
BEFORE = BASELINE + max(WINDOWS)
JUDGED = (1, 2, 3, 5, 7)
"""Nights after a change on which a check is made."""


def main(quick: bool = False) -> None:
    """Print false alarms, then power, then the dates of change points by other methods."""
    months, nights, trials = (2, 10, 4) if quick else (14, 18, 30)
    cases = [
        (900_000 + 100 * number + month, Nights(spread, memory, slow, stay), nights)
        for number, (memory, slow, stay) in enumerate(KINDS_OF_NIGHTS.values())
        for spread in SPREADS
        for month in range(months)
    ]
    found = list(in_order(verdicts, cases))
    rows = []
    for number, (name, spread) in enumerate((name, spread) for name in KINDS_OF_NIGHTS for spread in SPREADS):
        alarms = [verdict for one in found[number * months : (number + 1) * months] for verdict in one]
        rows.append((name, f"{spread:.0%}", rate(alarms, "regression"), rate(alarms, "improvement"), "≤ 1 %"))
    show(rows, ("unchanged experiment", "variation", "regression", "improvement", "goal"))
    chosen = [(name, spread) for name in CHANGES for spread in SPREADS]
    tried = [
        (910_000 + 100 * number + trial, Nights(spread), CHANGES[name])
        for number, (name, spread) in enumerate(chosen)
        for trial in range(trials)
    ]
    results = list(in_order(nights_to_alarm, tried))
    rows = []
    for number, (name, spread) in enumerate(chosen):
        mine = results[number * trials : (number + 1) * trials]
        within = [
            " · ".join(f"{np.mean([one[which] <= night for one in mine]):.0%}" for night in WINDOWS)
            for which in ("check", "oracle", "blind")
        ]
        late = [abs(one["date"]) <= 1 for one in mine if one["check"] <= max(WINDOWS)]
        right = f"{np.mean(late):.0%}" if late else ""
        rows.append((name, f"{spread:.0%}", *within, right))
    tests = ("check", "test of this part only", "corrected for all parts")
    show(rows, ("change", "variation", *tests, "date right within a night"))
    say(
        f"± is one standard error; power is of {trials} series, within the first 1 · 3 · 7 nights (a check "
        f"after nights {', '.join(map(str, JUDGED))}). The test of one part knows which value of the "
        "simulation changes, exactly and without finding modes, and is made at the level of 1 % for its "
        "windows; in the next column it is corrected (Bonferroni) for the number of parts that the check "
        "looks at, as for a test that does not know where to look. A night has "
        f"{CALLS:,} writes of two log-normal modes (95 % at 1 ms, 5 % at 8 ms), 1 % of them with a Pareto "
        f"tail, {SYNCS} syncs, and two phases. Variation is the standard deviation of the "
        "log of what is common to all calls of a night; each mode and phase varies by a third of it more. "
        f"The baseline is the {BASELINE} nights before."
    )


def factors(rng: np.random.Generator, nights: Nights, count: int) -> np.ndarray:
    """Draw the factors that are common to nights."""
    found = np.empty(count)
    state, is_slow = nights.spread * rng.standard_normal(), False
    for number in range(count):
        own = np.sqrt(1 - nights.memory**2) * nights.spread * rng.standard_normal()
        state = nights.memory * state + own
        is_slow = rng.random() < (nights.stay if is_slow and nights.stay else nights.slow)
        times = rng.uniform(1.3, 2.2) if nights.stay else 2.0
        found[number] = np.exp(state) * (times if is_slow else 1.0)
    return found


def verdicts(seed: int, nights: Nights, checked: int) -> list[str]:
    """Return the verdict of each night of an unchanged experiment, after a baseline."""
    rng = np.random.default_rng([seed, 97])
    records = [
        night(rng, factor, nights.spread / 3, Change())[0]
        for factor in factors(rng, nights, BEFORE + checked)
    ]
    return [judge(records[at - BEFORE : at]).verdict for at in range(BEFORE + 1, BEFORE + checked + 1)]


def nights_to_alarm(seed: int, nights: Nights, change: Change) -> dict[str, float]:
    """Return after how many nights a change is found, by the check and by a test that knows it; and the error
    of its date.
    """
    rng = np.random.default_rng([seed, 98])
    changed = max(WINDOWS)
    made = [
        night(rng, factor, nights.spread / 3, change if number >= BEFORE else Change())
        for number, factor in enumerate(factors(rng, nights, BEFORE + changed))
    ]
    known = next(name for name in vars(change) if getattr(change, name) != 1.0)
    truth = np.array([values[known] for _, values in made])
    found = {"check": np.inf, "oracle": np.inf, "blind": np.inf, "date": np.inf}
    parts = len(judge([record for record, _ in made[:BEFORE]]).series.parts)
    for after in JUDGED:
        last = BEFORE + after
        if not np.isfinite(found["check"]):
            judged = judge([record for record, _ in made[last - BEFORE : last]])
            if judged.verdict == "regression":
                found |= {"check": after, "date": judged.first - (BEFORE - after)}
        for which, tests in (("oracle", 1), ("blind", parts)):
            if not np.isfinite(found[which]) and oracle(truth[:last], tests):
                found[which] = after
    return found


def oracle(values: np.ndarray, tests: int) -> bool:
    """Test one of several series of exact values: t tests of the windows, one-sided, at 1 % together."""
    for runs in WINDOWS:
        old, new = values[-runs - BASELINE : -runs], values[-runs:]
        error = old.std(ddof=1) * np.sqrt(1 / len(old) + 1 / runs) + 1e-9
        if stdtr(len(old) - 1, -(new.mean() - old.mean()) / error) <= 0.01 / len(WINDOWS) / tests:
            return True
    return False


def night(
    rng: np.random.Generator, common: float, own: float, change: Change
) -> tuple[RunRecord, dict[str, float]]:
    """Simulate a night; returns the record, and for each change the value that it moves."""
    common *= change.everything
    is_second = rng.random(CALLS) < 0.05 * change.weight
    places = np.exp(own * rng.standard_normal(2)) * [1e-3, 8e-3 * change.place]
    writes = common * places[is_second.astype(int)] * rng.lognormal(0, 0.15, CALLS)
    is_tail = rng.random(CALLS) < 0.01 * change.tail
    writes[is_tail] *= 10 * rng.pareto(1.5, is_tail.sum()) + 10
    phases = common * 10 * np.exp(own * rng.standard_normal(2)) * [1.0, change.phase]
    syncs = common * 5e-3 * rng.lognormal(0, 0.3, round(SYNCS * change.syncs))
    kinds = [kind("write", writes, CALLS << 20), kind("sync", syncs, 0)]
    body = [np.median(np.log(writes[(is_second == which) & ~is_tail])) for which in (False, True)]
    truth = {
        "place": float(body[1] - body[0]),
        "weight": float(is_second.mean()),
        "tail": float(is_tail.mean()),
        "syncs": float(len(syncs)),
        "phase": float(np.log(phases[1]) - body[0]),
        "everything": float(body[0]),
    }
    record = RunRecord(
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
        phases=[
            PhaseRecord(number, None, 0.0, float(time_s), CALLS, 0, CALLS << 20)
            for number, time_s in enumerate(phases, 1)
        ],
        findings=[],
        notes=[],
    )
    return record, truth


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
