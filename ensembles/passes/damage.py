"""Damage report: the damaged and unnamed events and rows that a pass over a run found."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ensembles.model.units import count_text, few


@dataclass(slots=True)
class DamageReport:
    """Counts of damaged events; reports of parts of a run can be merged."""

    # By path of a spool or job file, and kind of row: rows that are damaged, or were never completed.
    left_out: dict[tuple[str, str], int] = field(default_factory=dict)
    # unknown_calls, unknown_files: Events whose call or file number has no name.
    unknown_calls: int = 0
    unknown_files: int = 0

    def leave_out(self, path: str, count: int, kind: str = "event") -> None:
        """Count rows of a file that are left out."""
        if count:
            self.left_out[path, kind] = self.left_out.get((path, kind), 0) + count

    def merge(self, other: DamageReport) -> None:
        """Add the report of a pass over other events."""
        for (path, kind), count in other.left_out.items():
            self.leave_out(path, count, kind)
        self.unknown_calls += other.unknown_calls
        self.unknown_files += other.unknown_files

    @property
    def sentences(self) -> list[str]:
        """The notes of a run that describe the damage, one sentence each."""
        notes = [
            f"{os.path.basename(path)}: {count_text(count, kind)} left out as damaged or incomplete"
            for (path, kind), count in self.left_out.items()
        ]
        found = few(notes, "spools have events that are left out")
        if self.unknown_calls:
            found.append(f"{self.unknown_calls} calls are of functions without a name in the call tables")
        if self.unknown_files:
            found.append(f"{self.unknown_files} calls are on files without a name in the spools")
        return found
