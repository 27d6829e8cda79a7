"""Rule ``write-back``: the kernel holds writers back while the dirty pages of the node are near their "
"limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case, p_of_chance
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import DENSE, LEAST_CALLS, LEAST_RATIO, LEVEL, LITTLE
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.events import OPS, Events
from ensembles.model.units import count_text, number_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.keyed_sums import KeyedSums

if TYPE_CHECKING:
    from ensembles.run.run import Run


class WritesBySample(Summary):
    """A mergeable summary: writes between consecutive samples of the memory of their node.

    Attributes
    ----------
    table : KeyedSums
        By ``node`` and ``interval`` (number of samples before): ``bytes`` and ``time_ns`` of writes.
    """

    columns = ("rank", "call", "depth", "carried", "moved", "start", "duration")
    requires = ANY_ORDER

    def __init__(self, node: np.ndarray, times: tuple[np.ndarray, ...]) -> None:
        self._node, self._times = node, times
        self.table = KeyedSums(("node", "interval"), ("bytes", "time_ns"))

    @classmethod
    def for_run(cls, run: Run) -> WritesBySample:
        """Make an empty summary for a run."""
        node, memory = memory_of_nodes(run)
        return cls(node, tuple(time for time, _ in memory))

    def add(self, chunk: Events) -> None:
        """Add events."""
        chosen = (chunk.op == OPS.index("write")) & (chunk.moved > 0) & chunk.outermost
        writes = chunk[chosen & (chunk.rank < len(self._node))]
        node = self._node[writes.rank]
        for number in np.unique(node[node >= 0]).tolist():
            mine = writes[node == number]
            interval = np.searchsorted(self._times[number], mine.start)
            keys = {"node": np.full(len(mine), number), "interval": interval}
            self.table.add(keys | {"bytes": mine.moved, "time_ns": mine.duration})

    def merge(self, other: WritesBySample) -> None:
        """Add the writes of other calls."""
        self.table.merge(other.table)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `table`."""
        return self.table.columns()


def memory_of_nodes(run: Run) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the node of each rank (-1: none), and of each node the times and dirty shares of its samples."""
    hosts = {process.rank: process.host for process in run.info.processes}
    samples = run.surroundings().known("dirty_bytes").columns
    dirty = samples["dirty_bytes"] + np.maximum(samples["writeback_bytes"], 0)
    share = dirty / np.maximum(dirty + np.maximum(samples["available_bytes"], 0), 1)
    names = sorted({hosts.get(rank, "") for rank in np.unique(samples["rank"]).tolist()})
    of_sample = np.array([names.index(hosts.get(rank, "")) for rank in samples["rank"].tolist()], np.int64)
    memory = []
    for number in range(len(names)):
        mine = np.flatnonzero(of_sample == number)
        mine = mine[np.argsort(samples["time"][mine], kind="stable")]
        memory.append((samples["time"][mine], share[mine]))
    node = np.full(max([rank for rank in hosts if rank >= 0], default=0) + 1, -1)
    for rank, host in hosts.items():
        if rank >= 0 and host in names:
            node[rank] = names.index(host)
    return node, memory


def _check(run: Run) -> None:
    if not len(run.surroundings().known("dirty_bytes")):
        raise NotApplicable(
            "the run has no samples of the kernel's memory: record it with ensio, without "
            "ENSIO_SURROUNDINGS=0"
        )


def _find(case: Case, summary: WritesBySample) -> Remedy | None:
    table = summary.to_arrays()
    _, memory = memory_of_nodes(case.run)
    ends = [np.concatenate([share, share[-1:]]) for _, share in memory]
    before = [np.concatenate([share[:1], share]) for _, share in memory]
    if not len(table["node"]) or max(float(share.max()) for share in ends) < LITTLE:  # no writer waits
        return None
    pairs = list(zip(table["node"].tolist(), table["interval"].tolist(), strict=True))
    level = np.array([(ends[node][at] + before[node][at]) / 2 for node, at in pairs])
    slowness = np.log(table["time_ns"] / table["bytes"])
    if len(level) < LEAST_CALLS:
        raise NotApplicable(
            f"the memory of the nodes was sampled {count_text(len(level), 'time')} while tasks wrote, and "
            f"{LEAST_CALLS} are needed: record a longer run (a sample is taken every few seconds)"
        )
    near = level >= DENSE * level.max()
    if near.all() or not near.any():
        return None
    difference = _difference(slowness, near)
    p = p_of_chance(difference, lambda rng: _difference(rng.permutation(slowness), near))
    factor = float(np.exp(difference))
    if p > LEVEL or factor < LEAST_RATIO:
        return None
    part = float(table["time_ns"][near].sum() / table["time_ns"].sum())
    rows = (case.op == "write") & (case.rows["depth"] == 0) & (case.rows["bytes"] > 0)
    saved = np.where(rows, case.rows["time_ns"] * part * (1 - 1 / factor), 0.0)
    checks = (
        Check("near-the-limit", f"up to {share_text(level.max())} of the memory of a node is dirty"),
        Check(
            "not-by-chance",
            f"in {int(near.sum())} of {len(level)} intervals between samples, writes take "
            f"{number_text(factor)} times as long per byte: permutation of intervals, p = {p:.2g}",
        ),
    )
    title = f"writes take {number_text(factor)} times as long while dirty pages are near their limit"
    evidence = {"dirty_share": float(level.max()), "slowdown": factor, "p": p, "intervals": len(level)}
    # The bytes have to reach the disk: what is gained is at most what computation can hide.
    return Remedy(rows, saved, title, checks, evidence, np.zeros(len(case)), saved)


def _difference(slowness: np.ndarray, near: np.ndarray) -> float:
    return float(np.median(slowness[near]) - np.median(slowness[~near]))


rule = EvidenceRule(
    "write-back",
    _find,
    {"writes-by-sample": SummaryRequest(WritesBySample.for_run, WritesBySample.columns)},
    _check,
)
