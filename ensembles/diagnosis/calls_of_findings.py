"""The calls that a finding is about, as a selection of events: rows of the shared evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.evidence import classed_bytes, phases_of_calls, size_classes
from ensembles.model.distinct import numbered_together
from ensembles.run.selection import Selection

if TYPE_CHECKING:
    from ensembles.model.events import Events
    from ensembles.structure.phases.result import Phases

ROW = ("phase", "rank", "call", "size", "depth")
"""Columns by which the shared evidence (`ensembles.diagnosis.evidence.Evidence.calls`) adds up calls."""


@dataclass(frozen=True, eq=False)
class CallsOfRows:
    """The calls of some rows of the shared evidence: what `SelectedSites` takes as a selection."""

    base: Selection  # What is known besides, such as files
    rows: np.ndarray  # int64, shape (5, n): Columns `ROW` of the rows
    phases: Phases | None  # Phases of the run
    inside: bool | None = None  # Only calls inside others, or only outermost ones; None: both

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of events that it needs."""
        return tuple({*self.base.columns, "call", "rank", "requested", "moved", "start", "depth", "carried"})

    def mask(self, chunk: Events) -> np.ndarray:
        """Compute which events of a chunk are selected."""
        mask = self.base.mask(chunk) & np.isin(chunk.call, self.rows[ROW.index("call")])
        if self.inside is not None:
            mask &= chunk.outermost != self.inside
        at = np.flatnonzero(mask)
        phase = phases_of_calls(self.phases, chunk)[at]
        parts = (
            phase,
            chunk.rank[at],
            chunk.call[at],
            size_classes(classed_bytes(chunk)[at]),
            ~chunk.outermost[at],
        )
        rows = dict(zip(ROW, self.rows, strict=True))
        wanted, mine, _ = numbered_together(ROW, rows, dict(zip(ROW, parts, strict=True)))
        mask[at] = np.isin(mine, wanted)
        return mask
