"""Rule ``strided-readahead``: read-ahead that makes strided reads slow.

The case (Uselton et al., "Parallel I/O Performance: From Events to Ensembles", 2010, section IV): Lustre's
client recognises a strided pattern at its third appearance and gives the reads from the fourth on a larger
window. If writes between the reads have filled the client's memory, that window is fetched in pages of 4 KiB.
The evidence: slow reads begin with the fourth, each is slower than the one before, and the same reads are
fast without writes between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.evidence_rule import every_call_needed
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, Where, rate_confidence
from ensembles.diagnosis.limits import MARGIN
from ensembles.diagnosis.principles import cause_of
from ensembles.diagnosis.remedy import place_of_calls, severity_of
from ensembles.diagnosis.rules.strided_readahead.checks import Verdict, verdict
from ensembles.diagnosis.rules.strided_readahead.profile import HEALTHY_READS, StridedRuns, judgeable
from ensembles.model.events import Events
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.model.units import bytes_text, number_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.structure.strides import StridedReads

if TYPE_CHECKING:
    from ensembles.run.run import Run


@dataclass(frozen=True)
class Loss:
    """Intervals of lost time."""

    lost_s: tuple[float, float]  # (float, float): Time lost, summed over all tasks
    gain_s: tuple[float, float]  # (float, float): Predicted reduction of the span of the run


def estimate_loss(rows: np.ndarray, runs: StridedRuns, window: np.ndarray, share: float) -> Loss:
    """Estimate the loss of slow reads.

    Without the fault, the slow reads would take the time per byte of the reads before them. These reads
    differ, as the first of them may come before the first write. The lower end of the loss compares with the
    slowest of their positions, the upper end with the fastest. Both ends include disturbances of all tasks
    (the scatter of these positions). While reads are slow, writes find an emptier cache; the lower end is
    reduced by their gain.

    A window, such as a phase, ends with its last task. It would be shorter by as much as its last end would
    be earlier if every task ended earlier by its loss.
    """
    rate = float(np.nanmedian(runs.base))
    low, high = _levels_before(runs)
    lost, gain = [], []
    for level, won_ns in ((high, _won_by_writes_ns(rows, runs)), (low, 0.0)):
        lost_ns = _lost_ns(rows, np.exp(rate + level)) - won_ns
        lost.append(max(float(lost_ns.sum()), 0.0) * 1e-9 / share)
        gain.append(_earlier_ns(rows, lost_ns, window) * 1e-9)
    return Loss(_doubted(lost), _doubted(gain))


def _doubted(ends: list[float]) -> tuple[float, float]:
    return (1 - MARGIN) * ends[0], (1 + MARGIN) * ends[1]


def _levels_before(runs: StridedRuns) -> tuple[float, float]:
    """Bound the typical times of the positions before the stride is recognised, with their scatter.

    They are logarithms, relative to the median of `runs.base`.
    """
    levels = np.nanmedian(runs.time[:, :HEALTHY_READS] - np.nanmedian(runs.base), axis=0)
    scatter = float(np.nanstd(levels, ddof=1)) / np.sqrt(HEALTHY_READS)
    return float(np.nanmin(levels)) - scatter, float(np.nanmax(levels)) + scatter


def _lost_ns(rows: np.ndarray, ns_per_byte: float) -> np.ndarray:
    """Compute the excess time of each slow read; 0 for the reads before."""
    beyond = rows["duration_ns"] - rows["bytes"] * ns_per_byte
    return np.where(rows["position"] > HEALTHY_READS, beyond, 0.0)


def _won_by_writes_ns(rows: np.ndarray, runs: StridedRuns) -> np.ndarray:
    """Compute by how much writes became faster after the first slow read; 0 or more."""
    before = runs.writing[:, 1 : HEALTHY_READS + 1]
    if np.isnan(before).all():
        return np.zeros(len(rows))
    won = rows["written_bytes"] * np.exp(np.nanmedian(before)) - rows["writing_ns"]
    return np.where(rows["position"] > HEALTHY_READS + 1, np.maximum(won, 0.0), 0.0)


def _earlier_ns(rows: np.ndarray, lost_ns: np.ndarray, window: np.ndarray) -> float:
    """Sum by how much the last ends of the windows would come earlier."""
    key = window.astype(np.int64) << 32 | rows["rank"]
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    lost = np.add.reduceat(lost_ns[order], first)
    end = np.maximum.reduceat(rows["end_ns"][order], first).astype(np.float64)
    of_window = key[order][first] >> 32
    begin = np.flatnonzero(np.diff(of_window, prepend=-1))
    earlier = np.maximum.reduceat(end, begin) - np.maximum.reduceat(end - lost, begin)
    return float(np.maximum(earlier, 0.0).sum())


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
