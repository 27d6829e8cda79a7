"""The one pass over a run's events that fills the summaries of all rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ensembles.events import Events

if TYPE_CHECKING:
    from ensembles.budget import Budget
    from ensembles.diagnosis.rule import Need
    from ensembles.run import Run


class Piece(NamedTuple):
    """Events, and whether they are all calls of their tasks."""

    events: Events
    whole: bool


class Gathered:
    """Summaries by name, filled together.

    Parameters
    ----------
    needs : mapping of str to Need
    run : Run

    Attributes
    ----------
    summaries : dict of str to summary
    left_out : int
        Tasks with more calls than may be held at once: summaries that need whole tasks are without them.
    """

    def __init__(self, needs: Mapping[str, Need], run: Run) -> None:
        self.summaries: dict[str, Any] = {name: need.make(run) for name, need in needs.items()}
        self.left_out = 0
        self._last_left_out = -1

    def prepared(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Piece]:
        """The events of a pass, those of a task together as far as memory allows."""
        for piece in whole_ranks(chunks, budget.held_events):
            if not piece.whole:
                rank = int(piece.events.rank[0])
                self.left_out += rank != self._last_left_out
                self._last_left_out = rank
            yield piece

    def add(self, piece: Piece) -> None:
        """Add events to the summaries."""
        for summary in self.summaries.values():
            if piece.whole or not getattr(summary, "whole_ranks", False):
                summary.add(piece.events)

    def merge(self, other: Gathered) -> None:
        """Add those of other ranks."""
        self.left_out += other.left_out
        for name, summary in self.summaries.items():
            summary.merge(other.summaries[name])


def whole_ranks(chunks: Iterator[Events], most_events: int) -> Iterator[Piece]:
    """The same events, cut so that no task is in two pieces, unless it has more than `most_events`.

    Parameters
    ----------
    chunks : iterator of Events
        In the order of ranks.
    most_events : int
    """
    held: list[Events] = []
    too_many: int | None = None  # the rank that is given in pieces
    for chunk in chunks:
        if not len(chunk):
            continue
        current = int(held[0].rank[0]) if held else too_many
        begin = 0 if current is None else int(np.searchsorted(chunk.rank, current, side="right"))
        if begin and too_many is not None:
            yield Piece(chunk.part(0, begin), whole=False)
        elif begin:
            held.append(chunk.part(0, begin))
            if sum(map(len, held)) > most_events:
                too_many = current
                yield from (Piece(part, whole=False) for part in held)
                held = []
        if begin == len(chunk):
            continue
        if held:
            yield Piece(_joined(held), whole=True)
        too_many = None
        last = int(np.searchsorted(chunk.rank, chunk.rank[-1]))
        if last > begin:
            yield Piece(chunk.part(begin, last), whole=True)
        held = [chunk.part(max(last, begin), len(chunk))]
    if held:
        yield Piece(_joined(held), whole=True)


def _joined(parts: list[Events]) -> Events:
    """Events with the columns that their parts have."""
    if len(parts) == 1:
        return parts[0]
    names = [name for name in parts[0].__slots__ if hasattr(parts[0], name) and not name.startswith("_")]
    columns = {
        n: np.concatenate([getattr(p, n) for p in parts]) for n in names if n not in ("calls", "files")
    }
    return Events.partly(columns, parts[0].calls, parts[0].files)
