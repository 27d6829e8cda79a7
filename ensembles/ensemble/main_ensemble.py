"""The ensemble of the calls that a selection chooses, or of the main ones of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from ensembles.ensemble.from_run import ensemble_from_run
from ensembles.ensemble.main_group import main_group
from ensembles.ensemble.splittable import Reason
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.run.selection import Selection

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.ensemble.from_run import Per
    from ensembles.model.filters import Quantity
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters


def main_ensemble(
    run: Run, selection: Selection, per: Per = "call", transfers: bool = False
) -> tuple[Selection, Ensemble]:
    """Make the ensemble of the calls that `main_group` chooses."""
    chosen, notes = main_group(run, selection, transfers or per == "MiB")
    ensemble = ensemble_from_run(run, chosen, per)
    note_left_out(ensemble, notes)
    if per == "call" and chosen.quantity == "duration":
        ensemble._why_not_split = Reason(run, chosen)
    return chosen, ensemble


def ensemble_of(
    run: Run, per: Per = "call", quantity: Quantity = "duration", **filters: Unpack[Filters]
) -> Ensemble:
    """Make the ensemble of filters, as `ensembles.Run.ensemble` documents it."""
    selection = Selection.parse(quantity=quantity, **filters).for_run(run, from_summary=True)
    ensemble = main_ensemble(run, selection, per)[1]
    refuse_nothing(run, selection, ensemble.n)
    return ensemble


def tasks_of(ensemble: Ensemble, otherwise: int = 1) -> int:
    """Return the number of tasks that make the calls of an ensemble, one of each of which `tail` is about."""
    if ensemble.rank is None or not ensemble.n:
        return otherwise
    return len(np.unique(ensemble.rank))


def note_left_out(ensemble: Ensemble, notes: Sequence[str]) -> None:
    """Let an ensemble, and what is computed from it, say which calls were left out (`main_group`)."""
    ensemble.notes[:0] = notes
    ensemble.left_out = tuple(notes)
