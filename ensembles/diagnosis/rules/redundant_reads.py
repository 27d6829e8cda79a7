"""Rule ``redundant-reads``: several tasks read the same bytes from the file system, or one does again."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import NOT_READ_BY_PROGRAM, FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.read_again import read_again
from ensembles.diagnosis.reads_of_files import reads_of_files
from ensembles.diagnosis.remedy import SHORTER_QUEUES, Remedy
from ensembles.model.units import number_text, share_text

LEAST_REDUNDANCY = 2.0

MESSAGE_BYTES_PER_NS = (0.5, 1.0, 4.0)
"""Rates at which a task gets from another one what it does not read, for the least, likely and greatest gain:
reads that memory serves are no slower."""

_DENSE = 0.7

ADVICE = (
    "let one task (or each task its part) read the bytes once, and send them to the "
    "others (with MPI by MPI_Bcast or collective reads); "
    "for many tasks of one node, a copy on node-local storage"
)


def _find(case: Case, uses: FileUses) -> Remedy | None:
    found, again = _read_by_several(case, uses), read_again(case, uses)
    if again is None or (found is not None and case.gain_s(found.saved_ns) > case.gain_s(again.saved_ns)):
        return found
    return again


def _read_by_several(case: Case, uses: FileUses) -> Remedy | None:
    uses_of_files = uses.table.columns()
    table = reads_of_files(case, uses_of_files)
    if not len(table["bytes"]):
        return None
    width = table["high"] - table["low"]
    files, where = np.unique(table["file"], return_inverse=True)
    low = np.full(len(files), np.iinfo(np.int64).max)
    high = np.zeros(len(files), np.int64)
    np.minimum.at(low, where, table["low"])
    np.maximum.at(high, where, table["high"])
    # Dense: a task reads most of its range, so that equal ranges are equal bytes.
    dense = table["bytes"] >= _DENSE * width
    read = np.bincount(where, np.where(dense, np.minimum(table["bytes"], width), 0), len(files))
    redundancy = read / np.maximum(high - low, 1)
    several = np.bincount(where, minlength=len(files)) >= 2
    found = (redundancy >= LEAST_REDUNDANCY) & several
    if not found.any():
        return None
    total = np.bincount(where, table["bytes"], len(files))
    ranks = np.unique(table["rank"][found[where]])
    mean = float(np.average(redundancy[found], weights=total[found]))
    read_of = np.bincount(table["rank"], table["bytes"], int(case.ranks.max()) + 1)
    again_of = np.bincount(
        table["rank"],
        table["bytes"] * (found & True)[where] * (1 - 1 / redundancy.clip(1)[where]),
        int(case.ranks.max()) + 1,
    )
    share = np.divide(again_of, read_of, out=np.zeros(len(read_of)), where=read_of > 0)
    rows = (case.op == "read") & np.isin(case.rows["rank"], ranks) & (case.rows["bytes"] > 0)
    asked = share_of_rows(case, uses_of_files, ~np.isin(uses_of_files["kind"], NOT_READ_BY_PROGRAM))
    rows &= asked > 0
    again = np.where(rows, share[case.rows["rank"]] * asked, 0.0)
    low, saved, high = (
        again * np.maximum(case.rows["time_ns"] - case.rows["bytes"] / rate, 0)
        for rate in MESSAGE_BYTES_PER_NS
    )
    names = tuple(case.run.files[number] for number in files[found][np.argsort(-total[found])].tolist())
    checks = (
        Check(
            "same-bytes",
            True,
            f"{len(ranks)} tasks read ranges that add up to {number_text(mean)} times the range of the file",
        ),
        Check("dense", True, f"each reads at least {share_text(_DENSE)} of the bytes of its range"),
    )
    return Remedy(
        rows,
        saved,
        f"tasks read the same bytes: {number_text(mean)} times what the files hold",
        ADVICE,
        checks,
        {"redundancy": mean, "files": int(found.sum())},
        0.85 * low,
        1.1 * high,
        names,
        parts=SHORTER_QUEUES,
    )


rule = EvidenceRule("redundant-reads", _find, FILE_USES)
