"""Causes that one run cannot show by itself: the diagnosis says what to record or vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.rule import NotApplicable
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run


@dataclass(frozen=True)
class CannotTell:
    """A cause of which one run holds no evidence that would distinguish it from others.

    Attributes
    ----------
    ID : str
    reason : str
        What to do, in one sentence.
    """

    ID: str
    reason: str
    NEEDS: Mapping[str, SummaryRequest] = field(default_factory=dict)

    def preconditions(self, run: Run) -> None:
        """Refuse every run."""
        raise NotApplicable(self.reason)

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """Return nothing."""
        return []


RULES = (
    CannotTell(
        "misaligned-requests",
        "records of one size have ends of one kind: record the same program with records "
        "that are multiples of the stripe size, and compare the runs (ensio compare)",
    ),
    CannotTell(
        "close-cost", "a close that follows writes also flushes them: record a run that keeps its files open"
    ),
    CannotTell(
        "cache-cliff",
        "a full cache and slow targets look alike: record a run with half the bytes for each node",
    ),
    CannotTell(
        "interference",
        "the load of other jobs is not in a trace: record the same run again, or add it to a "
        "history (ensio history)",
    ),
    CannotTell(
        "too-many-writers", "every phase has the same writers: record runs with half and a quarter of them"
    ),
    CannotTell(
        "single-large-call", "ensio split predicts what more and smaller calls between barriers would gain"
    ),
    CannotTell(
        "node-serialisation", "it moves the same bytes in the same time; ensio modes shows its harmonics"
    ),
)
