"""Summary of all calls of a run: from summaries in job files and spools, and from the remaining events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ensembles.model.c_layout import JOB_CALL
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.units import count_text, few
from ensembles.readers.common.columns import empty_columns
from ensembles.readers.native.block_reader import BlockReader
from ensembles.readers.native.job_summary import Translation, read_job_summary
from ensembles.readers.native.process_summary import read_summary
from ensembles.readers.native.rank_assignment import Member
from ensembles.readers.native.spool import Spool, Window
from ensembles.readers.native.spool_bytes import JobSummary
from ensembles.readers.native.window_decoder import Decoding
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import COLUMNS, RankTable

_REST_EVENTS = 1 << 17
_LARGEST = 1 << 60
_ROWS = tuple(name for name in COLUMNS if name != "rank")
"""Columns of sums that both job files and cells have."""


class RunSummary:
    """The summaries of a run, read on demand."""

    def __init__(
        self, members: Sequence[Member], decodings: Sequence[Decoding], files: dict[str, int], origin_ns: int
    ) -> None:
        both = [(member.spool, decoding) for member, decoding in zip(members, decodings, strict=True)]
        self._own = [(spool, decoding) for spool, decoding in both if _adds_to_summary(spool)]
        self._rows = [
            (spool.call_rows, decoding)
            for spool, decoding in both
            if spool.call_rows is not None and len(spool.call_rows)
        ]
        self._of_jobs = _job_summaries(members, decodings, files, origin_ns)

    def read(self, metadata: RunMetadata) -> tuple[CellSummary, RankTable]:
        """Read the summary of all calls, and the table by rank and function."""
        summary, ranks = CellSummary(metadata.calls, metadata.files), RankTable(metadata.calls)
        notes: list[str] = []
        self._add_job_summaries(summary, metadata, notes)
        rows = [self._rows_of_jobs(metadata)]
        for spool, decoding in self._own:
            part, damaged = read_summary(spool, decoding, metadata.calls, metadata.files)
            summary.merge(part)
            rows.append(_with_rank({name: part.cells[name] for name in _ROWS}, decoding))
            if damaged:
                notes.append(_damaged_cells(spool.name, damaged))
        ranks.add_rows(
            metadata.calls, {name: np.concatenate([part[name] for part in rows]) for name in COLUMNS}
        )
        for sentence in few(notes, "spools have a damaged summary"):
            metadata.note(sentence)
        for events in self._rest(metadata):
            summary.add(events, ordinals_known=False)
            ranks.add(events)
        without_bin = int(summary.cells["without_bin"].sum())
        if without_bin:
            metadata.note(f"the histograms lack {count_text(without_bin, 'call')}: no room, or damaged bins")
        return summary, ranks

    def _add_job_summaries(self, summary: CellSummary, metadata: RunMetadata, notes: list[str]) -> None:
        for place, translation in self._of_jobs.items():
            try:
                part, damaged = read_job_summary(place, translation, metadata.calls, metadata.files)
            except EnsioError as error:
                metadata.note(f"{error}; sums and histograms do not include the calls in it")
                continue
            summary.merge(part)
            if damaged:
                notes.append(_damaged_cells(os.path.basename(place.path), damaged))

    def _rows_of_jobs(self, metadata: RunMetadata) -> dict[str, np.ndarray]:
        """Return the sums by rank and function of the processes in job files."""
        joined = np.frombuffer(b"".join([part.tobytes() for part, _ in self._rows]), JOB_CALL.dtype)
        lengths = np.array([len(part) for part, _ in self._rows], np.int64)
        call = np.empty(len(joined), np.int64)
        # Nearly always all processes have one table of calls.
        for numbers in {
            id(decoding.call_numbers): decoding.call_numbers for _, decoding in self._rows
        }.values():
            whose = [decoding.call_numbers is numbers for _, decoding in self._rows]
            mine = slice(None) if all(whose) else np.repeat(whose, lengths)
            call[mine] = np.take(numbers, joined["call"][mine], mode="clip")
        columns = {name: joined[name] for name in _ROWS}
        columns["call"] = call
        columns["rank"] = np.repeat([max(decoding.rank, 0) for _, decoding in self._rows], lengths)
        sound = joined["errors"] <= joined["count"]
        for name in _ROWS[1:]:
            sound &= joined[name] < _LARGEST
        if not sound.all():
            metadata.note(
                "a job file is damaged: sums of some ranks are left out, because their numbers are impossible"
            )
        return {name: column[sound].astype(np.int64) for name, column in columns.items()}

    def _rest(self, metadata: RunMetadata) -> Iterator[Events]:
        """Yield the events after the recorder's last update of the summary; their ordinals are unknown."""
        kept = BlockReader([_rest(spool, decoding) for spool, decoding in self._own])
        own = [(each, spool.scratch) for spool, each in self._own if not spool.job_path]
        scratch = BlockReader([_windows(*pair) for pair in own])
        for reader in (kept, scratch):
            while count := reader.read(columns := empty_columns(_REST_EVENTS), 0, _REST_EVENTS):
                columns = {name: column[:count] for name, column in columns.items()}
                yield Events(columns, metadata.calls, metadata.files)
        for sentence in scratch.flaws.sentences:  # those of the kept ones are found by passes over all events
            metadata.note(sentence)


def _adds_to_summary(spool: Spool) -> bool:
    """Test whether a process may have calls that no job file's summary includes."""
    if spool.job_path and spool.job_summary is not None:
        return False
    return bool(spool.cells or spool.windows or spool.coded or spool.pending)


def _rest(spool: Spool, decoding: Decoding) -> Decoding:
    """Select the events that the summary of the process does not include."""
    if spool.job_path:
        return replace(decoding, windows=[], coded=() if spool.is_summarised else spool.coded)
    return _windows(decoding, spool.windows)


def _windows(decoding: Decoding, windows: Sequence[Window]) -> Decoding:
    return replace(decoding, windows=[window.rest for window in windows], coded=())


def _job_summaries(
    members: Sequence[Member], decodings: Sequence[Decoding], files: dict[str, int], origin_ns: int
) -> dict[JobSummary, Translation]:
    """Return the summaries of the job files, and the translation of their ids."""
    ranks: dict[JobSummary, dict[int, tuple[int, int]]] = {}
    numbers: dict[JobSummary, np.ndarray] = {}
    for member, decoding in zip(members, decodings, strict=True):
        place = member.spool.job_summary
        if place is not None:
            ranks.setdefault(place, {})[max(member.spool.head.rank, 0)] = member.rank, member.first_thread
            numbers[place] = decoding.call_numbers
    return {
        place: Translation(numbers[place], files, ranks_of, origin_ns) for place, ranks_of in ranks.items()
    }


def _with_rank(rows: dict[str, np.ndarray], decoding: Decoding) -> dict[str, np.ndarray]:
    return rows | {"rank": np.full(len(rows["count"]), max(decoding.rank, 0))}


def _damaged_cells(name: str, count: int) -> str:
    cells = "1 cell of its summary is" if count == 1 else f"{count} cells of its summary are"
    return f"{name} is damaged: {cells} left out, because their numbers are impossible or missing"
