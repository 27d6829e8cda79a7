"""Rule ``metadata-storm``: tasks ask the metadata server for the same paths again and again."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.metadata import find_counted
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import seconds_text

LEAST_CALLS = 2
_SHARE = 0.5

ADVICE = (
    "ask once and keep the answer: open a file once and keep it open, let one task look a "
    "path up and broadcast the "
    "result, leave out stat and access before open; administrator: look at the load of the metadata server"
)


def _find(case: Case) -> Remedy | None:
    rows = np.isin(case.op, ("open", "meta")) & (case.layer == "posix")
    rows &= (case.rows["repeats"] >= _SHARE * case.rows["n"]) & (case.rows["n"] >= LEAST_CALLS)
    if not rows.any():
        return None
    saved = np.where(rows, case.rows["time_ns"] * case.rows["repeats"] / case.rows["n"], 0.0)
    count, again = int(case.rows["n"][rows].sum()), int(case.rows["repeats"][rows].sum())
    each_s = float(case.rows["time_ns"][rows].sum()) / count * 1e-9
    checks = (
        Check(
            "same-path-again",
            True,
            f"{again:,} of {count:,} calls ask for the path of the task's call before",
        ),
    )
    return Remedy(
        rows,
        saved,
        f"{count:,} calls on paths, {again / count:.0%} of them for the same path again, take "
        f"{seconds_text(each_s)} each",
        ADVICE,
        checks,
        {"repeated": again, "mean_s": each_s},
        case.kept_after_flush(0.75 * saved),
    )


rule = EvidenceRule("metadata-storm", _find, counted=lambda run: find_counted(run, ADVICE))
