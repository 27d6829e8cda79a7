"""Rule ``write-back``: the kernel holds writers back while the dirty pages of the node are near their "
"limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.writes_by_sample import WritesBySample, memory_of_nodes
from ensembles.model.units import count_text, number_text, share_text
from ensembles.passes.group import SummaryRequest

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_INTERVALS = 8
LEAST_SHARE = 0.05
"""Share of dirty pages in the memory that programs could have, below which no writer waits."""

LEVEL = 0.01
LEAST_FACTOR = 1.5
_NEAR = 0.7
_DRAWS = 400


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
    if not len(table["node"]) or max(float(share.max()) for share in ends) < LEAST_SHARE:
        return None
    pairs = list(zip(table["node"].tolist(), table["interval"].tolist(), strict=True))
    level = np.array([(ends[node][at] + before[node][at]) / 2 for node, at in pairs])
    slowness = np.log(table["time_ns"] / table["bytes"])
    if len(level) < LEAST_INTERVALS:
        raise NotApplicable(
            f"the memory of the nodes was sampled {count_text(len(level), 'time')} while tasks wrote, and "
            f"{LEAST_INTERVALS} are needed: record a longer run (a sample is taken every few seconds)"
        )
    near = level >= _NEAR * level.max()
    if near.all() or not near.any():
        return None
    difference = float(np.median(slowness[near]) - np.median(slowness[~near]))
    rng = np.random.default_rng(0)
    draws = [slowness[rng.permutation(len(level))] for _ in range(_DRAWS)]
    chance = [float(np.median(drawn[near]) - np.median(drawn[~near])) for drawn in draws]
    p = (1 + sum(value >= difference for value in chance)) / (1 + _DRAWS)
    factor = float(np.exp(difference))
    if p > LEVEL or factor < LEAST_FACTOR:
        return None
    part = float(table["time_ns"][near].sum() / table["time_ns"].sum())
    rows = (case.op == "write") & (case.rows["depth"] == 0) & (case.rows["bytes"] > 0)
    saved = np.where(rows, case.rows["time_ns"] * part * (1 - 1 / factor), 0.0)
    checks = (
        Check("near-the-limit", True, f"up to {share_text(level.max())} of the memory of a node is dirty"),
        Check(
            "not-by-chance",
            True,
            f"in {int(near.sum())} of {len(level)} intervals between samples, writes take "
            f"{number_text(factor)} times as long per byte: permutation of intervals, p = {p:.2g}",
        ),
    )
    title = f"writes take {number_text(factor)} times as long while dirty pages are near their limit"
    evidence = {"dirty_share": float(level.max()), "slowdown": factor, "p": p, "intervals": len(level)}
    # The bytes have to reach the disk: what is gained is at most what computation can hide.
    return Remedy(rows, saved, title, checks, evidence, np.zeros(len(case)), saved)


rule = EvidenceRule(
    "write-back",
    _find,
    {"writes-by-sample": SummaryRequest(WritesBySample.for_run, WritesBySample.columns)},
    _check,
)
