"""Rule ``node-serialisation``: nodes, or tasks, are served one after the other."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.cannot_tell import CannotTell, transfers
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import FROM_SHARE, Check
from ensembles.diagnosis.phases_in_turns import PhasesInTurns, phases_in_turns
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.units import bytes_text, seconds_text

LEAST_RATIO = 4.0
"""Other phases move bytes so many times faster: the bytes do not explain how long a turn takes."""

ADVICE = "it moves the same bytes in the same time; ensio modes shows its harmonics"

ADVICE_TURNS = (
    "let fewer tasks make larger requests: collective calls with collective buffering (MPI-IO hints "
    "romio_cb_write=enable, romio_cb_read=enable), and cb_nodes well below the number of nodes. Or give each "
    "node a file, or a region that begins at a block of the file system, so that nodes do not pass on the "
    "lock (token) of a shared file"
)


def _concerned(case: Case) -> np.ndarray:
    """Find transfers of tasks that share their node with others."""
    node = case.nodes_of_tasks()
    rows = transfers(case)
    rows &= len(case.ranks) > 1 if node is None else (np.bincount(node)[node] > 1)[case.task]
    return rows


_cannot_tell = CannotTell(_concerned, ADVICE, "one task a node")


def _find(case: Case) -> Remedy | None:
    found = phases_in_turns(case)
    elsewhere = None if found is None else found.rate_elsewhere(case)
    if found is None or (elsewhere is not None and elsewhere < LEAST_RATIO * found.rate(case)):
        _cannot_tell(case)
        return None
    title = found.title(case.run_s)
    if elsewhere is not None:
        return _remedy(case, found, elsewhere, title)
    if (at_most_s := case.most_s(found.time_ns(case))) >= FROM_SHARE["warning"] * case.run_s:
        raise NotApplicable(
            f"{title}; no other phase shows whether the storage moves these bytes faster: record a run with "
            "fewer and larger requests (collective buffering), and compare the runs (ensio compare)",
            at_most_s,
        )
    return None


def _remedy(case: Case, found: PhasesInTurns, elsewhere: float, title: str) -> Remedy:
    low, high = found.saved_ns(case, elsewhere)
    units, variation = int(found.median("units")), found.median("variation")
    begin, end, inside = (
        seconds_text(1e-9 * found.median(name)) for name in ("start_ns", "length_ns", "inside_ns")
    )
    checks = (
        Check(
            "not-by-chance",
            True,
            f"in {len(found.turns):,} of {found.tested:,} phases the gaps between the ends vary by "
            f"{variation:.2f} of their mean (median); independent ends are even in {found.chance:.2g} of all "
            f"phases: p = {found.p:.2g}",
        ),
        Check(
            "not-the-program",
            True,
            f"all {found.unit}s begin within {begin} and end over {end}"
            + (f", the tasks of one within {inside}" if found.unit == "node" else ""),
        ),
        Check(
            "not-the-bytes",
            True,
            f"each {found.unit} moves the same bytes, all together {bytes_text(found.rate(case))}/s; "
            f"in another phase {bytes_text(elsewhere)}/s",
        ),
    )
    evidence = {
        "units": units,
        "unit": found.unit,
        "step_s": 1e-9 * found.median("step_ns"),
        "length_s": found.length_s,
        "phases": len(found.turns),
        "phases_compared": found.tested,
        "variation": variation,
        "p": found.p,
        "bytes_per_s": found.rate(case),
        "bytes_per_s_elsewhere": elsewhere,
    }
    return Remedy(
        found.time_ns(case) > 0, (low + high) / 2, title, checks, evidence, low, high, advice=ADVICE_TURNS
    )


rule = EvidenceRule("node-serialisation", _find)
