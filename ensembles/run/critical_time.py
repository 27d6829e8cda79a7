"""The time in I/O on the critical path as one number, which the files of a run keep."""

from __future__ import annotations

from ensembles.structure.phases.critical_path import CriticalIo


class CriticalTime(CriticalIo):
    """A mergeable summary: the time in I/O on the critical path alone, of which one number is kept."""

    results = ("io_s",)
    result_types = ()

    @property
    def io_s(self) -> float:
        """Time in I/O on the critical path."""
        return self.path().io_s if self._io_s is None else self._io_s

    @io_s.setter
    def io_s(self, kept_s: float) -> None:
        self._io_s = kept_s

    _io_s: float | None = None
