"""Rule ``strided-readahead``: read-ahead that makes strided reads slow.

The case (Uselton et al., "Parallel I/O Performance: From Events to Ensembles", 2010, section IV): Lustre's
client recognises a strided pattern at its third appearance and gives the reads from the fourth on a larger
window. If writes between the reads have filled the client's memory, that window is fetched in pages of 4 KiB.
The evidence: slow reads begin with the fourth, each is slower than the one before, and the same reads are
fast without writes between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.evidence_rule import every_call_needed
from ensembles.diagnosis.finding import Finding, NotApplicable
from ensembles.diagnosis.rules.strided_readahead.checks import verdict
from ensembles.diagnosis.rules.strided_readahead.found import ID, describe
from ensembles.diagnosis.rules.strided_readahead.profile import StridedRuns, judgeable
from ensembles.passes.group import SummaryRequest
from ensembles.structure.strides import StridedReads

__all__ = ["ID", "NEEDS", "evaluate", "preconditions"]

if TYPE_CHECKING:
    from ensembles.run.run import Run

NEEDS = {"strided-reads": SummaryRequest(StridedReads)}


def preconditions(run: Run) -> None:
    """Check the metadata of a run (`ensembles.diagnosis.evidence_rule.Rule.preconditions`)."""
    every_call_needed(run)


def evaluate(run: Run, summaries: Mapping[str, Any]) -> list[Finding]:
    """Evaluate the rule (`ensembles.diagnosis.evidence_rule.Rule.evaluate`)."""
    reads: StridedReads = summaries["strided-reads"]
    if reads.reads and not reads.bytes_by_layer:
        raise NotApplicable(f"the file offset is known for none of the {reads.reads:,} reads of this run")
    rows = judgeable(reads.rows_nearest_to_disk)
    runs = StridedRuns.from_rows(rows[rows["interleaved"]])
    found = verdict(runs, StridedRuns.from_rows(rows[~rows["interleaved"]]))
    if not found.holds:
        return []
    chosen = rows[rows["interleaved"] & np.isin(rows["run"], found.groups)]
    return [describe(run, reads, chosen, runs.some(np.isin(runs.run, found.groups)), found)]
