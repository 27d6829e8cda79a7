"""Numbers of calls by call site, for several selections of events in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ensembles.passes.summary import ANY_ORDER, Summary

if TYPE_CHECKING:
    from ensembles.model.events import Events


class Selects(Protocol):
    """A selection of events, such as `ensembles.run.selection.Selection`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it needs."""
        ...

    def mask(self, chunk: Events) -> np.ndarray:
        """Compute which events of a chunk are selected."""
        ...


class SiteCount(NamedTuple):
    """Calls of a site."""

    calls: int = 0
    time_ns: int = 0  # Sum of their durations


class SelectedSites(Summary):
    """A mergeable summary: for each selection, the calls of each call site.

    `counts`: for each selection, by number of the site; 0: unknown.

    Examples
    --------
    >>> from functools import partial
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.run.selection import Selection
    >>> from ensembles.summaries.selected_sites import SelectedSites
    >>> run = en.open("ensio-ior")
    >>> wanted = [Selection.parse(op=op).for_run(run) for op in ("read", "write")]
    >>> [{n: each.calls for n, each in found.items()}
    ...  for found in run.summarize(ignoring_run(partial(SelectedSites, wanted))).counts]
    [{0: 160}, {0: 160}]
    """

    of_all_calls = empty_if_unknown = True
    requires = ANY_ORDER

    def __init__(self, selections: Sequence[Selects]) -> None:
        self._selections = selections
        self.counts: list[dict[int, SiteCount]] = [{} for _ in selections]

    @staticmethod
    def columns_of(selections: Sequence[Selects]) -> tuple[str, ...]:
        """Return the columns of events that these selections need."""
        return tuple({"site", "duration", *(name for each in selections for name in each.columns)})

    def add(self, chunk: Events) -> None:
        """Add events."""
        for counts, selection in zip(self.counts, self._selections, strict=True):
            mask = selection.mask(chunk)
            sites, place = np.unique(chunk.site[mask], return_inverse=True)
            times_ns = np.zeros(len(sites), np.int64)
            np.add.at(times_ns, place, chunk.duration[mask])
            calls = np.bincount(place, minlength=len(sites))
            for site, count, time_ns in zip(sites.tolist(), calls.tolist(), times_ns.tolist(), strict=True):
                _add(counts, site, SiteCount(count, time_ns))

    def merge(self, other: SelectedSites) -> None:
        """Add a summary of the same selections."""
        for counts, others in zip(self.counts, other.counts, strict=True):
            for site, count in others.items():
                _add(counts, site, count)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return selection, site, count and time of each row."""
        rows = [(i, site, *count) for i, counts in enumerate(self.counts) for site, count in counts.items()]
        table = np.array(sorted(rows), np.int64).reshape(-1, 4)
        return dict(zip(("selection", "site", "count", "time_ns"), table.T, strict=True))


def _add(counts: dict[int, SiteCount], site: int, more: SiteCount) -> None:
    before = counts.get(site, SiteCount())
    counts[site] = SiteCount(before.calls + more.calls, before.time_ns + more.time_ns)
