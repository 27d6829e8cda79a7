"""Rule ``metadata-storm``: tasks ask the metadata server for the same paths again and again.

Either a task asks for the path of its call before, or every task opens all files of a set.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.counted.metadata import find_counted
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.flushes import without_the_flush_ns
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule_with_summary import RuleWithSummary
from ensembles.diagnosis.shared_opens import opened_by_all
from ensembles.diagnosis.summed.metadata import find_summed
from ensembles.model.units import seconds_text, share_text

LEAST_CALLS = 2
_SHARE = 0.5
_LOW = 0.75

ADVICE = (
    "ask once and keep the answer: open a file once and keep it open, let one task look a "
    "path up and broadcast the "
    "result, leave out stat and access before open; administrator: look at the load of the metadata server"
)


def _find(case: Case, uses: FileUses) -> Remedy | None:
    again, check = _again(case)
    shared, files, files_check = opened_by_all(case, uses)
    rows = (again > 0) | (shared > 0)
    if not rows.any():
        return None
    share = np.maximum(again, shared)
    opens = rows & (case.op != "close")
    high = case.rows["time_ns"] * share
    saved = np.minimum(high, share * without_the_flush_ns(case, opens))
    count = int(case.rows["n"][opens].sum())
    each_s = float(case.rows["time_ns"][opens].sum()) / count * 1e-9
    repeated = int(np.rint(np.sum(case.rows["n"] * share * opens)))
    checks = tuple(each for each in (check, files_check) if each is not None)
    what = "for the same path again" if check is not None else "for files that other tasks open too"
    low = case.kept_after_flush(_LOW * np.where(opens, saved, 0.0))
    return Remedy(
        rows,
        saved,
        f"{count:,} calls on paths, {share_text(repeated / count)} of them {what}, take "
        f"{seconds_text(each_s)} each",
        ADVICE,
        checks,
        {"repeated": repeated, "mean_s": each_s},
        low,
        high,
        files,
        fewer=case.rows["n"] * share,
    )


def _again(case: Case) -> tuple[np.ndarray, Check | None]:
    """Compute which share of each row's time goes to paths of the call before, and to their closes."""
    rows = np.isin(case.op, ("open", "meta")) & (case.layer == "posix")
    rows &= (case.rows["repeats"] >= _SHARE * case.rows["n"]) & (case.rows["n"] >= LEAST_CALLS)
    share = np.where(rows, case.rows["repeats"] / case.rows["n"], 0.0)
    if not rows.any():
        return share, None
    count, again = int(case.rows["n"][rows].sum()), int(case.rows["repeats"][rows].sum())
    # A file that stays open is not closed either.
    opens = case.by_cell(np.where(rows & (case.op == "open"), case.rows["repeats"], 0))
    closing = (case.op == "close") & (case.layer == "posix")
    closes = case.by_cell(np.where(closing, case.rows["n"], 0))
    with_closes = np.divide(opens, closes, out=np.zeros_like(opens), where=closes > 0)
    share += np.where(closing, np.minimum(case.of_cells(with_closes), 1.0), 0.0)
    sentence = f"{again:,} of {count:,} calls ask for the path of the task's call before"
    return share, Check("same-path-again", True, sentence)


rule = RuleWithSummary(
    "metadata-storm",
    _find,
    "the files of each phase and task",
    counted=lambda run: find_counted(run, ADVICE),
    summed=lambda run: find_summed(run, ADVICE),
    counts_more=True,
)
