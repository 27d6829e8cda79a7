"""Summaries that are kept in ``trace.h5``, filled while a run is collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.files.user_cache import is_switched_off
from ensembles.model.errors import EnsioError
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.kept import NotKept, key_of, name_of, seal, to_bytes
from ensembles.passes.summary import ignoring_run
from ensembles.run.headline import active_request, path_request
from ensembles.run.information import sums_requests
from ensembles.structure.phases.detect import most_events_held, request_of_phases, search_phases
from ensembles.structure.phases.result import AnnotatedPhases, KeptPhases
from ensembles.structure.phases.sampled_ranks import is_sample_of
from ensembles.summaries.pyramid import levels_above, pyramid_request
from ensembles.summaries.raster import DrawnRaster, drawn_request, raster_request
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.timegrid import CELLS

if TYPE_CHECKING:
    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.structure.phases.sampled_ranks import Search


def _ranks_of(rank: np.ndarray) -> list[int]:
    """Return the ranks in an ascending column."""
    if rank[0] == rank[-1]:
        return [int(rank[0])]
    ranks: list[int] = np.append(rank[0], rank[1:][rank[1:] != rank[:-1]]).tolist()
    return ranks


class KeptInFile:
    """Summaries that are filled while a run is collected, and kept in its ``trace.h5``."""

    def __init__(self, run: Run) -> None:
        self._run = run
        is_wanted = not is_switched_off()
        self._requests = _wanted_of(run) if is_wanted else {}
        self._search, wanted = self._begun_search() if is_wanted else (None, {})
        self._group = SummaryGroup(self._requests | wanted, run)
        self._events = 0
        self._ranks: set[int] = set()

    def _begun_search(self) -> tuple[Search | None, dict[str, SummaryRequest]]:
        """Begin to search the phases; return the search and what it needs of all events."""
        if AnnotatedPhases.from_regions(self._run.regions) or not self._run.reading.has_phases:
            return None, {}
        search = search_phases(self._run, None, most_events_held(self._run))
        try:
            return search, next(search)
        except EnsioError:  # a few tasks do not fit into memory
            return None, {}

    def _found_phases(self) -> dict[SummaryRequest, Any]:
        """Return the phases, if the search needs no second pass, and of a short run its critical path.

        The tasks that the search looks at depend on the number of events that are expected. The file has the
        exact number, with which the search would look at others.
        """
        run, most_events = self._run, most_events_held(self._run)
        if self._search is None or not self._requests:
            return {}
        is_sample = run.reading.most_events > most_events
        if is_sample and not is_sample_of(run, most_events, self._events, len(self._ranks)):
            return {}
        try:
            self._search.send(self._group)
            return {}
        except StopIteration as ended:
            run.__dict__["phases"] = ended.value
        found: dict[SummaryRequest, Any] = {request_of_phases(None, most_events): KeptPhases(run.phases)}
        wanted = path_request(run)
        wanted = {name: request for name, request in wanted.items() if name not in self._requests}
        return found | {request: run.summarize({name: request})[name] for name, request in wanted.items()}

    def watch(self, chunks: Iterator[Events]) -> Iterator[Events]:
        """Yield the chunks unchanged, and add them to the summaries.

        If a summary refuses an event, nothing is kept: the file is written anyway.
        """
        for chunk in chunks:
            self._events += len(chunk)
            self._ranks.update(_ranks_of(chunk.rank))
            for low in range(0, len(chunk), ROWS_AT_ONCE):
                self._add(chunk.part(low, min(low + ROWS_AT_ONCE, len(chunk))))
            yield chunk
            del chunk  # so that its memory can be reused for the next one
        for summary in self._group.summaries.values():
            summary.finalize()

    def _add(self, chunk: Events) -> None:
        try:
            for summary in self._group.summaries.values():
                summary.add(chunk)
        except EnsioError:
            self._group, self._requests = SummaryGroup({}, self._run), {}

    def sealed(self, identity: bytes, most_bytes: int, pyramid_bytes: int) -> dict[str, bytes]:
        """Return the summaries by name, the shortest first."""
        filled = {request: self._group[name] for name, request in self._requests.items() if name != _PYRAMID}
        if _RATE in self._requests:
            filled[active_request()] = self._group[_RATE].active
        found = self._coded(filled | self._found_phases(), identity)
        kept = {}
        for name in sorted(found, key=lambda name: len(found[name])):
            if len(found[name]) <= most_bytes:
                most_bytes -= len(found[name])
                kept[name] = found[name]
        return kept | self._sealed_levels(identity, min(most_bytes, pyramid_bytes))

    def _sealed_levels(self, identity: bytes, most_bytes: int) -> dict[str, bytes]:
        """Return what the first picture draws, the raster and levels of the pyramid, coarse ones first."""
        if _PYRAMID not in self._requests:
            return {}
        finest = self._group[_PYRAMID]
        raster, coded_bytes = finest.raster(), 0
        coded: list[dict[str, bytes]] = []
        for level in reversed([finest, *levels_above(finest)]):
            if coded_bytes <= most_bytes:  # finer levels are longer
                coded.append(self._coded({pyramid_request(level.level): level}, identity))
                coded_bytes += sum(map(len, coded[-1].values()))
        if finest.cells > CELLS or coded_bytes > most_bytes:
            coded.insert(0, self._coded({raster_request(): raster}, identity))
        kept: dict[str, bytes] = {}
        for found in [self._coded({drawn_request(): DrawnRaster(finest.tasks, raster)}, identity), *coded]:
            more_bytes = sum(map(len, found.values()))
            if found and more_bytes <= most_bytes:
                most_bytes -= more_bytes
                kept |= found
        return kept

    def _coded(self, filled: Mapping[SummaryRequest, Any], identity: bytes) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for request, result in filled.items():
            key = key_of(request)
            with suppress(NotKept):
                assert key is not None  # functions and classes of modules
                found[name_of(identity, key)] = seal(identity, key, to_bytes(result, self._run))
        return found


_PYRAMID, _RATE, _ACTIVE = "pyramid", "rate", "active"
"""Names of requests."""


def _wanted_of(run: Run) -> dict[str, SummaryRequest]:
    """Return the requests of ``ensio info`` and of the first pictures, where each call is added once."""
    wanted = sums_requests(run)
    del wanted[_ACTIVE]  # a part of the rate
    return wanted | {_RATE: SummaryRequest(ignoring_run(RateCurve)), _PYRAMID: pyramid_request()}
