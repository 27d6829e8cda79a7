"""Rule ``lock-contention``: nodes take the lock of the same stripes from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.stripe_writes import REQUEST, StripeWrites, alternation
from ensembles.model.units import number_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEVEL = 0.01
LEAST_FACTOR = 1.3
LEAST_WRITES = 32


def _check(run: Run) -> None:
    if not any("lustre.lov" in facts for facts in run.info.file_facts.values()):
        raise NotApplicable("the stripes of the files are not known: record the run on Lustre")
    hosts = {process.host for process in run.info.processes if process.host}
    if not hosts:
        raise NotApplicable("the nodes of the tasks are not known: record the run with ensio")
    if len(hosts) < 2:
        raise NotApplicable("all tasks are on one node, which holds its locks: record a run on several nodes")


def _find(case: Case, summary: StripeWrites) -> Remedy | None:
    nodes = case.nodes_of_tasks()
    if nodes is None:
        raise NotApplicable("the nodes of some tasks are not known: record all tasks with ensio")
    rows = summary.to_arrays()
    follows, taken, effect, p = alternation(rows, case.ranks, nodes)
    if len(follows) < LEAST_WRITES:
        return None
    if taken.all():
        raise NotApplicable(
            "every write follows one of another node in its stripe, and none shows what a write without "
            "a lock takes: record a run with several tasks on each node"
        )
    factor = float(np.exp(effect))
    if p > LEVEL or factor < LEAST_FACTOR:
        return None
    task = np.searchsorted(case.ranks, rows["rank"])
    writes = (case.op == "write") & (case.layer == "posix") & np.isin(case.rows["call"], rows["call"])
    whole = np.bincount(task, minlength=len(case.ranks))
    part = np.bincount(task[follows][taken], minlength=len(case.ranks)) / np.maximum(whole, 1)
    share = np.where(writes, part[case.task], 0.0)
    saved = case.rows["time_ns"] * share * (1 - 1 / factor)
    files = np.unique(rows["file"][follows[taken]])
    error_s = case.run.info.clock_error_s
    usual_s = float(np.median(rows["duration"])) * 1e-9
    clocks = None if error_s is None else error_s < usual_s or None
    checks = (
        Check(
            "not-by-chance",
            True,
            f"{int(taken.sum()):,} of {len(taken):,} writes follow one of another node in their stripe: "
            f"permutation of tasks over nodes, p = {p:.2g}",
        ),
        Check("not-the-alignment", True, "compared are writes of one size with as many ends inside a stripe"),
        Check(
            "clocks",
            clocks,
            f"clocks of nodes agree to {'an unknown time' if error_s is None else seconds_text(error_s)}; "
            f"a write takes {seconds_text(usual_s)}",
        ),
    )
    return Remedy(
        share > 0,
        saved,
        f"writes to a stripe that another node wrote before take {number_text(factor)} times as long",
        checks,
        {"slowdown": factor, "p": p, "stripes_sampled_share": summary.share, "writes": int(taken.sum())},
        0.6 * saved,
        1.2 * saved,
        tuple(case.run.files[number] for number in files.tolist()),
    )


rule = EvidenceRule("lock-contention", _find, {"stripe-writes": REQUEST}, _check)
