"""The modes of call durations, and the places in the program that made the calls of each."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from ensembles.faces.answer import PlainAnswer
from ensembles.model.statement import Bars, Part, Statement
from ensembles.model.units import NS_PER_S, share_text
from ensembles.passes.summary import ignoring_run
from ensembles.summaries.bysite import SitesByDuration

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.statistics.modes.modes import Modes

_MOST_SITES = 5
_LEAST_SHARE = 0.05


def answer_modes(
    run: Run,
    selection: Selection,
    ensemble: Ensemble,
    limit_bytes_per_s: float | None = None,
    tasks: int | None = None,
) -> PlainAnswer:
    """Find the modes of an ensemble; see `ensembles.ensemble.ensemble.Ensemble.modes`.

    Parameters
    ----------
    limit_bytes_per_s, tasks : float and int, optional
        For a comparison with the fair share of a task.
    """
    modes = ensemble.modes(limit_bytes_per_s=limit_bytes_per_s, tasks=tasks)
    values = {**modes.to_json(), "run": run.path, "per": ensemble.per}
    values |= {"quantity": selection.quantity} if selection.quantity != "duration" else {}
    parts: list[Part] = list(modes.parts)
    if not modes.refused:
        marks_s = [mode.t_s for mode in modes.modes]
        kind = {"is_per_mib": modes.per == "MiB", "is_per_call": modes.per == "call"}
        caption = Statement("modes.bars", {**kind, "has_marks": bool(marks_s)})
        parts[1:1] = [Bars(lambda bins: ensemble.histogram(bins=bins), ensemble.n, marks_s, caption)]
    said = []
    sites = _sites_of_modes(run, selection, modes)
    for number, (mode, shares) in enumerate(zip(values["modes"], sites, strict=False), 1):
        mode["sites"] = [{"label": label, "share": share} for label, share in shares]
        named = [f"{share_text(share)} from {label}" for label, share in shares if share >= _LEAST_SHARE]
        where = "; ".join(named) or "from many places"
        said.append(Statement("modes.sites", {"number": number, "t_s": mode["t_s"], "shares": where}))
    return PlainAnswer("modes", (*parts, tuple(said)), values)


def _sites_of_modes(run: Run, selection: Selection, modes: Modes) -> list[list[tuple[str, float]]]:
    """Return for each mode the call sites of its calls with their shares, the largest first.

    A call belongs to the mode whose duration is nearest on a logarithmic scale. Without call sites, or if not
    every call is an event, the list is empty.
    """
    if len(run.info.sites) < 2 or not modes.modes or selection.per_byte:
        return []
    places = [mode.t_s * NS_PER_S for mode in modes.modes]
    cuts = [(one * other) ** 0.5 for one, other in pairwise(places)]
    found = run.summarize(
        ignoring_run(partial(SitesByDuration, cuts, selection.quantity)), selection=selection
    )
    shares = []
    for counts in found.counts:
        by_label: Counter[str] = Counter()
        for site, count in counts.items():
            by_label[run.info.label_of_site(site)] += count
        total = max(by_label.total(), 1)
        shares.append([(label, count / total) for label, count in by_label.most_common(_MOST_SITES)])
    return shares if any(shares) else []
