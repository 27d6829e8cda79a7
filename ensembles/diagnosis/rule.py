"""The protocol of a rule, which recognises one cause of slow I/O by its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ensembles.diagnosis.finding import Finding, NotApplicable
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run


class Rule(Protocol):
    """A rule for one cause of slow I/O: a module or an object.

    Attributes
    ----------
    ID : str
        Id of its findings.
    NEEDS : mapping of str to SummaryRequest
        Summaries by name. Rules that use the same name share the summary. All are filled in one pass.
    """

    @property
    def ID(self) -> str: ...

    @property
    def NEEDS(self) -> Mapping[str, SummaryRequest]: ...

    def preconditions(self, run: Run) -> Rule | None:
        """Check the metadata of a run, before its events are read."""

    def evaluate(self, run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
        """Evaluate the rule."""


def every_call_needed(run: Run) -> None:
    """Refuse runs that do not keep every call as an event."""
    try:
        run.reading.need(Holds.CALL_ORDER, "this cause shows in single calls")
    except EnsioError as error:
        raise NotApplicable(str(error)) from None
