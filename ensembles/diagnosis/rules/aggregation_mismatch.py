"""Rule ``aggregation-mismatch``: too few tasks make the storage calls of collective calls."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.collective_calls import CollectiveCalls, collective_calls
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.limits import LARGE_BYTES, LOW, MOST, NEARLY_ALL, WIDE_BYTES
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import seconds_text, share_text


def _find(case: Case) -> Remedy | None:
    found = collective_calls(case)
    if found is None:
        return None
    calls = case.rows["n"][found.rows].sum() / len(case.ranks)
    per_call = case.rows["bytes"][found.rows].sum() / max(calls, 1)
    useful, aggregators = min(found.nodes, int(per_call // LARGE_BYTES)), found.aggregators
    if aggregators > MOST * useful:
        return None
    stored = _shares_saved(case, found, useful)
    # Messages to few aggregators go to more of them at once; without idle targets, caches empty meanwhile.
    low, saved, high = (
        found.of_windows(case, found.slowest * share + part * found.beyond * (1 - aggregators / useful))
        for share, part in zip(stored, (LOW * (stored[0] > 0), NEARLY_ALL, 1.0), strict=True)
    )
    check = Check(
        "few-aggregators",
        True,
        f"{aggregators:,} of {len(case.ranks):,} tasks write for all, on {useful} nodes",
    )
    idle = Check(
        "idle-targets",
        stored[0] > 0 or None,
        f"their storage calls leave {share_text(stored[0])} of the work of the targets to others",
    )
    spent = seconds_text(found.slowest[found.busy].sum() * 1e-9)
    return Remedy(
        found.rows,
        saved,
        f"{aggregators} aggregators for {useful} nodes make {spent} of storage calls",
        (check, idle),
        {"aggregators": aggregators, "nodes": useful},
        case.kept_after_flush(low),
        high,
    )


def _shares_saved(case: Case, found: CollectiveCalls, useful: int) -> tuple[float, float, float]:
    """Compute the least, likely and greatest share of the storage time that more aggregators save.

    At least they use the targets that the storage calls leave idle; at most they are as many times as fast as
    they are more, as the clients or their caches limit them.
    """
    stripes, stripe_bytes = _layout(case)
    pieces = found.piece_bytes / stripe_bytes
    wider = min(stripes, useful * max(WIDE_BYTES / stripe_bytes, 1.0))
    # A piece at any offset lies on one stripe more than its bytes fill.
    low, most = (1 - min(found.aggregators * each / wider, 1.0) for each in (1 + pieces, max(pieces, 1.0)))
    by_clients = 1 - found.aggregators / useful
    high = max(by_clients, most)
    low = min(low, by_clients)
    return low, (low + high) / 2, high


def _layout(case: Case) -> tuple[float, float]:
    """Return the largest known number of targets of a file, and bytes of a stripe there; else no limit."""
    layouts = [case.run.info.striping_of(path) for path in case.run.info.file_facts]
    known = [(each.stripe_count, each.stripe_bytes) for each in layouts if each and each.stripe_count > 0]
    return max(known, default=(np.inf, np.inf))


rule = EvidenceRule("aggregation-mismatch", _find)
