"""The ensemble of the calls that a selection chooses, or of the main ones of them.

Splitting assumes that k calls of a k-th of the bytes could take as long as one: this is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

import numpy as np

from ensembles.ensemble.from_run import ensemble_from_run, single_calls
from ensembles.ensemble.main_group import call_groups, main_group
from ensembles.ensemble.splitting import too_small, without_bytes
from ensembles.model.metadata import OPEN_FLAGS, WAITS_FOR_DEVICE
from ensembles.model.units import share_text
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
        ensemble._why_not_split = partial(why_not_split, run, chosen)
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


def why_not_split(run: Run, selection: Selection) -> str | None:
    """Say why a part of these calls would take as long as a whole one."""
    found = call_groups(run, selection)
    groups = [group for group in found if group.op != "wait"] or found
    calls, moved = sum(group.calls for group in groups), sum(group.bytes for group in groups)
    if calls and not moved:
        return without_bytes({group.op for group in groups})
    small = too_small(calls, moved)
    if small is not None:
        return small
    share, flags = _waiting_for_device(run, selection, {group.op for group in groups})
    if share > 0.5:
        return (
            f"{share_text(share)} of the time of these writes is in files opened with {flags}: each waits "
            "for the device, whatever its size, so that k of them may take k times as long"
        )
    return None


def _waiting_for_device(run: Run, selection: Selection, ops: set[str]) -> tuple[float, str]:
    """Return the share of the time of writes in files with O_SYNC or O_DSYNC, and these flags."""
    facts = {path: facts.get(OPEN_FLAGS, "") for path, facts in run.info.file_facts.items()}
    flagged = {path: flags for path, flags in facts.items() if "SYNC" in flags}
    if not flagged or ops != {"write"}:
        return 0.0, ""
    text = " and ".join(sorted(set(flagged.values())))
    events = single_calls(run, selection, ("carried", "file", "duration"))
    if events is None:
        return (1.0 if len(flagged) >= len(run.files) - 1 else 0.0), text
    whole = int(events.duration.sum())
    if not whole:
        return 0.0, text
    numbers = [number for number, path in enumerate(run.files) if path in flagged]
    waits = np.isin(events.file, numbers) & ((events.carried & WAITS_FOR_DEVICE) > 0)
    return float(events.duration[waits].sum()) / whole, text
