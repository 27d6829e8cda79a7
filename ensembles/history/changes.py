"""Changes in the latest runs of an experiment: evidence for the sentence of a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ensembles.comparison.components import PLACE, TAIL, TAIL_PLACE, WEIGHT, WIDTH
from ensembles.comparison.difference import Difference
from ensembles.history.record import RunRecord
from ensembles.history.series import CALLS, COMMON, PHASE, RATE, TIME, Part, Series, Tested
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, number_text, ratio_text, seconds_text, share_text

_SEVERE = ("warning", "critical")


@dataclass(frozen=True)
class Change:
    """A change in the latest runs: evidence for the sentence of a check.

    Attributes
    ----------
    op, layer : str or None
        The calls that it concerns; None: it concerns the whole run.
    what : str
        ``calls``, ``durations``, ``time`` (of whole runs) or ``finding``.
    direction : str
        ``slower`` or ``faster``; of numbers of calls ``more`` or ``fewer``.
    sentence : str
        What changed, with numbers.
    part : str
        Which part: ``mode 2 place``, ``all durations``, ``calls``; of a finding its id.
    runs : int
        Latest runs that were judged together when it was found.
    p : float
        p-value, adjusted for everything that was tested in the experiment.
    since_run : int or None
        Number of the run with which the change begins.
    since : str or None
        Start of that run, UTC.
    loss_s : float
        By how much the entry of the account that it concerns is longer, in s: of a phase itself.
    """

    op: str | None
    layer: str | None
    what: str
    direction: str
    sentence: str
    part: str = ""
    runs: int = 1
    p: float = 0.0
    since_run: int | None = None
    since: str | None = None
    loss_s: float = 0.0

    @property
    def is_worse(self) -> bool:
        """Whether runs may take longer for it."""
        return self.direction not in ("faster", "fewer")

    @property
    def text(self) -> str:
        """The sentence, with the calls that it concerns."""
        calls = f"{self.layer} {self.op}, " if self.layer else ""
        how = "" if self.what in ("calls", "finding") else f"{self.direction}: "
        return sanitize_text(f"{calls}{how}{self.sentence}")


def changes_of(series: Series, certain: Sequence[Tested], first: int, apart: Difference) -> list[Change]:
    """Describe each part once, by its most certain window, and phases of one kind together."""
    found: dict[int, Tested] = {}
    for one in certain:
        found.setdefault(one.part, one)
    moved = list(found.values())
    # A location that stays while the mode with most calls moves has not changed.
    still = [one for one in moved if abs(one.absolute) < abs(one.change) / 2]
    kept = [one for one in moved if one not in still]
    places = [one for one in still if series.parts[one.part].what == PLACE]
    if places and series.reference is not None:
        kept.insert(0, _of_reference(series, places[0]))
    phases: dict[tuple[str, bool], list[Tested]] = {}
    changes = []
    for one in kept or moved:
        part = series.parts[one.part]
        if part.what == PHASE:
            phases.setdefault((part.kind, one.absolute > 0), []).append(one)
        else:
            changes.append(_change(part, one, series, first, apart))
    changes += [_of_phases(each, series, first) for each in phases.values()]
    return sorted(changes, key=lambda each: (not each.is_worse, -abs(each.loss_s), each.p))


def _of_reference(series: Series, seen: Tested) -> Tested:
    """Return the change of the mode with most calls, which is seen as that of another relative to it."""
    sign = series.parts[seen.part].slower
    change = sign * (seen.absolute - seen.change)
    assert series.reference is not None
    return replace(seen, part=series.reference, change=change, absolute=change)


def _ends(series: Series, part: int, first: int) -> tuple[float, float]:
    """Return the mean of a part in the runs before a change and since."""
    before, since = series.absolute[:first, part], series.absolute[first:, part]
    return _mean(before), _mean(since)


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _of_phases(moved: Sequence[Tested], series: Series, first: int) -> Change:
    """Describe phases of one kind, whose times are added."""
    parts = [series.parts[one.part] for one in moved]
    before_s, after_s = (
        float(sum(2.0**end for end in ends))
        for ends in zip(*(_ends(series, one.part, first) for one in moved), strict=True)
    )
    numbers = ", ".join(f"{part.number}" for part in sorted(parts, key=lambda part: part.number))
    name = f"{'phases' if len(parts) > 1 else 'phase'} {numbers}" + (
        f" ({parts[0].kind})" if parts[0].kind else ""
    )
    direction = "slower" if after_s > before_s else "faster"
    text = f"{name} {_times_text(before_s, after_s)}{_evidence(moved[0])}"
    part = parts[0].name if len(parts) == 1 else "phase times"
    return Change(
        None, None, "durations", direction, text, part, moved[0].runs, moved[0].p, loss_s=after_s - before_s
    )


def _change(part: Part, one: Tested, series: Series, first: int, apart: Difference) -> Change:
    size = one.absolute if part.what not in (COMMON, WIDTH, WEIGHT, TAIL, TAIL_PLACE) else one.change
    words = ("fewer", "more") if part.what == CALLS else ("faster", "slower")
    direction = words[size * part.slower > 0]
    before, after = _ends(series, one.part, first)
    unit_s = part.t_s or 1.0
    if part.what == CALLS:
        text = f"{number_text(after, 6)} calls a run instead of {number_text(before, 6)}"
    elif part.what in (TAIL, WEIGHT):
        where = "beyond" if part.what == TAIL else "at"
        shares = f"{share_text(after, 2)} instead of {share_text(before, 2)}"
        text = f"{part.name}, {where} {seconds_text(unit_s)}: {shares}"
    elif part.what == RATE:
        text = f"{part.name} {bytes_text(2.0**before)}/s → {bytes_text(2.0**after)}/s"
    elif part.what in (COMMON, WIDTH, TAIL_PLACE) or not np.isfinite([before, after]).all():
        moved = after - before if np.isfinite([before, after]).all() else one.change
        text = f"{part.name} {ratio_text(2.0**moved)}"
    else:
        text = f"{part.name.removesuffix(' place')} {_times_text(unit_s * 2.0**before, unit_s * 2.0**after)}"
    kind = next((each for each in apart.losses if each.id == f"{part.layer} {part.op}"), None)
    loss_s = kind.loss_s if kind is not None else sum(each.loss_s for each in apart.losses)
    what = {CALLS: "calls", TIME: "time"}.get(part.what, "durations")
    text += _evidence(one) if part.what != CALLS else ""
    return Change(part.op, part.layer, what, direction, text, part.name, one.runs, one.p, loss_s=loss_s)


def _times_text(before_s: float, after_s: float) -> str:
    return f"{seconds_text(before_s)} → {seconds_text(after_s)}, {ratio_text(after_s / before_s)}"


def _evidence(one: Tested) -> str:
    runs = "" if one.runs == 1 else f" over the latest {one.runs} runs"
    return f" (p = {one.p:.2g}{runs})"


def new_findings(records: Sequence[RunRecord], before: Sequence[int]) -> dict[int, list[Change]]:
    """Find the findings that all runs since a change have and none of these before it, by its first run.

    One of these runs has it as a warning or worse.
    """
    severities = [{one.id: one.severity for one in record.findings} for record in records]
    changes: dict[int, list[Change]] = {}
    for one in records[-1].findings:
        lacks = [at for at, found in enumerate(severities) if one.id not in found]
        since = max(lacks, default=-1) + 1
        known = [one.id in severities[at] for at in before if at < since]
        if known and not any(known) and any(found[one.id] in _SEVERE for found in severities[since:]):
            text = f"new finding {one.id}: {one.title}"
            new = Change(None, None, "finding", "slower", text, one.id, loss_s=one.share_s)
            changes.setdefault(since, []).append(new)
    return changes
