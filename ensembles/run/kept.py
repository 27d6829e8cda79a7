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
from typing import TYPE_CHECKING, Any

from ensembles.files.names import split_launch
from ensembles.files.user_cache import is_switched_off, may_have_cache, read_cached, write_cached
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.kept import (
    MOST_BYTES,
    SAMPLE_BYTES,
    NotKept,
    is_kept,
    key_of,
    name_of,
    restore,
    seal,
    to_bytes,
    unseal,
)

if TYPE_CHECKING:
    from ensembles.run.selection import Selection
    from ensembles.structure.recorded_run import RecordedRun

LEAST_FILE_BYTES = 1 << 20
"""Smaller runs are not cached: reading them takes little more than finding what is kept."""

SETTLED_NS = 2_000_000_000
"""A file has to be older than the opening of the run by this time. File systems give times in steps, so that
a change within a step does not show."""

MOST_FILES = 1 << 14
"""Runs of more files are not cached."""

_SAMPLED_FILES = 1 << 10
"""Three samples of this length are part of the identity of each of the first files."""

_SEALED_BYTES = MOST_BYTES + 64
_PHASE_BYTES = 1 << 30
"""With less memory, phases are detected in fewer calls, and may be others."""


class KeptSummaries:
    """What is kept of one run."""

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self._opened_ns = time.time_ns()

    def restore(
        self, requests: Mapping[str, SummaryRequest], selection: Selection | None, empty: SummaryGroup
    ) -> dict[str, SummaryRequest]:
        """Fill the empty summaries of requests of which results are kept."""
        missing = {}
        for name, request in requests.items():
            if not self.find(request, empty[name], selection):
                empty.summaries[name] = request.make(self._run)
                missing[name] = request
        return missing

    def find(self, request: SummaryRequest, empty: Any, selection: Selection | None = None) -> bool:
        """Fill an empty object with what is kept of a request."""
        if is_switched_off() or not is_kept(empty) or not (self._run.reading.source.kept or self._identity):
            return False
        key = _key_of(request, selection)
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
        """Keep the summaries of a pass over the whole run, to which no other calls were added."""
        if not filled.left_out_ranks:
            self.put({request: filled[name] for name, request in requests.items()}, selection)

    def put(self, filled: Mapping[SummaryRequest, Any], selection: Selection | None = None) -> None:
        """Keep results by their requests, if they can be kept: objects whose class has ``results``."""
        if is_switched_off() or not self._run.reading.is_final or self._identity is None:
            return
        keyed = [(_key_of(each, selection), summary) for each, summary in filled.items() if is_kept(summary)]
        # The files may have changed while they were read.
        if not keyed or self._identity != self._identity_now():
            return
        for key, summary in keyed:
            with suppress(NotKept):
                if key is not None:
                    data = to_bytes(summary, self._run)
                    write_cached(name_of(self._identity, key), seal(self._identity, key, data))

    def _stored(self, key: str) -> bytes | None:
        """Return what is kept of a request: in the run's own file, else in the cache."""
        in_files = self._run.reading.source.kept
        own = in_files(key) if in_files else None
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
        parts = [f"{type(source).__name__} {launch} {memory}".encode()]
        try:
            if self._add_files(parts, getattr(source, "path", path)) < LEAST_FILE_BYTES:
                return None
            return _digest_of([*parts, _code_identity()])
        except OSError:
            return None

    def _add_files(self, parts: list[bytes], path: str) -> int:
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
                parts.append(f"{told}".encode())
                last = max(status.st_size - SAMPLE_BYTES, 0)
                for place in sorted({0, last // 2, last}) if number < _SAMPLED_FILES else ():
                    parts.append(os.pread(descriptor, SAMPLE_BYTES, place))
                size += status.st_size
            finally:
                os.close(descriptor)
        return size


def _key_of(request: SummaryRequest, selection: Selection | None) -> str | None:
    return key_of(request, None if selection is None or selection.selects_all else selection)


@cache
def _code_identity() -> bytes:
    """Return what identifies the installed code: readers and summaries of another one may give others."""
    parts = []
    for folder, folders, names in os.walk(os.path.dirname(os.path.dirname(__file__))):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(os.path.join(folder, name))
            parts.append(f"{name} {status.st_size} {status.st_mtime_ns}".encode())
    return _digest_of(parts)


def _digest_of(parts: list[bytes]) -> bytes:
    from hashlib import blake2b  # with OpenSSL: not before a result is kept

    return blake2b(b"\0".join(parts), digest_size=16).digest()


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
