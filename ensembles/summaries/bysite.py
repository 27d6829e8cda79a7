"""Totals of call sites: the places in the program that led to the calls.

Numbers of calls by call site, for several selections of events in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.calltable import SUM_COLUMNS, compute_call_sums
from ensembles.summaries.keyed_sums import sum_by_keys
from ensembles.summaries.nesting import Nesting
from ensembles.summaries.runtotals import shared_directions

if TYPE_CHECKING:
    from ensembles.model.events import Events


_TRANSFERS = ("read", "write")


@dataclass(slots=True)
class SiteCalls:
    """Totals of the calls of one function from one site."""

    # count, errors: Number of calls, and of failed calls.
    count: int = 0
    errors: int = 0
    bytes: int = 0  # Bytes read or written, without those that an enclosing call counts
    time_ns: int = 0  # Sum of durations
    exclusive_ns: int = 0  # The same without recorded calls inside
    max_ns: int = 0  # Longest duration

    def merge(self, other: SiteCalls) -> None:
        """Add the totals of further calls."""
        for name in ("count", "errors", "bytes", "time_ns", "exclusive_ns"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.max_ns = max(self.max_ns, other.max_ns)


@dataclass(slots=True)
class SiteTotals(SiteCalls):
    """Totals of one site."""

    number: int = 0  # Number of the site; 0: unknown
    calls: dict[Call, SiteCalls] = field(default_factory=dict)  # Totals by function
    place: str = ""  # Function and source line, as of `Run.by_site`; ``""``: not looked up

    @property
    def only_waits(self) -> bool:
        """Whether all calls wait for other tasks, or exchange messages."""
        return not is_io_of_calls(tuple(self.calls)).any()

    @property
    def io_ns(self) -> int:
        """Exclusive time of the calls that are I/O."""
        return sum(totals.exclusive_ns for call, totals in self.calls.items() if not call.waits_for_tasks)

    def share_of(self, io_ns: int) -> float | None:
        """Return its share of the time in I/O calls of all sites; None: it only waits, or there is no I/O."""
        return None if self.only_waits or not io_ns else self.io_ns / io_ns

    @property
    def counts_by_operation(self) -> dict[str, int]:
        """Numbers of calls by operation, the largest first."""
        by_op: Counter[str] = Counter()
        for call, totals in self.calls.items():
            by_op[call.op] += totals.count
        return dict(by_op.most_common())

    @property
    def operations(self) -> str:
        """Numbers of calls by operation, such as ``12 write, 1 close``."""
        return ", ".join(f"{count:,} {op}" for op, count in self.counts_by_operation.items())


class BySite(Summary):
    """A mergeable summary: the totals of each function at each call site.

    All chunks of a thread must be added to the same summary, in their order (`ensembles.summaries.nesting`).

    `rows`: by site and function.
    """

    columns = (*SUM_COLUMNS, "rank", "thread", "site")
    results = ("rows",)
    added_up = ("rows", "_nesting")
    result_types = (SiteCalls,)

    def __init__(self) -> None:
        self.rows: dict[tuple[int, Call], SiteCalls] = {}
        self._nesting = Nesting()

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion."""
        if not len(chunk):
            return
        inner_ns = self._nesting.inner_ns(chunk)
        if inner_ns is None and not chunk.site.any():
            self._add_without_sites(chunk)
            return
        found = sum_by_keys(
            {"site": chunk.site, "call": chunk.call},
            {
                "errors": chunk.moved < 0,
                "bytes": np.where(shared_directions(chunk) < 0, 0, chunk.moved),
                "time_ns": chunk.duration,
                "exclusive_ns": chunk.duration if inner_ns is None else chunk.duration - inner_ns,
            },
            most={"longest_ns": chunk.duration},
        )
        for place, function, *sums in zip(*(column.tolist() for column in found.values()), strict=True):
            self.rows.setdefault((place, chunk.calls[function]), SiteCalls()).merge(SiteCalls(*sums))

    def _add_without_sites(self, chunk: Events) -> None:
        """Add events of unknown sites, none of them inside another one, by the sums of the chunk."""
        sums = compute_call_sums(chunk)
        for function in sums.present.tolist():
            call = chunk.calls[function]
            time_ns = int(sums.time_ns[function])
            totals = SiteCalls(
                int(sums.count[function]),
                int(sums.errors[function]),
                int(sums.counted[function]) if call.op in _TRANSFERS else 0,
                time_ns,
                time_ns,
                int(sums.longest_ns[function]),
            )
            self.rows.setdefault((0, call), SiteCalls()).merge(totals)

    @property
    def sites(self) -> list[SiteTotals]:
        """Totals of each site that occurred, in the order of `grouped`."""
        return self.grouped(lambda number: number)

    def grouped(self, key: Callable[[int], Hashable]) -> list[SiteTotals]:
        """Return the totals of groups of sites, such as a source line, by exclusive time; waits last."""
        found: dict[Hashable, SiteTotals] = {}
        for (number, call), totals in sorted(self.rows.items()):
            site = found.setdefault(key(number), SiteTotals(number=number))
            site.merge(totals)
            site.calls.setdefault(call, SiteCalls()).merge(totals)
        for site in found.values():
            site.calls = dict(sorted(site.calls.items(), key=lambda row: (-row[1].exclusive_ns, row[0])))
        return sorted(found.values(), key=lambda site: (site.only_waits, -site.exclusive_ns, site.number))


class SitesByDuration(Summary):
    """A mergeable summary: the number of calls of each site in ranges of durations.

    `counts`: by range: number of calls by site.
    """

    of_all_calls = empty_if_unknown = True
    columns = ("duration", "flight", "site")
    requires = ANY_ORDER
    results = ("counts",)

    def __init__(self, cuts_ns: Sequence[float], quantity: str = "duration") -> None:
        self._quantity = quantity
        self._cuts_ns = np.array(cuts_ns, np.float64)
        self.counts: list[Counter[int]] = [Counter() for _ in range(len(cuts_ns) + 1)]

    def add(self, chunk: Events) -> None:
        """Add events."""
        place = np.searchsorted(self._cuts_ns, getattr(chunk, self._quantity))
        unique, count = np.unique(place << 16 | chunk.site, return_counts=True)
        for key, calls in zip(unique.tolist(), count.tolist(), strict=True):
            self.counts[key >> 16][key & 0xFFFF] += calls

    def merge(self, other: SitesByDuration) -> None:
        """Add a summary of other events of the same run."""
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine.update(theirs)


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


def _add(counts: dict[int, SiteCount], site: int, more: SiteCount) -> None:
    before = counts.get(site, SiteCount())
    counts[site] = SiteCount(before.calls + more.calls, before.time_ns + more.time_ns)
