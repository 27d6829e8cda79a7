"""Rule ``aggregation-mismatch``: too few tasks make the storage calls of collective calls."""

from __future__ import annotations

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.collective_calls import collective_calls
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import seconds_text

LEAST_BYTES = 1 << 20
"""Bytes of a collective call from which one more aggregator is worth its messages."""

MESSAGE_SHARES = (0.5, 0.9, 1.0)
"""Part of the time beyond storage that is messages to the aggregators: these go to more of them at once."""

_MOST_SHARE_OF_NODES = 0.5

ADVICE = (
    "use one aggregator or more on each node (cb_nodes), buffers of 16 MiB or more (cb_buffer_size), and "
    "as many stripes as aggregators"
)


def _find(case: Case) -> Remedy | None:
    found = collective_calls(case)
    if found is None:
        return None
    calls = case.rows["n"][found.rows].sum() / len(case.ranks)
    per_call = case.rows["bytes"][found.rows].sum() / max(calls, 1)
    useful, aggregators = min(found.nodes, int(per_call // LEAST_BYTES)), found.aggregators
    if aggregators > _MOST_SHARE_OF_NODES * useful:
        return None
    # With more of them, each stores less, as far as there are stripes, and gets fewer messages.
    stored = found.slowest * max(1 - aggregators / min(useful, _stripe_count(case)), 0)
    low, saved, high = (
        found.of_windows(case, stored + part * found.beyond * (1 - aggregators / useful))
        for part in MESSAGE_SHARES
    )
    check = Check(
        "few-aggregators",
        True,
        f"{aggregators} of {len(case.ranks)} tasks write for all, on {useful} nodes",
    )
    spent = seconds_text(found.slowest[found.busy].sum() * 1e-9)
    return Remedy(
        found.rows,
        saved,
        f"{aggregators} aggregators for {useful} nodes make {spent} of storage calls",
        ADVICE,
        (check,),
        {"aggregators": aggregators, "nodes": useful},
        low,
        high,
    )


def _stripe_count(case: Case) -> int:
    """Return the largest known number of targets of a file: more aggregators would not write faster."""
    counts = [
        striping.stripe_count
        for path in case.run.info.file_facts
        if (striping := case.run.info.striping_of(path)) is not None and striping.stripe_count > 0
    ]
    return max(counts, default=1 << 20)


rule = EvidenceRule("aggregation-mismatch", _find)
