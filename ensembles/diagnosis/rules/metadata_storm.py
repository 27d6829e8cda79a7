"""Rules ``metadata-storm`` and ``polling``: tasks ask for the same paths again and again.

A task asks until a path is there, or until it is gone; or it asks for the path of its call before, makes and
removes the same file, or opens a file by a library in each step; or all tasks open all files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, Finding
from ensembles.diagnosis.limits import DENSE, LARGE_BYTES, LEAST_CALLS
from ensembles.diagnosis.path_calls import (
    REMOVING,
    REWRITE,
    leave_out_calls,
    polled,
    refuse_merged_paths,
    written_anew,
)
from ensembles.diagnosis.principles import ADVICE_OF_FAILURES
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.without_calls import counted_case, counted_finding
from ensembles.model.distinct import distinct_rows
from ensembles.model.levels import AGAIN
from ensembles.model.units import bytes_text, count_text, number_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


KEEP_OPEN = (
    "open the file once, before the loop, and keep it open; where each step has to reach the file, flush it "
    "instead of closing it (nc_sync, H5Fflush, MPI_File_sync, fflush)"
)


class OpenedAgain(NamedTuple):
    """Opens of libraries, and closes, that a program could leave out."""

    opens: np.ndarray  # bool, shape (n,): Rows of the case with these opens
    # low, share, high: float64, shape (n,): Share of the time of each row that is in them. The upper two have
    # closes too, and opens of objects, which a library remembers while the file is open; of what closes
    # write, only the last has a share.
    low: np.ndarray
    share: np.ndarray
    high: np.ndarray
    title: str
    files: tuple[str, ...]
    check: Check
    evidence: dict[str, float]


def opened_again(case: Case, uses: FileUses) -> OpenedAgain | None:
    """Find files that tasks open by a library again and again: HDF5, netCDF, MPI-IO, or streams.

    A file that was removed has to be made anew.
    """
    table = uses.table.columns()
    if not table["opens"].any():
        return None
    names, pair = distinct_rows(table["file"], table["rank"])
    opens = np.bincount(pair, table["opens"])
    functions = case.names[table["call"]]
    removals = np.bincount(table["file"], table["n"] * np.isin(functions, list(REMOVING)))
    again = opens - 1 - removals[names[0]]
    again = np.where(again >= AGAIN - 1, again, 0)
    if not again.any():
        return None
    part = (again / np.maximum(opens, 1))[pair]
    has_to_write = np.isin(case.ops[table["call"]], ("write", "sync"))
    opening, besides, closing = (
        share_of_rows(case, table, chosen, part * table[name] / np.maximum(table["time_ns"], 1))
        for name, chosen in (
            ("opening_ns", part > 0),
            ("with_open_ns", ~has_to_write),
            ("with_open_ns", part > 0),
        )
    )
    outermost = (table["opens"] > 0) & (part > 0)
    rows = share_of_rows(case, table, outermost, of="n") > 0
    count, times = int(opens[again > 0].sum()), int(again.sum())
    time_ns, read = (float((table[name] * (part > 0)).sum()) for name in ("opening_ns", "opening_bytes"))
    by = ", ".join(np.unique(functions[outermost]).tolist())
    cost = np.bincount(table["file"], table["opening_ns"] * part)
    files = case.paths(cost)
    reads = f", in which {bytes_text(round(read))} are read" if read >= LARGE_BYTES else ""
    title = (
        f"{count:,} opens of {count_text(len(files), 'file')} by {by}, {times:,} of them of a file that the "
        f"task had open before, take {seconds_text(time_ns * 1e-9 / count)} each with all calls inside{reads}"
    )
    sentence = f"tasks open {count_text(len(files), 'file')} {times:,} times more than once each"
    return OpenedAgain(
        rows,
        np.minimum(DENSE * opening, 1.0),
        np.minimum(opening + besides, 1.0),
        np.minimum(opening + closing, 1.0),
        title,
        files,
        Check("same-file-again", sentence),
        {"opens": count, "mean_s": time_ns * 1e-9 / count, "read_bytes": read},
    )


def find_counted(run: Run) -> Finding | None:
    """Take off the opens and stats of a task and file beyond the first."""
    case = counted_case(run)
    files, totals = case.files, case.module.totals
    count = sum(int(totals.get(name) or 0) for name in ("OPENS", "STATS"))
    pairs = int(np.where(files["is_shared"] > 0, run.tasks, files["records"]).sum())
    if count < LEAST_CALLS * pairs:
        return None
    whole = np.maximum(files["read_s"] + files["write_s"] + files["meta_s"], 1e-12)
    saved = case.time_s * files["meta_s"] / whole * (1 - pairs / count)
    most_s = case.gain_s(saved)
    each_s = float(files["meta_s"].sum() / count)
    checks = (
        Check(
            "again-and-again",
            f"{count:,} opens and stats are {number_text(count / pairs)} for each task and file",
        ),
        Check(
            "which-files", "counters of several files do not show which of these calls takes the time", None
        ),
    )
    return counted_finding(
        case,
        "metadata-storm",
        f"{count:,} opens and stats, {number_text(count / pairs)} for each task and file, up to "
        f"{seconds_text(each_s)} each",
        checks,
        {"calls": count, "mean_s": each_s},
        (0.0, 0.6 * most_s, most_s),
        files["meta_s"] > 0,
    )


def _find(case: Case, uses: FileUses) -> Remedy | None:
    refuse_merged_paths(case.run)
    paths, opened = leave_out_calls(case, uses), opened_again(case, uses)
    if opened is None:
        return paths
    low, saved, high = (case.rows["time_ns"] * each for each in (opened.low, opened.share, opened.high))
    if paths is not None:
        if paths.saved_ns.sum() > saved.sum():
            return paths
        assert paths.low_ns is not None
        assert paths.high_ns is not None
        bounds = zip((low, saved, high), (paths.low_ns, paths.saved_ns, paths.high_ns), strict=True)
        low, saved, high = (np.maximum(*each) for each in bounds)
    anew = written_anew(case, uses, opened.opens)
    return Remedy(
        opened.opens,
        saved,
        f"{opened.title}; {anew}" if anew else opened.title,
        (opened.check,),
        opened.evidence,
        low,
        high,
        opened.files,
        advice=REWRITE if anew else KEEP_OPEN,
    )


def _find_polling(case: Case, uses: FileUses) -> Remedy | None:
    waits = polled(case, uses)
    rows = np.zeros(len(case), bool) if waits is None else waits.share > 0
    if waits is None or not rows.any():
        return None
    saved = case.rows["time_ns"] * waits.share
    count, errors = int(np.rint(case.rows["n"] @ waits.share)), " and ".join(waits.errors)
    names = " and ".join(np.unique(case.name[rows]).tolist())
    until = f"{count_text(count, 'call')} of {names} fail ({errors}) and are made again until they succeed"
    sentence = f"from the first failure on a path to the last are {seconds_text(waits.between_s)} in all"
    needed = "what the tasks wait for may take as long, however they wait"
    return Remedy(
        rows,
        saved,
        f"{until}, on {count_text(len(waits.files), 'path')}",
        (Check("again", sentence), Check("needed", needed, None)),
        {"failed": count, "waiting_s": waits.between_s},
        np.zeros(len(case)),
        files=waits.files,
        advice="; ".join(ADVICE_OF_FAILURES[error] for error in waits.errors),
    )


polling = EvidenceRule("polling", _find_polling, FILE_USES)

rule = EvidenceRule(
    "metadata-storm",
    _find,
    FILE_USES,
    counted=find_counted,
    summed=_find,
    counts_more=True,
)
