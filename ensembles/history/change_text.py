"""What changed between runs of an experiment, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.comparison.compare import WAITS_FOR_TASKS
from ensembles.comparison.times import LEAST_ADDED
from ensembles.comparison.verdict import MARGIN
from ensembles.history.record import KindRecord, RunRecord
from ensembles.history.series import RATE, Part, kinds_of
from ensembles.model.units import number_text, ratio_text, seconds_text
from ensembles.summaries.bins import bin_edges_s


def common_text(octaves: float, before: Sequence[RunRecord], since: Sequence[RunRecord]) -> str:
    """Describe a change of the common factor, which is that of the mode with most calls.

    If other kinds of calls did not move alike, by their median durations, all are named.
    """
    ratio = f"{number_text(2.0**octaves)} times as long"
    changes = {
        " ".join(kind): float(np.log2(np.median(new) / np.median(old)))
        for kind, old in _typical_durations_s(before).items()
        if (new := _typical_durations_s(since).get(kind))
    }
    sign = float(np.sign(octaves))
    if all(change * sign >= abs(octaves) / 2 for change in changes.values()):
        return f"all durations are {ratio}"
    least = -float(np.log2(1 - MARGIN))
    main = _kinds_with_time(before, since)
    changes = {name: change for name, change in changes.items() if name in main}
    changes = dict(sorted(changes.items(), key=lambda each: -sign * each[1]))
    along, others = (
        [
            f"{name} {ratio_text(2.0**change)}"
            for name, change in changes.items()
            if (change * sign > least) == moved
        ]
        for moved in (True, False)
    )
    if not along:
        return f"the mode with most calls is {ratio}"
    word = "longer" if sign > 0 else "shorter"
    rest = f", not of {listed(others)}" if others else ""
    return f"typical durations are {word} of {listed(along)}{rest}"


def _kinds_with_time(before: Sequence[RunRecord], since: Sequence[RunRecord]) -> set[str]:
    """Return the kinds of calls with enough of the time in I/O for the gate of ``ensio compare``."""
    found = set()
    for records in (before, since):
        times_s: dict[str, float] = {}
        for kind in (kind for record in records for kind in record.kinds):
            if (kind.layer, kind.op) not in WAITS_FOR_TASKS:
                name = f"{kind.layer} {kind.op}"
                times_s[name] = times_s.get(name, 0.0) + kind.time_s
        least_s = LEAST_ADDED * sum(times_s.values())
        found |= {name for name, time_s in times_s.items() if time_s >= least_s}
    return found


def listed(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _typical_durations_s(records: Sequence[RunRecord]) -> dict[tuple[str, str], list[float]]:
    """Return the median duration of each kind of I/O calls in each run that has it, most time first.

    It is the mean where only sums are known.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for layer, op in kinds_of(records):
        kinds = [kind for one in records for kind in one.kinds if (kind.layer, kind.op) == (layer, op)]
        typical_s = [_typical_s(kind) for kind in kinds if kind.calls and kind.time_s > 0]
        if typical_s:
            found[layer, op] = typical_s
    return found


def _typical_s(kind: KindRecord) -> float:
    if not kind.counts:
        return kind.time_s / kind.calls
    reached = np.cumsum(kind.counts)
    middle = kind.bins[int(np.searchsorted(reached, reached[-1] / 2))]
    edges_s = bin_edges_s()[middle : middle + 2]
    return float(edges_s.mean())


def ratio_sentence(part: Part, before: float, after: float, size: float) -> str:
    """Describe a change of a value whose log2 is tested, from the runs before the change and since."""
    from ensembles.model.units import bytes_text

    if not np.isfinite([before, after]).all():
        return f"{part.name}: {number_text(2.0**size)} times"
    ratio = f"{number_text(2.0 ** (after - before))} times"
    unit = 1.0 if part.t_s is None else part.t_s
    old, new = unit * 2.0**before, unit * 2.0**after
    if part.what == RATE:
        return f"{part.name} {bytes_text(new)}/s instead of {bytes_text(old)}/s, {ratio}"
    name = part.name.removesuffix(" place").removesuffix(" time")
    verb = "is" if name == "mean duration" else "takes"
    return f"{name} {verb} {time_text(new)} instead of {time_text(old)}, {ratio} as long"


def time_text(t_s: float | None) -> str:

    return "" if t_s is None else seconds_text(t_s)
