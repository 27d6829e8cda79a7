"""Text and HTML representations of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ensembles.model.notebook_html import bars_svg, escaped, facts_html, notes_html
from ensembles.model.units import count_text, number_text, seconds_text

if TYPE_CHECKING:
    from ensembles.ensemble.calls import EnsembleCalls
    from ensembles.statistics.moments.moments import Moments
    from ensembles.statistics.moments.quantiles import Quantiles

    Noted = TypeVar("Noted", Moments, Quantiles)

_MOST_BARS = 40
_COLOURS = {"write": "#1f77b4", "read": "#d62728", "sync": "#a68678"} | dict.fromkeys(
    ("open", "close", "seek", "meta"), "#ff7f0e"
)
"""As in pictures, by a part of the name."""


def _facts(ensemble: EnsembleCalls) -> list[tuple[str, str]]:
    sample, rates = ensemble.counted, ensemble.per == "MiB"
    facts = [("calls", f"{ensemble.n:,}")]
    if ensemble.rank is not None and ensemble.n:
        facts.append(("tasks", f"{len(np.unique(ensemble.rank)):,}"))
    facts.append(("phases", f"{len(sample.phase):,}" if sample.phases_known else "not known"))
    if ensemble.n:
        from ensembles.statistics.moments.quantiles import quantile_s

        per = "/MiB" if rates else ""
        for what, value_s in (
            ("shortest", sample.min_s.min()),
            ("median", quantile_s(ensemble.atoms, [0.5])[0]),
            ("longest", sample.max_s.max()),
        ):
            rate = f" ({number_text(1 / value_s, 4)} MiB/s)" if rates and value_s > 0 else ""
            facts.append((what, f"{seconds_text(float(value_s))}{per}{rate}"))
    return facts


def ensemble_text(ensemble: EnsembleCalls) -> str:
    """Return an ensemble as one line, followed by its notes."""
    if not ensemble.n:
        return "Ensemble: no calls"
    facts = dict(_facts(ensemble))
    title = f"Ensemble of {ensemble.name}" if ensemble.name else "Ensemble"
    counted = [count_text(ensemble.n, "call")]
    if "tasks" in facts:
        counted.append(f"{facts['tasks']} task{'s' * (facts['tasks'] != '1')}")
    known = ensemble.counted.phases_known
    counted.append(count_text(len(ensemble.counted.phase), "phase") if known else "phases not known")
    times = f"median {facts['median']}, from {facts['shortest']} to {facts['longest']}"
    return f"{title}: {', '.join(counted)}; {times}" + "".join(f"\n  note: {note}" for note in ensemble.notes)


def noting(notes: Sequence[str], found: Noted) -> Noted:
    """Return a result that repeats the notes on its ensemble."""
    return replace(found, notes=(*notes, *found.notes))


def ensemble_html(ensemble: EnsembleCalls) -> str:
    """Return an ensemble as an HTML table, a small histogram and its notes, for notebooks."""
    facts = _facts(ensemble)
    title = escaped(f"Ensemble of {ensemble.name}" if ensemble.name else "Ensemble")
    return f"<p><b>{title}</b></p>{facts_html(facts)}{durations_svg(ensemble)}{notes_html(ensemble.notes)}"


def durations_svg(ensemble: EnsembleCalls) -> str:
    """Draw the histogram of an ensemble on a logarithmic axis; of equal durations, return a sentence."""
    if ensemble.n < 2 or ensemble.counted.min_s.min() <= 0:
        return ""
    if ensemble.counted.min_s.min() == ensemble.counted.max_s.max():
        of = f" of {ensemble.name}" if ensemble.name else ""
        each = seconds_text(float(ensemble.counted.max_s.max())) + ("/MiB" if ensemble.per == "MiB" else "")
        sentence = f"Each of {count_text(ensemble.n, 'call')}{of} took {each}."
        return f"<p>{escaped(sentence)}</p>"
    from ensembles.statistics.samples.histogram import compute_histogram

    octaves = float(np.log2(ensemble.counted.max_s.max() / ensemble.counted.min_s.min()))
    found = compute_histogram(ensemble.atoms, "log", int(np.clip(_MOST_BARS / octaves, 1, 32)), "calls")
    unit = "/MiB" if ensemble.per == "MiB" else ""
    ends_s = ensemble.counted.min_s.min(), ensemble.counted.max_s.max()
    low, high = (f"{seconds_text(float(end_s))}{unit}" for end_s in ends_s)
    what = f"durations of {count_text(ensemble.n, 'call')}"
    title = f"{ensemble.name}: {what} (logarithmic)" if ensemble.name else f"{what} (logarithmic)"
    kind = f"{ensemble.op} {ensemble.name or ''}"
    colour = next((colour for op, colour in _COLOURS.items() if op in kind), "#7f7f7f")
    return bars_svg(found.amounts.tolist(), low, high, title, colour)
