"""Rule ``strided-readahead``: read-ahead that makes strided reads slow.

The case (Uselton et al., "Parallel I/O Performance: From Events to Ensembles", 2010, section IV): Lustre's
client recognises a strided pattern at its third appearance and gives the reads from the fourth on a larger
window. If writes between the reads have filled the client's memory, that window is fetched in pages of 4 KiB.
The evidence: slow reads begin with the fourth, each is slower than the one before, and the same reads are
fast without writes between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.evidence_rule import every_call_needed
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, Where, rate_confidence
from ensembles.diagnosis.principles import cause_of
from ensembles.diagnosis.remedy import place_of_calls, severity_of
from ensembles.diagnosis.rules.strided_readahead.checks import Verdict, verdict
from ensembles.diagnosis.rules.strided_readahead.cost import estimate_loss
from ensembles.diagnosis.rules.strided_readahead.profile import HEALTHY_READS, StridedRuns, judgeable
from ensembles.model.events import Events
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.model.units import bytes_text, number_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.structure.strides import StridedReads

if TYPE_CHECKING:
    from ensembles.run.run import Run

ID = "strided-readahead"
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


def describe(run: Run, reads: StridedReads, rows: np.ndarray, runs: StridedRuns, found: Verdict) -> Finding:
    """Make the finding of strided reads that are slow."""
    slow = rows[rows["position"] > HEALTHY_READS]
    phase = _phases(run, rows)
    loss = estimate_loss(rows, runs, rows["run"] if phase is None else phase, reads.share)
    slow_phase = np.zeros(len(slow)) if phase is None else phase[rows["position"] > HEALTHY_READS]
    strides, counts = np.unique(rows["stride_bytes"], return_counts=True)
    stride = int(strides[np.argmax(counts)])
    size = int(np.median(rows["bytes"][rows["position"] <= HEALTHY_READS]))
    positions = (HEALTHY_READS + 1, int(slow["reads"].max()))
    checks = (*found.checks, _all_seen(reads))
    evidence = {
        "stride_bytes": stride,
        "read_bytes": size,
        "gap_bytes": stride - size,
        "strides": len(strides),
        "positions": list(positions),
        "slow_reads": int(slow["calls"].sum()),
        "tasks_share": reads.share,
        **found.numbers,
        **_medians(runs),
        "time_lost_s": list(loss.lost_s),
        "time_lost_share_of_io": [lost / max(reads.io_time_ns * 1e-9, 1e-9) for lost in loss.lost_s],
        "run_s": run.length_s,
    }
    return Finding(
        id=ID,
        severity=severity_of(loss.gain_s, sum(loss.gain_s) / 2, run.length_s),
        confidence=rate_confidence(checks),
        where=_where(run, slow, slow_phase),
        evidence=evidence,
        checks=checks,
        advice=cause_of(ID).advice,
        gain_s=loss.gain_s,
        title=(
            f"reads of {bytes_text(size)} with holes of {bytes_text(stride - size)} between them, "
            f"interleaved with writes, are slow from the {found.numbers['first_slow_read']}th on: "
            f"{number_text(found.numbers['slowdown'])} times as long as the first {HEALTHY_READS}; "
            f"all tasks together lose {seconds_text(loss.lost_s[0])} to {seconds_text(loss.lost_s[1])}"
        ),
    )


def _all_seen(reads: StridedReads) -> Check:
    share = 1 - reads.reads_with_offset / max(reads.reads, 1)
    holds = None if share > 0.1 else True
    return Check("places-known", holds, f"the file offset is known for {share_text(1 - share)} of the reads")


def _medians(runs: StridedRuns) -> dict[str, Any]:
    """Compute the median time at each position in seconds per MiB."""
    many = np.count_nonzero(~np.isnan(runs.time), axis=0) >= 0.5 * len(runs)
    width = int(np.argmin(np.append(many, False)))
    medians = np.nanmedian(runs.time[:, :width], axis=0)
    return {"median_s_per_mib_by_position": (np.exp(medians) * (1 << 20) * 1e-9).tolist()}


def _phases(run: Run, rows: np.ndarray) -> np.ndarray | None:
    """Compute the phase in which each read begins; None: the run has no phases."""
    phases = run.phases
    if phases is None or not phases.count:
        return None
    columns = {"rank": rows["rank"], "start": rows["start_ns"], "thread": np.zeros(len(rows))}
    return np.asarray(phases.phase_index(Events.partly(columns, run.calls, run.files)))


def _where(run: Run, slow: np.ndarray, phase: np.ndarray) -> Where:
    time_ns = np.bincount(slow["file"], slow["duration_ns"])
    order = np.argsort(-time_ns, kind="stable")[: np.count_nonzero(time_ns)]
    columns = {name: slow[name] for name in ("call", "rank", "start_ns", "end_ns")} | {"phase": phase}
    where = place_of_calls(run, columns, tuple(run.files[number] for number in order.tolist()))
    return replace(where, ordinals=find_spans(slow["ordinal"], MOST_SPANS))
