"""The events that a selection needs, as readers judge it: ranks, times, durations, functions, files, sizes.

A reader skips chunks that hold no such event. The selection itself examines every event that is read, so that
limits may be wider than its conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.spans import find_spans
from ensembles.passes.reading import ANYTHING, Contents, Ranges, ascending_ranges, set_of

if TYPE_CHECKING:
    from ensembles.model.regions import Spans
    from ensembles.run.selection import Selection
    from ensembles.structure.recorded_run import RecordedRun

MOST_RANGES = 64
"""More ranges are joined across the narrowest gaps: a reader compares every chunk with every range."""

_FIRST_NS = -(1 << 62)
"""No call starts before."""

MOST_FILES = 1 << 16
"""With more files, globs are matched with those of each chunk only: to match all of them takes too long."""


@dataclass(frozen=True)
class ReadLimits:
    """What a selection needs; as in `ensembles.passes.reading.ReadRequest`."""

    ranks: Ranges | None = None
    times_ns: Ranges | None = None
    contents: Contents = ANYTHING

    @property
    def are_none(self) -> bool:
        """Whether all events are needed."""
        return self == ReadLimits()


def limits_of(run: RecordedRun, selection: Selection | None) -> ReadLimits:
    """Find what a selection needs of a run.

    Examples
    --------
    >>> from ensembles.run.read_limits import limits_of
    >>> from ensembles.run.selection import Selection
    >>> run = en.open("ensio-ior")
    >>> limits = limits_of(run, Selection.parse(rank="0-3", time="1..2", size="1MiB"))
    >>> limits.ranks, limits.times_ns
    (((0, 3),), ((1000000000, 1999999999),))
    >>> limits.contents.sizes
    ((1048576, 1048576),)
    """
    if selection is None:
        return ReadLimits()
    ranks = selection.read_ranks
    if selection.ordinals is not None:  # they are counted among all calls of a rank
        return ReadLimits(ranks)
    times = None if selection.times_ns is None else ascending_ranges(selection.times_ns)
    if selection.spans is not None:
        ranks, times = _also(ranks, times, *_of_spans(selection.spans))
    if selection.phases is not None and run.phases is not None:
        ranks, times = _also(ranks, times, *run.phases.limits(selection.phases))
    under_way = None
    if selection.under_way_ns is not None:
        low, high = selection.under_way_ns
        times, under_way = _in_both(times, ((_FIRST_NS, high - 1),)), (low - 1, high)
    return ReadLimits(
        None if ranks is None else _joined(ranks),
        None if times is None else _joined(times),
        Contents(
            _calls_of(run, selection),
            _files_of(run, selection.file_globs),
            None if selection.sizes is None else ascending_ranges(selection.sizes),
            under_way,
            None if selection.durations_ns is None else min(low for low, _ in selection.durations_ns),
        ),
    )


def _calls_of(run: RecordedRun, selection: Selection) -> int | None:
    if selection.ops is None and selection.calls is None and selection.layers is None:
        return None
    return set_of(number for number, call in enumerate(run.calls) if selection.wants_call(call))


def _files_of(run: RecordedRun, globs: tuple[str, ...] | None) -> int | None:
    if globs is None or len(run.files) > MOST_FILES:
        return None
    return set_of(
        number for number, path in enumerate(run.files) if any(fnmatchcase(path, glob) for glob in globs)
    )


def _of_spans(spans: Spans) -> tuple[Ranges, Ranges]:
    rank, start, end = spans.joined()
    return find_spans(rank), _joined(
        ascending_ranges(list(zip(start.tolist(), (end - 1).tolist(), strict=True)))
    )


def _also(
    ranks: Ranges | None, times: Ranges | None, other_ranks: Ranges | None, other_times: Ranges | None
) -> tuple[Ranges | None, Ranges | None]:
    """Intersect ranks and times."""
    return _in_both(ranks, other_ranks), _in_both(times, other_times)


def _in_both(some: Ranges | None, other: Ranges | None) -> Ranges | None:
    """Intersect ranges; None stands for all numbers."""
    if some is None or other is None:
        return other if some is None else some
    both = ((max(a, c), min(b, d)) for a, b in some for c, d in other)
    return ascending_ranges([(low, high) for low, high in both if low <= high])


def _joined(ranges: Ranges) -> Ranges:
    """Join ranges until there are few."""
    if len(ranges) <= MOST_RANGES:
        return tuple(ranges)
    gaps = np.array([after[0] - before[1] for before, after in pairwise(ranges)])
    kept = np.sort(np.argsort(-gaps, kind="stable")[: MOST_RANGES - 1])
    begins = [0, *(kept + 1).tolist()]
    ends = [*kept.tolist(), len(ranges) - 1]
    return tuple((ranges[low][0], ranges[high][1]) for low, high in zip(begins, ends, strict=True))
