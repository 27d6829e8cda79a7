"""Damage report: the damaged and unnamed events that a pass over a run found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ensembles.model.units import few


@dataclass(slots=True)
class DamageReport:
    """Counts of damaged events; reports of parts of a run can be merged.

    Attributes
    ----------
    damaged : dict of str to int
        By path of a spool: events with impossible times or sizes, which are left out.
    lost : dict of str to int
        By path of a job file: events in damaged blocks.
    unknown_calls, unknown_files : int
        Events whose call or file number has no name.

    Examples
    --------
    >>> from ensembles.passes.damage import DamageReport
    >>> report = DamageReport(unknown_calls=2)
    >>> report.merge(DamageReport(unknown_calls=3))
    >>> report.sentences
    ['5 calls are of functions without a name in the call tables']
    """

    damaged: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    unknown_calls: int = 0
    unknown_files: int = 0

    def merge(self, other: DamageReport) -> None:
        """Add the report of a pass over other events."""
        _add(self.damaged, other.damaged)
        _add(self.lost, other.lost)
        self.unknown_calls += other.unknown_calls
        self.unknown_files += other.unknown_files

    @property
    def sentences(self) -> list[str]:
        """The notes of a run that describe the damage, one sentence each."""
        notes = []
        for path, count in self.damaged.items():
            events = "1 event is" if count == 1 else f"{count} events are"
            notes.append(
                f"{os.path.basename(path)} is damaged: {events} left out for impossible times or sizes"
            )
        for path, count in self.lost.items():
            notes.append(f"{os.path.basename(path)} is damaged: {count} events in it cannot be read")
        found = few(notes, "spools have events with impossible times or sizes")
        if self.unknown_calls:
            found.append(f"{self.unknown_calls} calls are of functions without a name in the call tables")
        if self.unknown_files:
            found.append(f"{self.unknown_files} calls are on files without a name in the spools")
        return found


def _add(mine: dict[str, int], theirs: Mapping[str, int]) -> None:
    for path, count in theirs.items():
        mine[path] = mine.get(path, 0) + count
