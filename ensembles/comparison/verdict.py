"""The verdict of a comparison (same, different or inconclusive) and its reason.

Numbers, sizes and times a run of a kind of calls decide beside durations, and so do kinds of calls that only
post requests in some groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.comparison.components import PLACE, RATIO, TAIL, TAIL_PLACE, WEIGHT, WIDTH, Component
from ensembles.comparison.model import ASSUMED_SPREAD, Effects, is_alike, runs_needed
from ensembles.comparison.report import (
    DIFFERENT,
    INCONCLUSIVE,
    SAME,
    Comparison,
    Move,
    PartResult,
    QuantileRatio,
    Shift,
)
from ensembles.comparison.times import TimeChange, Total, counts_text, make_total, time_changes
from ensembles.comparison.units import RUNS, Units
from ensembles.model.levels import SEVERAL
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import count_text, number_text, ratio_text, seconds_text, share_text
from ensembles.passes.summary import ANY_ORDER, Summary, ignoring_run
from ensembles.statistics.samples.counted_durations import CountedDurations

if TYPE_CHECKING:
    from ensembles.comparison.units import Key
    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


SAME_LEVEL = 0.13
"""Level of the equivalence test of one part. All parts must pass, and few degrees of freedom cost the test
some of its level: a move that just reaches the margin is called the same in about 10 %.
"""

IDENTICAL = "the durations of these runs have the same histogram"
"""Reason of "same" where single runs do not differ at all."""

FASTER, SLOWER, MIXED = "faster", "slower", "mixed"


def margins_of_parts(parts: Sequence[Component], margin: float) -> np.ndarray:
    """Return the largest change of each part that counts as no change, as the model measures it.

    Shares of the calls and the location of the tail may change so far that the mean of all calls moves by
    less than the margin: of a mode that is a hundred times slower, a hundredth of its share counts. A width
    may change so far that the mean of the slower half of the mode's calls moves by the margin.
    """
    mean_s = sum(part.weight * part.t_s for part in parts if part.what == PLACE)
    octaves = -np.log2(1 - margin)
    found = []
    for part in parts:
        if part.what in (WEIGHT, TAIL):
            apart_s = abs((part.mean_s or part.t_s) - mean_s)
            found.append(margin * min(1.0, mean_s / max(apart_s, 1e-300)))
        elif part.what == TAIL_PLACE:
            found.append(float(np.log2(1 + margin * mean_s / (part.weight * part.mean_s))))
        elif part.what == WIDTH:
            found.append(float(np.log2(1 + octaves / part.width_octaves)))
        else:
            found.append(octaves * (2 if part.what == RATIO else 1))
    return np.array(found)


def verdicts_of_parts(
    parts: Sequence[Component], fitted: Effects, adjusted_p: np.ndarray, margin: np.ndarray, level: float
) -> list[str]:
    """Return the verdict of each part.

    It is different if an adjusted p-value is significant, same if a move beyond the margin is excluded in all
    groups, and otherwise inconclusive.
    """
    moved: list[bool] = np.any(adjusted_p <= level, axis=0).tolist()
    within: list[bool] = np.all(fitted.is_within(margin, SAME_LEVEL), axis=0).tolist()
    return [DIFFERENT if moved[i] else SAME if within[i] else INCONCLUSIVE for i in range(len(parts))]


def decide(parts: Sequence[PartResult]) -> str:
    """Combine the verdicts of parts: one different part decides; same only if all are.

    Ratios of modes follow from their locations, and need not be shown to be the same.
    """
    if any(part.verdict == DIFFERENT for part in parts):
        return DIFFERENT
    return SAME if all(part.verdict == SAME for part in parts if part.what != RATIO) else INCONCLUSIVE


def direction_of(moves: Sequence[Move], margin: float, mean_ratios: Sequence[float]) -> str | None:
    """Return whether what moved became slower or faster; mixed: some of it each; None: nothing moved."""
    factors = [move.slowdown for move in moves if move.slowdown is not None]
    for chosen in (factors, [ratio for ratio in mean_ratios if factors]):
        far = [factor for factor in chosen if not is_alike(factor, margin)]
        slower, faster = (any(factor > 1 for factor in far or factors), any(f < 1 for f in far or factors))
        if slower != faster:
            return SLOWER if slower else FASTER
    return MIXED if factors else None


def enough_runs(
    parts: Sequence[Component], fitted: Effects, margin: np.ndarray, level: float, units: Units
) -> int | None:
    """Return how many runs per group would find or exclude a move beyond the margin of every part."""
    needed = [2]
    for i, part in enumerate(parts):
        if part.what == RATIO or not margin[i]:
            continue
        known = fitted.spread[:, i][np.isfinite(fitted.spread[:, i])]
        if len(known):
            spread = float(known.max())
        elif units.what != RUNS and part.what == PLACE:
            spread = float(np.log2(1 + ASSUMED_SPREAD))
        else:
            continue
        runs = runs_needed(spread, float(margin[i]), level, SAME_LEVEL)
        if runs is None:
            return None
        needed.append(runs)
    return max(needed)


def verdict_reason(
    verdict: str,
    units: Units,
    parts: Sequence[PartResult],
    shifts: Sequence[Shift],
    overlap: float | None,
    runs: int | None,
    margin: float,
    level: float,
    tested: int,
    is_main: bool = True,
) -> str:
    """Return the reason of a verdict in one sentence."""
    least = min(part.adjusted_p if part.adjusted_p is not None else 1.0 for part in parts)
    if verdict == DIFFERENT:
        return (
            f"the part that moved most has p = {least:.2g}, adjusted for "
            f"{count_text(tested, 'tested part')}; level {level:g}"
        )
    if verdict == SAME:
        return (
            f"no mode, and no mean by its shares and widths, moved by more than the margin of "
            f"{share_text(margin)} (equivalence test, level {SAME_LEVEL:g})"
        )
    would = f"would find or exclude a move of {share_text(margin)}"
    several = "" if runs is None or not is_main else f" ({runs} runs per group {would})"
    if units.what == RUNS:
        loose = [part.name for part in parts if part.verdict == INCONCLUSIVE and part.what != RATIO]
        more = f": about {runs} runs per group {would}" if runs is not None else ": more runs are needed"
        return (
            f"no part certainly moved (p = {least:.2g}, adjusted for {count_text(tested, 'tested part')}), "
            "but a move beyond the margin cannot be excluded for "
            f"{', '.join(loose)}{more if is_main else ''}"
        )
    why = "variation from run to run is unknown with one run per group"
    if not units.are_blocks:
        why += ", and so is that within the run, because its phases are unknown"
    elif not units.are_enough:
        sizes = " + ".join(map(str, units.sizes))
        why += f", and {sizes} nearly independent blocks do not show that within the run (at least "
        why += f"{SEVERAL} are needed)"
    return f"{_of_these_runs(shifts, overlap)}, but {why}: compare several runs per group{several}"


def _of_these_runs(shifts: Sequence[Shift], distance: float | None) -> str:
    """Say in which direction single runs differ, and whether their durations overlap."""
    said = []
    for shift in shifts:
        if shift.median_ratio is None:
            continue
        ratio = shift.median_ratio
        name = f"{shift.group}" if len(shifts) > 1 else "the second run"
        if f"{ratio:.3g}" == "1":
            said.append(f"{name} has the median of the first")
        elif shift.low is not None and shift.high is not None and shift.low <= 1 <= shift.high:
            said.append(f"the medians of {name} and the first do not differ significantly")
        else:
            longer, times = "longer" if ratio >= 1 else "shorter", number_text(ratio)
            said.append(f"calls of {name} are {longer}: their median is {times} times that of the first")
    text = "; ".join(said) or "the medians are unknown"
    return f"{text}, without any overlap of durations" if distance is not None and distance >= 1 else text


def verdict_notes(units: Units, verdict: str, shifts: Sequence[Shift], margin: float) -> list[str]:
    """Return the caveats of a verdict, one sentence each."""
    notes = []
    if verdict == SAME and any(
        shift.median_ratio is not None and not is_alike(shift.median_ratio, margin) for shift in shifts
    ):
        notes.append(
            "the median lies between modes, where a small change of their weights moves it far: the modes "
            "are more informative than its ratio"
        )
    if units.what != RUNS and verdict == DIFFERENT:
        notes.append(
            "one run per group: variation from run to run is unknown; p and intervals of durations assume "
            f"{share_text(ASSUMED_SPREAD)}, and if runs vary more, chance may explain the difference; "
            "compare several runs per group to know whether the program or the machine changed"
        )
    if units.what != RUNS and verdict == SAME:
        notes.append(
            "one run per group: these runs are the same, but the next ones may differ; intervals assume that "
            f"runs vary by {share_text(ASSUMED_SPREAD)}"
        )
    return notes


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of which the ratio of two runs is given."""


def quantile_ratios(before: CountedDurations, after: CountedDurations) -> list[QuantileRatio]:
    """Compute the ratios of the quantiles of two runs."""
    if not (before.total and after.total):
        return []
    pairs = zip(LEVELS, before.quantile_s(LEVELS).tolist(), after.quantile_s(LEVELS).tolist(), strict=True)
    return [QuantileRatio(level, a, b, b / a if a else None) for level, a, b in pairs]


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


class _Posts(Summary):
    """A mergeable summary: numbers of calls with a known flight, by layer and operation."""

    of_all_calls = empty_if_unknown = True
    columns = ("call", "flight")
    requires = ANY_ORDER

    def __init__(self) -> None:
        self.posts: dict[Key, int] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        counts = np.bincount(chunk.call[chunk.flight >= 0], minlength=len(chunk.calls))
        for number in np.flatnonzero(counts).tolist():
            call = chunk.calls[number]
            key = call.layer, call.op
            self.posts[key] = self.posts.get(key, 0) + int(counts[number])

    def merge(self, other: _Posts) -> None:
        """Add a summary of other events of the same run."""
        for key, count in other.posts.items():
            self.posts[key] = self.posts.get(key, 0) + count


def posts_of_run(run: Run, selection: Selection) -> dict[Key, int]:
    """Count the selected calls that only post a request, by layer and operation."""
    if not run.info.flights:
        return {}
    return run.summarize(ignoring_run(_Posts), selection=selection.for_run(run)).posts


def is_replaced(posts: Sequence[Sequence[tuple[int, int]]]) -> bool:
    """Test whether calls are posts in some groups and blocking in others.

    Examples
    --------
    >>> from ensembles.comparison.verdict import is_replaced
    >>> is_replaced([[(0, 80)], [(80, 80)]]), is_replaced([[(80, 80)], [(80, 80)]])
    (True, False)
    """
    are_posts = set()
    for group in posts:
        count, calls = (sum(column) for column in zip((0, 0), *group, strict=True))
        are_posts.add(calls > 0 and 2 * count >= calls)
    return len(are_posts) > 1


def with_replaced(
    found: Sequence[Comparison],
    replaced: Sequence[Key],
    posts: Sequence[Sequence[Mapping[Key, int]]],
    times_s: Sequence[Sequence[Mapping[Key, float]]],
    names: Sequence[str],
) -> list[Comparison]:
    """Judge kinds whose calls are posts in some groups only: by their time with the waits of their layer.

    The waits of the layer are part of that, and inconclusive alone.
    """
    layers = {layer: [op for one, op in replaced if one == layer] for layer, _ in replaced}
    result = []
    for one in found:
        key = one.layer or "", one.op or ""
        if key in replaced:
            kinds = [*((key[0], op) for op in layers[key[0]]), (key[0], "wait")]
            values = [[sum(run.get(kind, 0.0) for kind in kinds) for run in group] for group in times_s]
            blocked = make_total("blocked_time_s", values, one.margin, one.level)
            counts = [float(np.mean([run.get(key, 0) for run in group])) for group in posts]
            others = [f"{op}s" for op in layers[key[0]] if op != key[1]]
            what = " ".join(key)
            times = time_changes({what: values}, names, [what], of_whole_runs=True)[what]
            result.append(
                _judged(replace(one, times=times), blocked, counts, " and ".join([*others, "waits"]))
            )
        elif key[1] == "wait" and key[0] in layers:
            reason = f"these waits belong to the {' and '.join(layers[key[0]])} calls of {key[0]}"
            result.append(
                replace(one, verdict=INCONCLUSIVE, reason=reason, direction=None, moved=[], times=[])
            )
        else:
            result.append(one)
    return result


def _judged(found: Comparison, blocked: Total, posts: Sequence[float], others: str) -> Comparison:
    told = " and ".join(f"{number_text(value, 6)}" for value in posts[1:])
    times = " and ".join(seconds_text(value) for value in blocked.typical[1:])
    reason = (
        f"{told} calls only post a request instead of {number_text(posts[0], 6)}; with the "
        f"{others}, {times} instead of {seconds_text(blocked.typical[0])}"
    )
    ratios = [ratio for ratio in blocked.ratios if ratio is not None]
    beyond = {SLOWER if ratio > 1 else FASTER for ratio in ratios if not is_alike(ratio, found.margin)}
    return replace(
        found,
        verdict=DIFFERENT,
        reason=reason,
        direction=beyond.pop() if len(beyond) == 1 else None,
        moved=[],
        blocked=blocked,
        posts=list(posts),
    )
