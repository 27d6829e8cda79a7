"""Steps of the collective calls of a run: communication, storage, waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensembles.passes.summary import ignoring_run
from ensembles.structure.collective_steps import CollectiveStepTable, step_table
from ensembles.summaries.collective_steps import CollectiveSteps

if TYPE_CHECKING:
    from ensembles.run.run import Run


def collective_steps(run: Run) -> CollectiveStepTable | None:
    """Divide the time of the collective calls of MPI-IO into steps.

    Returns
    -------
    CollectiveStepTable or None
        As ``collective_steps`` of ``ensio phases --json``. None: there are no collective calls, or not all
        calls are events.

    Raises
    ------
    EnsioError
        A file of the run cannot be read any more.

    Examples
    --------
    >>> from ensembles.run.collective_steps import collective_steps
    >>> collective_steps(en.open("ensio-ior")) is None  # it makes no collective calls
    True
    """
    found: CollectiveSteps | None = run.summarize(ignoring_run(CollectiveSteps))
    return None if found is None else step_table(found, run.info.clock_error_ns, run.info.crowded_text)
