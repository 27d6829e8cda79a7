"""From what a rule found to a finding: gain by the model of time, severity, place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import ROW
from ensembles.diagnosis.finding import (
    FROM_SHARE,
    LEAST_LOW,
    MOST_FILES,
    SEVERITIES,
    WORTH_A_LINE,
    Check,
    Finding,
    Where,
    rate_confidence,
    rate_severity,
)
from ensembles.diagnosis.limits import LOW, MARGIN
from ensembles.diagnosis.principles import cause_of
from ensembles.model.spans import MOST_SPANS, find_spans

if TYPE_CHECKING:
    from ensembles.run.run import Run


@dataclass
class Remedy:
    """What a rule found: the rows of the table of calls, and how much of their time a remedy saves."""

    rows: np.ndarray  # bool, shape (n,): Rows of `Case.rows` that the finding concerns
    saved_ns: np.ndarray  # float64, shape (n,): Time that the remedy saves
    title: str
    checks: tuple[Check, ...]
    evidence: dict[str, Any] = field(default_factory=dict)
    # low_ns, high_ns: float64, shape (n,) or None: Bounds; None: as `saved_ns`
    low_ns: np.ndarray | None = None
    high_ns: np.ndarray | None = None
    files: tuple[str, ...] = ()
    # float64, shape (n,) or None: Number of calls of each row that the remedy leaves out. The loop around
    # them goes with them: at most, a run gains that too. None: the calls stay.
    fewer: np.ndarray | None = None
    # (float, float): Parts of the best estimate of the gain that the interval contains: the time saved in
    # calls alone does not bound it, where others take over the work
    parts: tuple[float, float] = (1.0, 1.0)
    not_inside: tuple[str, ...] = ()  # Functions: the finding does not concern what happens inside them
    # `low_ns` is time of processors that tasks share: half of it is gained at least, however much phases
    # differ
    of_processors: bool = False
    advice: str = ""  # ``""``: as the table of causes has it
    outside_s: float = 0.0  # What tasks wait between the calls at most


SHORTER_QUEUES = (1.0, 1.3)
"""`Remedy.parts` where calls go that queue at servers: the calls that stay are faster then, too.

Of 64 measured gains of such remedies, 9 in 10 are at most this part of the time saved in the calls.
"""

LEFT_OUT = 1 + MARGIN
"""Part of the upper end that remedies gain which leave calls out or make them smaller.

With a call go its entry into the kernel, its misses in the caches and its part of recording, which are not
between its two time stamps. Of 13 measured gains of real programs above the upper end, 9 were above by less
than a tenth.
"""


def where_of(case: Case, chosen: np.ndarray, files: tuple[str, ...] = ()) -> Where:
    """Return the place of the chosen rows: bool, shape (n,); sums do not show when calls were made."""
    where = place_of_calls(case.run, {name: column[chosen] for name, column in case.rows.items()}, files)
    return replace(where, times_s=None) if case.evidence.are_sums else where


def place_of_calls(run: Run, rows: Mapping[str, np.ndarray], files: tuple[str, ...]) -> Where:
    """Return the place of rows with ``call``, ``rank``, ``phase`` (0: none), ``start_ns`` and ``end_ns``."""
    calls = [run.calls[number] for number in np.unique(rows["call"]).tolist()]
    ops, layers = ({getattr(call, name) for call in calls} for name in ("op", "layer"))
    numbers = tuple(np.unique(rows["phase"][rows["phase"] > 0]).tolist())
    named = run.phases.names if numbers and run.phases is not None else None
    return Where(
        op=ops.pop() if len(ops) == 1 else None,
        layer=layers.pop() if len(layers) == 1 else None,
        calls=tuple(sorted({call.name for call in calls})),
        files=files[:MOST_FILES],
        file_count=len(files),
        tasks=len(np.unique(rows["rank"])),
        ranks=find_spans(rows["rank"], MOST_SPANS),
        phases=numbers or None,
        phase_names=tuple(dict.fromkeys(named[n - 1] for n in numbers)) if named and numbers else None,
        times_s=(float(rows["start_ns"].min()) * 1e-9, float(rows["end_ns"].max()) * 1e-9),
    )


_NO_ORDER = Check(
    "order",
    None,
    "sums show neither the order of calls nor who waits for whom: record with ensio run --mode trace",
)


def make_finding(case: Case, cause: str, remedy: Remedy) -> list[Finding]:
    """Make the finding of a remedy; none if a check fails or next to nothing would be gained."""
    checks = remedy.checks + (_NO_ORDER,) * case.evidence.are_sums
    confidence = rate_confidence(checks)
    saved_ns, low, high = (
        case.through_collectives(remedy.saved_ns if bound is None else bound)
        for bound in (None, remedy.low_ns, remedy.high_ns)
    )
    gain_s = case.gain_s(saved_ns)
    if not confidence or gain_s <= 0:
        return []
    leaves_out = cause_of(cause).of_each_call or remedy.fewer is not None
    high = high * (LEFT_OUT if leaves_out else 1.0)
    interval, loop_s = _interval_s(case, low, saved_ns, high, remedy.fewer)
    if case.model.shows_waiting and len(case.ranks) > 1:
        interval = (
            min(interval[0], remedy.parts[0] * gain_s),
            max(interval[1], min(remedy.parts[1] * gain_s, case.span_s)),
        )
    if remedy.of_processors:
        interval = (max(interval[0], min(LOW * case.gain_s(low), gain_s)), interval[1])
    interval = (interval[0], max(interval[1], min(remedy.outside_s, case.run_s)))
    most_s = interval[1] - loop_s
    worth_s = max(most_s if interval[0] >= LEAST_LOW * most_s else gain_s, remedy.outside_s)
    if worth_s < WORTH_A_LINE * case.run_s and loop_s < FROM_SHARE["critical"] * case.run_s:
        return []  # neither what is certain, nor the best estimate, nor the loop is worth a line
    rows = {name: column[remedy.rows] for name, column in case.rows.items()}
    evidence = {
        **remedy.evidence,
        "calls": int(rows["n"].sum()),
        "time_s": float(rows["time_ns"].sum()) * 1e-9,
        "run_s": case.run_s,
    }
    return [
        Finding(
            id=cause,
            severity=severity_of(interval, gain_s, case.run_s, cause),
            confidence=confidence,
            where=where_of(case, remedy.rows, remedy.files),
            evidence=evidence,
            checks=checks,
            advice=remedy.advice or cause_of(cause).advice,
            gain_s=interval,
            title=remedy.title,
            saved_ns=saved_ns,
            loop_s=loop_s,
            rows=None if case.evidence.are_sums else np.stack([rows[name] for name in ROW]),
            not_inside=remedy.not_inside,
        )
    ]


def _interval_s(
    case: Case, low: np.ndarray, saved: np.ndarray, high: np.ndarray, fewer: np.ndarray | None
) -> tuple[tuple[float, float], float]:
    """Compute the interval of the gain, and which part of its upper end is the loop around the calls.

    A single task gains at most the time in the calls, and their loop: there are no others that would be
    faster too.
    """
    least_s, most_s = case.model.interval_s(low, saved, high)
    whole_s, loop_ns = most_s, np.zeros(len(case))
    if fewer is not None:
        loop_ns = fewer * case.around_ns
        whole_s = case.model.interval_s(low, saved, high + loop_ns)[1]
    if len(case.ranks) == 1:
        in_calls_s = case.most_s(np.where(high > 0, case.rows["time_ns"], 0.0))
        most_s = min(most_s, max(in_calls_s, least_s))
        whole_s = min(whole_s, most_s + case.most_s(loop_ns))
    whole_s = max(min(whole_s, case.span_s), most_s)
    return (least_s, whole_s), whole_s - most_s


LIKELY_COUNTS = 1 / 3
"""Part of the best estimate that counts as if it were certain."""


def severity_of(interval_s: tuple[float, float], gain_s: float, run_s: float, cause: str = "") -> str:
    """Rate the least gain, or a third of the likely one if that is more, within what the cause allows."""
    severity = rate_severity(max(interval_s[0], LIKELY_COUNTS * gain_s) / max(run_s, 1e-9))
    return min(severity, cause_of(cause).most_severe, key=SEVERITIES.index)
