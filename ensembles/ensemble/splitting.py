"""Splitting the calls of an ensemble, unless a part of a call is known to take as long as a whole one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ensembles.model.errors import EnsioError
from ensembles.model.units import bytes_text

if TYPE_CHECKING:
    from ensembles.ensemble.calls import EnsembleCalls
    from ensembles.statistics.sums.consecutive_calls import ConsecutiveCalls
    from ensembles.statistics.sums.split import Split

LEAST_BYTES = 8192
"""Smaller calls cost their entry into the kernel or library and the work on their pages, not their bytes."""

_TRANSFERS = ("read", "write")


def split_of(ensemble: EnsembleCalls, calls: Sequence[int], tasks: int, level: float) -> Split:
    """Predict the split of an ensemble's calls, unless its data speak against what splitting assumes."""
    from ensembles.statistics.sums.split import predict_split

    known = (ensemble.sample, calls, tasks, consecutive_calls(ensemble), level)
    found = predict_split(*known, attributes=ensemble.calls, why_not=_reason_against(ensemble, calls))
    return replace(found, per=ensemble.per)


def consecutive_calls(ensemble: EnsembleCalls) -> ConsecutiveCalls | None:
    """Return the calls of each task in order; None: the task that made each call is unknown."""
    try:
        return ensemble.successive
    except EnsioError:
        return None


def _reason_against(ensemble: EnsembleCalls, calls: Sequence[int]) -> str | None:
    if max(calls) == 1 or ensemble.per != "call":
        return None
    if ensemble._why_not_split is not None:
        return ensemble._why_not_split()
    if ensemble.op not in (*_TRANSFERS, ""):
        return without_bytes([ensemble.op])
    if ensemble.durations_s is None or ensemble.bytes is None or not ensemble.op:
        return None
    if ensemble.n and not ensemble.bytes.any():
        return without_bytes([ensemble.op])
    return too_small(ensemble.n, int(ensemble.bytes.sum()))


def found_before(why: str | None) -> str | None:
    """Return a reason that was found before the run was left behind."""
    return why


def without_bytes(ops: Iterable[str]) -> str:
    """Say why calls that move no bytes cannot be split."""
    return (
        f"these calls ({', '.join(sorted(ops))}) move no bytes that smaller calls could share: splitting is "
        "predicted for reads and writes"
    )


def too_small(calls: int, moved: int) -> str | None:
    """Say why calls that move so many bytes are too small to be split; None: they are not."""
    if not calls or not 0 < moved < LEAST_BYTES * calls:
        return None
    return (
        f"calls of {bytes_text(round(moved / calls))} take a fixed time each, whatever their size, so that k "
        f"of them may take k times as long: splitting is predicted for calls of {bytes_text(LEAST_BYTES)} "
        "and more"
    )
