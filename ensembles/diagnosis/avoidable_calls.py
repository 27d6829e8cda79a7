"""What a program gains that asks for each path once, or keeps a file: one remedy of ``metadata-storm``."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import FROM_SHARE
from ensembles.diagnosis.flushes import without_the_flush_ns
from ensembles.diagnosis.path_calls import (
    FEW_LONG,
    ON_DESCRIPTORS,
    Avoidable,
    asked_again,
    removed_again,
    without_single_long_ns,
)
from ensembles.diagnosis.remedy import SHORTER_QUEUES, Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.shared_opens import opened_by_all
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import count_text, seconds_text, share_text

_LOW, _LOW_OF_REMOVED = 0.75, 0.5
"""Parts of the saving at the lower end; a file that is kept has to be emptied instead."""

_FEW_LONG = 3.0
"""Ratio of the mean to the median from which a mean describes no call."""

_LONG_NS = 1e6
"""Mean duration from which calls on the path of a file are long."""

_FEW_FILES = 8

ADVICE = (
    "ask once and keep the answer: open a file once and keep it open, let one task look a "
    "path up and broadcast the "
    "result, leave out stat and access before open; administrator: look at the load of the metadata server"
)

KEEP_FILE = (
    "keep the file, and empty it or write over it, instead of removing it and making it again (SQLite: "
    "journal_mode=WAL, PERSIST or TRUNCATE); a file of the task alone can be in memory or on a local disk"
)

MOVE_LESS = (
    "write more into a file before it is moved to its place, such as once in several steps; a file that "
    "no process reads meanwhile need not be moved at all: write into it, and keep it open"
)


def leave_out_calls(case: Case, uses: FileUses) -> Remedy | None:
    """Compute what calls on paths cost that a program could leave out.

    Parameters
    ----------
    case : Case
    uses : FileUses
        Filled.

    Returns
    -------
    Remedy or None
        None: there are no such calls.
    """
    temporary = removed_again(case, uses)
    again = asked_again(case, uses, temporary)
    shared, files, files_check = opened_by_all(case, uses)
    asked = np.maximum(again.share, shared)
    rows = (asked > 0) | (temporary.share > 0)
    if not rows.any():
        return None
    share = np.minimum(asked + temporary.share, 1.0)
    counted = again.counted | temporary.counted | ((shared > 0) & (case.op != "close"))
    high = without_single_long_ns(case, rows) * share
    saved = np.minimum(high, share * without_the_flush_ns(case, counted))
    removes = float((saved * temporary.share)[counted].sum()) > float((saved * asked)[counted].sum())
    moves = removes and temporary.check is not None and temporary.check.name == "made-and-moved"
    if moves:  # other lookups, such as of a search, are another habit
        counted, share, again = temporary.counted, temporary.share, Avoidable(again.share, counted, None)
        rows = share > 0
        high = without_single_long_ns(case, rows) * share
        saved = np.minimum(high, share * without_the_flush_ns(case, counted))
    count = int(case.rows["n"][counted].sum())
    each_s = float(case.rows["time_ns"][counted].sum()) / max(count, 1) * 1e-9
    repeated = int(np.rint(np.sum(case.rows["n"] * share * counted)))
    checks = tuple(each for each in (again.check, temporary.check, files_check) if each is not None)
    what = "for files that other tasks open too"
    if again.check is not None:
        is_next = again.check.name == "same-path-again"
        what = "for the same path again" if is_next else "for paths that the task asked for before"
    advice = ADVICE
    if removes and temporary.check is not None:
        what = f"for files that are made and {'moved' if moves else 'removed'} again"
        advice = MOVE_LESS if moves else KEEP_FILE
    low = np.where(temporary.share > asked, _LOW_OF_REMOVED, _LOW) * saved
    return Remedy(
        # Closes that go with the calls gain too, but who looks at the calls wants those on paths.
        counted & rows if (counted & rows).any() else rows,
        saved,
        f"{count:,} calls on paths, {share_text(repeated / max(count, 1))} of them {what}, "
        f"{_how_long(case, counted, each_s)}",
        advice,
        checks,
        {"repeated": repeated, "mean_s": each_s},
        case.kept_after_flush(np.where(counted, low, 0.0)),
        high,
        files,
        fewer=case.rows["n"] * share,
        parts=SHORTER_QUEUES,
    )


def _how_long(case: Case, counted: np.ndarray, each_s: float) -> str:
    """Say how long a call takes; where a few long ones make the mean, also what it usually takes."""
    if not counted.any():
        return f"take {seconds_text(each_s)} each"
    usual_s = case.median_ns(counted) * 1e-9
    if each_s < _FEW_LONG * usual_s:
        return f"take {seconds_text(each_s)} each"
    return (
        f"usually take {seconds_text(usual_s)} each; a few long ones raise the mean to {seconds_text(each_s)}"
    )


def refuse_long_calls(case: Case, uses: FileUses) -> None:
    """Refuse a run of which a few long calls on the path of a file take a notable part.

    Nothing is asked twice, and yet the tasks wait for it, as for the removal of a large file.

    Parameters
    ----------
    case : Case
    uses : FileUses
        Filled.

    Raises
    ------
    NotApplicable
        There are such calls.
    """
    table = uses.table.columns()
    kinds = [(c.layer == "posix" and c.op in ("open", "meta"), c.name) for c in case.run.calls]
    on_paths = np.array([posix and name not in ON_DESCRIPTORS for posix, name in kinds] or [False])
    rows = np.flatnonzero(on_paths[table["call"]])
    names, pair = distinct_rows(table["file"][rows], table["call"][rows])
    count, time_ns = (np.bincount(pair, table[name][rows], names.shape[1]) for name in ("n", "time_ns"))
    long = (count <= FEW_LONG * len(case.ranks)) & (time_ns >= _LONG_NS * count)
    chosen = np.zeros(len(table["n"]), bool)
    chosen[rows] = long[pair]
    at_most_s = case.most_s(share_of_rows(case, table, chosen) * case.rows["time_ns"])
    if at_most_s < FROM_SHARE["warning"] * case.run_s:
        return
    files = len(np.unique(names[0][long]))
    if files > _FEW_FILES:
        calls, each_s = int(count[long].sum()), 1e-9 * float(time_ns[long].sum() / count[long].sum())
        raise NotApplicable(
            f"{calls:,} calls on the paths of {files:,} files take up to {seconds_text(at_most_s)} of this "
            f"run, {seconds_text(each_s)} each, a few for each file: whether the program needs as many "
            "files, one run does not show: record a run with fewer and larger files",
            at_most_s,
        )
    most = int(np.argmax(np.where(long, time_ns, 0.0)))
    file, call = (int(number) for number in names[:, most])
    raise NotApplicable(
        f"few long calls on paths take up to {seconds_text(at_most_s)} of this run, most of all "
        f"{count_text(int(count[most]), 'call')} of {kinds[call][1]} on {case.run.files[file]}: "
        f"{seconds_text(1e-9 * float(time_ns[most]))}; whether the program needs them, one run does not "
        "show: leave them out, or make them where no task waits",
        at_most_s,
    )
