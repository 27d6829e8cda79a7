"""Kept summaries of a run: in its ``trace.h5``, and in the cache of the user.

`Run.summarize` asks here before it reads events, and hands over what a pass computed. Kept is the result of a
whole pass only, over data without damage, of files that had stopped to change before the run was opened.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.files.names import split_launch
from ensembles.files.user_cache import is_switched_off, may_have_cache, read_cached, write_cached
from ensembles.model.errors import EnsioError
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.kept import (
    MOST_BYTES,
    NotKept,
    is_kept,
    key_of,
    name_of,
    restore,
    seal,
    to_bytes,
    unseal,
)
from ensembles.passes.summary import ignoring_run
from ensembles.run.headline import MOST_EVENTS, active_request, union_request
from ensembles.summaries.pyramid import levels_above, pyramid_request
from ensembles.summaries.raster import raster_request
from ensembles.summaries.raster_images import DrawnRaster, drawn_request
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.timegrid import CELLS

if TYPE_CHECKING:
    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.structure.phases.result import KeptPhases
    from ensembles.structure.phases.sampled_ranks import Search

LEAST_FILE_BYTES = 1 << 20
"""Smaller runs are not cached: reading them takes little more than finding what is kept."""

SETTLED_NS = 2_000_000_000
"""A file has to be older than the opening of the run by this time. File systems give times in steps, so that
a change within a step does not show."""

MOST_FILES = 1 << 14
"""Runs of more files are not cached."""

_SAMPLED_FILES = 1 << 10
_SAMPLE_BYTES = 1 << 12
"""Three samples of this length are part of the identity of each of the first files."""

_SEALED_BYTES = MOST_BYTES + 64
_PHASE_BYTES = 1 << 30
"""With less memory, phases are detected in fewer calls, and may be others."""


class KeptSummaries:
    """What is kept of one run.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._opened_ns = time.time_ns()

    def restore(
        self, requests: Mapping[str, SummaryRequest], selection: Selection | None, empty: SummaryGroup
    ) -> dict[str, SummaryRequest]:
        """Fill summaries with what is kept.

        Parameters
        ----------
        requests : mapping of str to SummaryRequest
        selection : Selection or None
            Selection of the pass.
        empty : SummaryGroup
            Empty summaries of the requests. Those that are kept are filled.

        Returns
        -------
        dict of str to SummaryRequest
            The others, which need a pass.
        """
        missing = {}
        for name, request in requests.items():
            if not self.find(request, empty[name], selection):
                empty.summaries[name] = request.make(self._run)
                missing[name] = request
        return missing

    def find(self, request: SummaryRequest, empty: Any, selection: Selection | None = None) -> bool:
        """Fill an empty object with what is kept of a request.

        Parameters
        ----------
        request : SummaryRequest
        empty : Summary, or another object whose class has ``results``
            If nothing is found, it is not usable any more.
        selection : Selection, optional
            Selection of the pass.

        Returns
        -------
        bool
            Whether it was found.
        """
        key = None if is_switched_off() or not is_kept(empty) else _key_of(request, selection)
        data = None if key is None else self._stored(key)
        if data is None:
            return False
        try:
            restore(empty, data, self._run)
        except NotKept:
            return False
        return True

    def keep(
        self, requests: Mapping[str, SummaryRequest], selection: Selection | None, filled: SummaryGroup
    ) -> None:
        """Keep the summaries of a pass over the whole run, if they can be kept.

        Parameters
        ----------
        requests : mapping of str to SummaryRequest
        selection : Selection or None
            Selection of the pass.
        filled : SummaryGroup
            Summaries that no calls but those of the pass were added to.
        """
        if not filled.left_out_ranks:
            self.put({request: filled[name] for name, request in requests.items()}, selection)

    def put(self, filled: Mapping[SummaryRequest, Any], selection: Selection | None = None) -> None:
        """Keep results by their requests, if they can be kept.

        Parameters
        ----------
        filled : mapping of SummaryRequest to Summary, or to another object whose class has ``results``
        selection : Selection, optional
            Selection of the pass.
        """
        if is_switched_off() or not self._run.reading.is_final:
            return
        keyed = [(_key_of(each, selection), summary) for each, summary in filled.items() if is_kept(summary)]
        # The files may have changed while they were read.
        if not keyed or self._identity is None or self._identity != self._identity_now():
            return
        for key, summary in keyed:
            with suppress(NotKept):
                if key is not None:
                    data = to_bytes(summary, self._run)
                    write_cached(name_of(self._identity, key), seal(self._identity, key, data))

    def _stored(self, key: str) -> bytes | None:
        """Return what is kept of a request: in the run's own file, else in the cache."""
        own = self._run.reading.source.kept(key)
        if own is not None or self._identity is None:
            return own
        sealed = read_cached(name_of(self._identity, key), _SEALED_BYTES)
        try:
            return None if sealed is None else unseal(self._identity, key, sealed)
        except NotKept:
            return None

    @cached_property
    def _identity(self) -> bytes | None:
        return self._identity_now()

    def _identity_now(self) -> bytes | None:
        """Return what identifies the files of the run and their content; None: they are not cached."""
        if self._run.reading.reopen is None or not may_have_cache():
            return None  # the events are not those of the path, or there is no place for results
        path, launch = split_launch(self._run.path)
        source = self._run.reading.source
        memory = min(self._run.reading.budget.memory_bytes, _PHASE_BYTES)
        digest = blake2b(f"{type(source).__name__} {launch} {memory}".encode(), digest_size=16)
        try:
            digest.update(_code_identity())
            size = self._add_files(digest, getattr(source, "path", path))
        except OSError:
            return None
        return digest.digest() if size >= LEAST_FILE_BYTES else None

    def _add_files(self, digest: blake2b, path: str) -> int:
        """Add the identities of the files; return their size in bytes, 0 if they may still change."""
        size = 0
        for number, name in enumerate(_files_of(path)):
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
                if number == MOST_FILES or changed_ns > self._opened_ns - SETTLED_NS:
                    return 0
                told = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                digest.update(f"{told}".encode())
                last = max(status.st_size - _SAMPLE_BYTES, 0)
                for place in sorted({0, last // 2, last}) if number < _SAMPLED_FILES else ():
                    digest.update(os.pread(descriptor, _SAMPLE_BYTES, place))
                size += status.st_size
            finally:
                os.close(descriptor)
        return size


def _key_of(request: SummaryRequest, selection: Selection | None) -> str | None:
    return key_of(request, None if selection is None or selection.selects_all else selection)


@cache
def _code_identity() -> bytes:
    """Return what identifies the installed code: readers and summaries of another one may give others."""
    digest = blake2b(digest_size=16)
    for folder, folders, names in os.walk(os.path.dirname(os.path.dirname(__file__))):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(os.path.join(folder, name))
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.digest()


def _files_of(path: str) -> Iterator[str]:
    """Yield the regular files of a run: the file, or all in the directory, in a fixed order."""
    if stat.S_ISREG(os.stat(path).st_mode):
        yield path
        return
    for folder, folders, names in os.walk(path, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            found = os.path.join(folder, name)
            if os.path.isfile(found):
                yield found


def _raise(error: OSError) -> None:
    raise error


_ROWS_AT_ONCE = 1 << 15
"""Events that are added to the summaries at a time: what they compute of them stays in the cache."""


def _ranks_of(rank: np.ndarray) -> list[int]:
    """Return the ranks in an ascending column."""
    if rank[0] == rank[-1]:
        return [int(rank[0])]
    ranks: list[int] = np.append(rank[0], rank[1:][rank[1:] != rank[:-1]]).tolist()
    return ranks


class KeptInFile:
    """Summaries that are filled while a run is collected, and kept in its ``trace.h5``.

    Parameters
    ----------
    run : Run
        The run as its recorder left it.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        is_wanted = not is_switched_off()
        self._requests = _wanted_of(run) if is_wanted else {}
        self._search, wanted = self._begun_search() if is_wanted else (None, {})
        self._group = SummaryGroup(self._requests | wanted, run)
        self._events = 0
        self._ranks: set[int] = set()

    def _begun_search(self) -> tuple[Search | None, dict[str, SummaryRequest]]:
        """Begin to search the phases of a long run; return the search and what it needs of all events."""
        from ensembles.structure.phases.detect import most_events_held
        from ensembles.structure.phases.result import AnnotatedPhases
        from ensembles.structure.phases.sampled_ranks import search_in_sample

        most_events = most_events_held(self._run)
        if self._run.reading.most_events <= most_events or AnnotatedPhases.from_regions(self._run.regions):
            return None, {}
        search = search_in_sample(self._run, None, most_events)
        try:
            return search, next(search)
        except EnsioError:  # a few tasks do not fit into memory
            return None, {}

    def _found_phases(self) -> dict[SummaryRequest, KeptPhases]:
        """Return the phases, if the search needs no second pass.

        The tasks that the search looks at depend on the number of events that are expected. The file has the
        exact number, with which the search would look at others.
        """
        from ensembles.structure.phases.detect import most_events_held, request_of_phases
        from ensembles.structure.phases.result import KeptPhases
        from ensembles.structure.phases.sampled_ranks import is_sample_of

        most_events = most_events_held(self._run)
        if self._search is None or not self._requests:
            return {}
        if not is_sample_of(self._run, most_events, self._events, len(self._ranks)):
            return {}
        try:
            self._search.send(self._group)
        except StopIteration as ended:
            return {request_of_phases(None, most_events): KeptPhases(ended.value)}
        return {}

    def watch(self, chunks: Iterator[Events]) -> Iterator[Events]:
        """Yield the chunks unchanged, and add them to the summaries.

        If a summary refuses an event, nothing is kept: the file is written anyway.
        """
        for chunk in chunks:
            self._events += len(chunk)
            self._ranks.update(_ranks_of(chunk.rank))
            for low in range(0, len(chunk), _ROWS_AT_ONCE):
                self._add(chunk.part(low, min(low + _ROWS_AT_ONCE, len(chunk))))
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
        """Return the summaries by name, the shortest first.

        Parameters
        ----------
        identity : bytes
            Of the file.
        most_bytes : int
            Most bytes of all.
        pyramid_bytes : int
            Most bytes of the levels of the pyramid; the coarse ones come first.
        """
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
        """Return the raster of the run and the levels of the pyramid, the coarse ones first, that fit.

        There is no raster if the finest level is as fine, and fits. What a trace diagram shows comes last.
        """
        if _PYRAMID not in self._requests:
            return {}
        finest = self._group[_PYRAMID]
        raster = finest.raster()
        coded = [
            self._coded({pyramid_request(level.level): level}, identity)
            for level in reversed([finest, *levels_above(finest)])
        ]
        if finest.cells > CELLS or sum(len(data) for each in coded for data in each.values()) > most_bytes:
            coded.insert(0, self._coded({raster_request(): raster}, identity))
        kept: dict[str, bytes] = {}
        for found in [*coded, self._coded({drawn_request(): DrawnRaster(finest.tasks, raster)}, identity)]:
            more_bytes = sum(map(len, found.values()))
            if not found or more_bytes > most_bytes:
                continue
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

_BOUNDS_OF_FEW = 8
"""The bound on the calls of spools that are not full may be so many times their number."""


def _wanted_of(run: Run) -> dict[str, SummaryRequest]:
    """Return the requests of ``ensio info`` and of the first pictures, where each call is added once."""
    from ensembles.run.information import sums_requests

    wanted = sums_requests(run)
    del wanted[_ACTIVE]  # a part of the rate
    if run.reading.most_events <= _BOUNDS_OF_FEW * MOST_EVENTS:
        wanted |= union_request()  # the file knows how many calls there are
    return wanted | {_RATE: SummaryRequest(ignoring_run(RateCurve)), _PYRAMID: pyramid_request()}
