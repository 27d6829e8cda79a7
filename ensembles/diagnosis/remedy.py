"""From what a rule found to a finding: gain by the model of time, severity, place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.finding import MOST_FILES, Check, Finding, Where, is_open, rate_confidence
from ensembles.diagnosis.limits import LOW
from ensembles.diagnosis.principles import FEWER_BYTES, FEWER_CALLS, cause_of
from ensembles.model.levels import FEW, WORTH_A_LINE
from ensembles.model.spans import MOST_SPANS, find_spans


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
    ordinals: tuple[tuple[int, int], ...] = ()  # Spans of call indices; empty: any
    not_inside: tuple[str, ...] = ()  # Functions: the finding does not concern what happens inside them
    # `low_ns` is time of processors that tasks share: half of it is gained at least, however much phases
    # differ
    of_processors: bool = False
    advice: str = ""  # ``""``: as the table of causes has it


def where_of(
    case: Case,
    chosen: np.ndarray,
    files: tuple[str, ...] = (),
    ordinals: tuple[tuple[int, int], ...] = (),
) -> Where:
    """Return the place of the chosen rows: bool, shape (n,)."""
    run, rows = case.run, {name: column[chosen] for name, column in case.rows.items()}
    calls = [run.calls[number] for number in np.unique(rows["call"]).tolist()]
    ops, layers = ({getattr(call, name) for call in calls} for name in ("op", "layer"))
    numbers = tuple(np.unique(rows["phase"][rows["phase"] > 0]).tolist())
    named = run.phases.names if numbers and run.phases is not None else None
    times_s = float(rows["start_ns"].min()) * 1e-9, float(rows["end_ns"].max()) * 1e-9
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
        ordinals=ordinals,
        times_s=None if case.evidence.places(rows) is None else times_s,
    )


def make_finding(case: Case, cause: str, remedy: Remedy) -> list[Finding]:
    """Make the finding of a remedy; none if a check fails or next to nothing would be gained."""
    checks = remedy.checks + case.evidence.unsure
    confidence = rate_confidence(checks)
    low, high = (remedy.saved_ns if each is None else each for each in (remedy.low_ns, remedy.high_ns))
    part = _part_of_several(case, cause, remedy.saved_ns > 0)
    saved_ns, low, high = map(case.through_collectives, (part * remedy.saved_ns, part * low, high))
    gain_s = case.gain_s(saved_ns)
    if not confidence or gain_s <= 0:
        return []
    interval = case.model.interval_s(low, saved_ns, high)
    if remedy.of_processors:
        interval = (max(interval[0], min(LOW * case.gain_s(low), gain_s)), interval[1])
    gaining_ns = np.where(np.maximum(saved_ns, high) > 0, case.rows["time_ns"], 0)
    in_calls_s = case.most_s(gaining_ns)
    interval = (min(interval[0], in_calls_s), min(interval[1], in_calls_s))
    # Waiting within these calls for a processor that others keep busy stays: likely their part, at most all.
    busy_s = 0.0 if case.run.info.oversubscribed else min(case.run.info.processor_wait_s, case.run_s)
    likely_s = gain_s * (1 - busy_s / max(case.run_s, 1e-9))
    outside_s = min(remedy.evidence.get("waiting_s", 0.0), case.run_s)
    interval = (max(interval[0] - busy_s, 0.0), max(interval[1], outside_s))
    worth_s = max(gain_s if is_open(interval) else interval[1], outside_s)
    if worth_s < WORTH_A_LINE * case.run_s:
        return []  # neither what is certain nor the best estimate is worth a line
    rows = {name: column[remedy.rows] for name, column in case.rows.items()}
    evidence = {
        **remedy.evidence,
        "calls": int(rows["n"].sum()),
        "time_s": 1e-9 * float(case.rows["time_ns"][remedy.rows | (gaining_ns > 0)].sum()),
        "run_s": case.run_s,
    }
    return [
        Finding(
            id=cause,
            confidence=confidence,
            where=where_of(case, remedy.rows, remedy.files, remedy.ordinals),
            evidence=evidence,
            checks=checks,
            advice=remedy.advice or cause_of(cause).advice,
            gain_s=interval,
            title=remedy.title,
            saved_ns=saved_ns,
            rows=case.evidence.places(rows),
            not_inside=remedy.not_inside,
            likely_s=likely_s,
        )
    ]


def _part_of_several(case: Case, cause: str, rows: np.ndarray) -> np.ndarray:
    """Compute which part of each row's time is a habit: one call that makes up the time counts as others."""
    part = np.ones(len(case))
    if cause_of(cause).principle in (FEWER_CALLS, FEWER_BYTES):
        for call in np.unique(case.rows["call"][rows]):
            mine = rows & (case.rows["call"] == call)
            if case.effective_count(mine) < FEW:
                part[mine] = case.habitual_ns(mine)[mine] / np.maximum(case.rows["time_ns"][mine], 1)
    return part
