"""Calls that only post a non-blocking request, compared with blocking calls: their waits belong to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.comparison.model import is_alike
from ensembles.comparison.report import DIFFERENT, INCONCLUSIVE, Comparison
from ensembles.comparison.times import time_changes
from ensembles.comparison.totals import Total, make_total
from ensembles.comparison.verdict import FASTER, SLOWER
from ensembles.model.units import number_text, seconds_text
from ensembles.passes.summary import ANY_ORDER, Summary, ignoring_run

if TYPE_CHECKING:
    from ensembles.comparison.call_groups import Key
    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

MOST = 0.5
"""Share of posts from which on the calls of a kind count as posts."""


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
    >>> from ensembles.comparison.posts import is_replaced
    >>> is_replaced([[(0, 80)], [(80, 80)]]), is_replaced([[(80, 80)], [(80, 80)]])
    (True, False)
    """
    are_posts = set()
    for group in posts:
        count, calls = (sum(column) for column in zip((0, 0), *group, strict=True))
        are_posts.add(calls > 0 and count >= MOST * calls)
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
