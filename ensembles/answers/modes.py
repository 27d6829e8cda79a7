"""The modes of call durations, and the places in the program that made the calls of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from ensembles.faces.answer import MOST_LISTED, NOTABLE_PART, Answer, PlainAnswer
from ensembles.model.levels import LITTLE
from ensembles.model.statement import Bars, Interval, Part, Statement, Table
from ensembles.model.units import MIB, NS_PER_S, share_text
from ensembles.passes.summary import ignoring_run
from ensembles.statistics.modes.modes import Modes
from ensembles.summaries.bysite import SitesByDuration

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


@dataclass(frozen=True)
class ModesAnswer(Modes, Answer):
    """The modes of an ensemble as text, table and HTML."""

    question = "modes"

    @property
    def unit(self) -> str:
        """Unit of the durations."""
        return "s/MiB" if self.per == "MiB" else "s"

    @property
    def parts(self) -> tuple[Part, ...]:
        """A title, a table, the test of unimodality, clusters, harmonics and sizes."""
        if self.refused:
            return ((Statement("modes.refused", {"why": self.refused}),),)
        turns = bool(self.turns is not None and self.turns.explain_modes and self.modes)
        found = {"count": len(self), "calls": self.n, "name": self.name, "is_turns": turns}
        found |= {"is_found": bool(self.modes), "is_none": not self.modes}
        headers = ["size", *(f"mode {number}" for number in range(1, len(self) + 1))]
        units = {"size": "", "calls": "count", **dict.fromkeys(headers[1:], "share to 0.1 %")}
        sizes = [(size.name, size.calls, *size.shares) for size in self.sizes]
        said = tuple(self._said())
        return ((Statement("modes.what", found),), self._table(), said, Table.of_rows("size", units, sizes))

    def _table(self) -> Table:
        """Tabulate the modes; columns of unknown numbers are left out."""
        per_mib = self.per == "MiB"
        units = {"mode": "count", "s per MiB" if per_mib else "duration": "s"}
        units |= {f"{100 * self.level:g} % interval": "s", "rate": "bytes/s"}
        units |= {"share of calls": "share and interval", "of time": "share to 0.1 %"}
        units |= {"width": "spread in log", "phases": "of all"}
        rows = [
            (
                number,
                mode.t_s,
                Interval(mode.low_s, mode.high_s),
                MIB / mode.t_s if per_mib else None,
                (mode.weight, mode.weight_low, mode.weight_high),
                mode.time_share,
                mode.width,
                None if mode.effective_phases is None else (mode.effective_phases, self.phases),
            )
            for number, mode in enumerate(self.modes, 1)
        ]
        return Table.of_rows("mode", units, rows, together=(2 + per_mib,))

    def _said(self) -> Iterator[Statement]:
        """Say whether there may be further modes, and what explains the modes."""
        clusters = len(self) + len(self.bumps) + len(self.spread)
        if clusters > 1:
            bound = "< 1e-6" if self.p_one_mode < 1e-6 else f"≤ {self.p_one_mode:.2g}"
            is_one = self.p_one_mode == 1.0
            yield Statement("modes.one_of_all_phases" if is_one else "modes.several", {"bound": bound})
        else:
            values = {"least": self.least_share, "is_few": self.least_share >= NOTABLE_PART}
            yield Statement("modes.one", values | {"is_known": not values["is_few"]})
        if self.resolution_s:
            yield Statement("modes.resolution", {"step_s": self.resolution_s, "unit": self.unit})
        one_each = (self.far_calls, self.harmonics, self.time_slices, self.fair_share, self.unsettled)
        for what in (self.turns, *self.bumps, *self.spread, *self.shoulders, *one_each):
            if what is not None:
                yield Statement("modes.further", {"how": str(what)})


def answer_modes(
    run: Run,
    selection: Selection,
    ensemble: Ensemble,
    limit_bytes_per_s: float | None = None,
    tasks: int | None = None,
) -> PlainAnswer:
    """Find the modes of an ensemble; see `ensembles.ensemble.ensemble.Ensemble.modes`."""
    modes = ModesAnswer(**vars(ensemble.modes(limit_bytes_per_s=limit_bytes_per_s, tasks=tasks)))
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
        named = [f"{share_text(share)} from {label}" for label, share in shares if share >= LITTLE]
        where = "; ".join(named) or "from many places"
        said.append(Statement("modes.sites", {"number": number, "t_s": mode["t_s"], "shares": where}))
    return PlainAnswer("modes", (*parts, tuple(said)), values)


def _sites_of_modes(run: Run, selection: Selection, modes: Modes) -> list[list[tuple[str, float]]]:
    """Return for each mode the call sites of its calls with their shares, the largest first."""
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
        shares.append([(label, count / total) for label, count in by_label.most_common(MOST_LISTED)])
    return shares if any(shares) else []
