"""What a rule is: something that knows one cause of slow I/O, and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ensembles.diagnosis.finding import Finding
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run


class NotApplicable(Exception):
    """Raised by a rule where the run does not tell what it needs; the text is the sentence for people."""


class Rule(Protocol):
    """One cause of slow I/O: a module or an object with these.

    Attributes
    ----------
    ID : str
        The id of its findings.
    NEEDS : mapping of str to SummaryRequest
        Summaries by name. Rules that name the same one share it, and all are filled in one pass.
    """

    @property
    def ID(self) -> str: ...

    @property
    def NEEDS(self) -> Mapping[str, SummaryRequest]: ...

    def preconditions(self, run: Run) -> None:
        """Look at the run's metadata, before anything is read.

        Raises
        ------
        CannotSay
            It does not tell what the rule needs.
        """

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """The findings: mostly none or one, for what concerns many files or tasks is one finding.

        Parameters
        ----------
        run : Run
        summaries : mapping of str to summary
            Those that it needs.

        Raises
        ------
        CannotSay
            The calls do not tell what the rule needs.
        """


def every_call_needed(run: Run, what: str) -> None:
    """Refuse runs that do not keep every call as an event.

    Parameters
    ----------
    run : Run
    what : str
        What single calls are needed for, as in "the order of reads".

    Raises
    ------
    CannotSay
        Some calls are known only by what they add up to.
    """
    if run.mode in ("profile", "tail"):
        raise NotApplicable(
            f"the run was recorded in mode {run.mode}, which does not keep every call, and {what} is told "
            "only by all of them: record again with ensio run --mode trace"
        )
    if run.dropped_events:
        raise NotApplicable(
            f"{run.dropped_events:,} calls were not recorded one by one (ensio info says why), and {what} is "
            "told only by all of them: record again with more room (ENSIO_MAX_BYTES)"
        )
    if not run.has_all_events:
        raise NotApplicable(f"this trace holds sums, not single calls, and {what} is told only by these")
