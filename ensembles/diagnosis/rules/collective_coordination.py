"""Rule ``collective-coordination``: collective calls take longer than the storage calls inside them."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.collective_calls import collective_calls
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.summed_case import check_coordination
from ensembles.model.units import seconds_text

NETWORK_BYTES_PER_NS = (1.0, 3.0, 12.0)
"""Rates at which a node exchanges the bytes of its tasks: of 10 Gb/s Ethernet, usual, fast."""


def _find(case: Case) -> Remedy | None:
    found = collective_calls(case)
    if found is None:
        return None
    if crowded := case.run.info.crowded_text:
        at_most_s = case.most_s(found.of_windows(case, found.beyond))
        raise NotApplicable(
            f"collective calls take up to {seconds_text(at_most_s)} of this run beyond the storage inside "
            f"them, but {crowded}, so that messages wait for a processor: record with at least one processor "
            "for each task",
            at_most_s,
        )
    storage, beyond = found.storage, found.beyond
    moved = case.by_cell(np.where(found.rows, case.rows["bytes"], 0)).sum(axis=1)
    moved = moved / min(found.aggregators, found.nodes)
    low, gain, high = (np.maximum(beyond - moved / rate, 0) for rate in NETWORK_BYTES_PER_NS)
    # Where aggregators wait for each other after each buffer, another one may be the slowest each time.
    mean = storage.sum(axis=1) / np.maximum((storage > 0).sum(axis=1), 1)
    low = np.maximum(low - (found.slowest - mean), 0)
    spent = seconds_text(float(beyond.sum()) * 1e-9)
    check = Check(
        "beyond-storage",
        True,
        f"collective calls take {spent} beyond the slowest storage inside them and beyond the waiting for "
        "late tasks",
    )
    return Remedy(
        found.rows,
        found.of_windows(case, gain),
        f"collective calls spend {spent} in coordination and messages",
        (check,),
        {"coordination_s": float(beyond.sum()) * 1e-9},
        # While messages are exchanged, caches empty: what a close waits for then comes earlier.
        case.kept_after_flush(found.of_windows(case, low)),
        found.of_windows(case, high),
    )


rule = EvidenceRule("collective-coordination", _find, summed=check_coordination)
