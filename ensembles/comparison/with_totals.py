"""Numbers, sizes and times a run of a kind of calls in its verdict: what decides beside durations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensembles.comparison.model import is_alike
from ensembles.comparison.report import DIFFERENT, SAME, Comparison
from ensembles.comparison.times import TimeChange
from ensembles.comparison.totals import Total, counts_text
from ensembles.comparison.verdict import FASTER, MIXED, SLOWER
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import ratio_text


def with_totals(found: Comparison, totals: list[Total], times: list[TimeChange]) -> Comparison:
    """Add the totals of a kind of calls, and let its number, size and time a run enter the verdict.

    Another number or size of calls makes the kind different without a test of durations, and so does another
    time a run by its test. The direction is that of the time a run, where it is certain.
    """
    found = replace(found, totals=totals, times=times)
    longer, times_text = _direction_of(times, found.level), _times_text(found)
    told = f"; {times_text}" if times_text else ""
    counts = counts_text(totals, [group.name for group in found.groups])
    if found.sizes_differ:
        return _without_durations(found, counts, told, longer)
    if found.counts_differ:
        durations = f"; durations: {found.verdict} ({found.reason})" if found.reason else ""
        if longer is None and any(each.ratio is None or not each.after_s for each in times):
            longer = SLOWER if max(each.after_s for each in times) > times[0].before_s else FASTER
        elif not times:
            longer = found.direction
        return replace(found, verdict=DIFFERENT, reason=f"{counts}{told}{durations}", direction=longer)
    if found.verdict == DIFFERENT and longer is not None:
        return replace(found, reason=f"{times_text}; durations: {found.reason}", direction=longer)
    if longer is not None and found.verdict != SAME and _is_beyond_margin(found, times):
        reason = f"{times_text}; durations: {found.verdict} ({found.reason})"
        return replace(found, verdict=DIFFERENT, reason=reason, direction=longer)
    if found.direction in (SLOWER, FASTER) and times and _contradict(found, times):
        return replace(found, direction=MIXED)
    return found


def _direction_of(times: Sequence[TimeChange], level: float) -> str | None:
    """Return whether the time a run is certainly longer or shorter; mixed: of several groups some each."""
    longer = {SLOWER for each in times if each.is_longer(level)}
    longer |= {FASTER for each in times if each.is_shorter(level)}
    return MIXED if len(longer) > 1 else next(iter(longer), None)


def _is_beyond_margin(found: Comparison, times: Sequence[TimeChange]) -> bool:
    ratios = [each.ratio for each in times if each.ratio and each.is_certain(found.level)]
    return any(not is_alike(ratio, found.margin) for ratio in ratios)


def _contradict(found: Comparison, times: Sequence[TimeChange]) -> bool:
    """Whether the times a run of all groups point to the other side than the durations, beyond the margin."""
    ratios = [each.ratio for each in times if each.ratio]
    if found.direction == SLOWER:
        return bool(ratios) and max(ratios) < 1 - found.margin
    return bool(ratios) and min(ratios) > 1 / (1 - found.margin)


def _times_text(found: Comparison) -> str:
    """Return the times a run of the groups, with what single calls and their number have to do with it."""
    several = len(found.groups) > 2
    told = []
    for at, each in enumerate(found.times):
        of = f" of {sanitize_text(each.group)}" if several else ""
        if each.p is None:
            continue
        if each.is_certain(found.level):
            told.append(f"time a run{of} {each.text} ({each.evidence}){_single_calls(found, at, each)}")
        elif found.counts_differ or found.sizes_differ:
            told.append(f"time a run{of} {each.text}: not certain ({each.evidence})")
    return "; ".join(told)


def _single_calls(found: Comparison, at: int, change: TimeChange) -> str:
    """Return that single calls became longer or shorter, if they are more or fewer; else ""."""
    calls = next((total for total in found.totals if total.what == "calls"), None)
    number = calls.ratios[at] if calls is not None else None
    if not number or not change.ratio or is_alike(number, found.margin):
        return ""
    mean = change.ratio / number
    shape = "shorter" if mean < 1 else "longer"
    but = "but" if (mean < 1) == (number > 1) else "and"
    more = "more" if number > 1 else "fewer"
    return f": single calls are {shape} ({ratio_text(mean)} in the mean), {but} there are {more}"


def _without_durations(found: Comparison, counts: str, told: str, longer: str | None) -> Comparison:
    """Return a comparison of calls of other sizes: durations do not say what became slower, the time does."""
    hint = "choose one size (--size), or take times per MiB (--per-byte)"
    hint = hint if found.knows_durations else found.reason
    return replace(
        found,
        verdict=DIFFERENT,
        reason=f"{counts}{told}; durations of other sizes are not compared: {hint}",
        direction=longer,
        enough_runs=None,
        shifts=[],
        moved=[],
        parts=[],
        tests={},
        distances={},
        modes=[],
        quantiles=[],
    )
