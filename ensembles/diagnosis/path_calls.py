"""Calls on paths: which functions look a path up, and which of these calls a program could leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import AGAIN, FEW, MOST
from ensembles.diagnosis.principles import ADVICE_OF_FAILURES
from ensembles.diagnosis.with_meetings import Busy
from ensembles.model.distinct import distinct_rows
from ensembles.model.error_names import error_name

if TYPE_CHECKING:
    from ensembles.run.run import Run

_FILE_CALLS = (
    "dup dup2 dup3 fallocate fchmod fchown fcntl fcntl_lock fgetxattr flistxattr flock fremovexattr "
    "fsetxattr fstat fstatfs fstatvfs ftruncate futimens futimes lockf posix_fadvise posix_fallocate "
    "readahead readdir"
)
ON_DESCRIPTORS = frozenset(_FILE_CALLS.split(" ")) | {"mmap", "mremap", "munmap"}
"""Functions of the operation ``meta`` that take an open file: they ask for no path."""

ON_OPEN = ("fcntl", "fstat", "lseek", "posix_fadvise")
"""Functions without bytes that go with an open: a file that is kept open needs them once."""

REMOVING = frozenset(("remove", "unlink", "unlinkat"))
MOVING = frozenset(("rename", "renameat", "renameat2"))
_CHANGES = "link linkat mkdir mkdirat mkfifo mkfifoat mknod mknodat mkstemp rmdir symlink symlinkat"
CHANGING = REMOVING | MOVING | frozenset(_CHANGES.split(" "))
"""Functions that make, move or remove a path: none of them can be answered from memory."""


class Avoidable(NamedTuple):
    """Calls that a program could leave out."""

    share: np.ndarray  # float64, shape (n,): Share of each row of the case
    # bool, shape (n,): Rows of calls on paths, without closes and other calls that go with them
    counted: np.ndarray
    check: Check | None  # None: there are no such calls


def refuse_merged_paths(run: Run) -> None:
    """Refuse a run with more paths than a process keeps: calls on the others look as if on one."""
    if run.info.calls_on_other_paths:
        raise NotApplicable(
            "there are more paths than a process keeps, so that calls on them may all differ: record a run "
            "with fewer files"
        )


def looks_up(name: np.ndarray, op: np.ndarray) -> np.ndarray:
    """Find functions that look a path up, which a program could ask once: shape of the arguments."""
    found: np.ndarray = np.isin(op, ("open", "meta")) & ~np.isin(name, [*ON_DESCRIPTORS, *CHANGING])
    return found


def reads_folders(case: Case) -> bool:
    """Return whether tasks read folders, and ask for paths about as often as folders have entries."""
    read = int(case.rows["n"][case.name == "readdir"].sum())
    return read >= AGAIN and read >= MOST * case.rows["n"][looks_up(case.name, case.op)].sum()


class Polled(NamedTuple):
    """Calls on paths that fail and are made again until they succeed."""

    share: np.ndarray  # float64, shape (n,): Share of the failed ones in each row of the case
    files: tuple[str, ...]  # Their paths, those with most failures first
    errors: tuple[str, ...]
    between_s: float  # From the first failure on each path to the last: tasks waited at most that long


def polled(case: Case, uses: FileUses) -> Polled | None:
    """Find calls that fail on a path again and again, and succeed in the end."""
    if polled not in case.shared:
        case.shared[polled] = _polled(case, uses)
    found: Polled | None = case.shared[polled]
    return found


def _polled(case: Case, uses: FileUses) -> Polled | None:
    table, calls = uses.table.columns(), case.run.calls
    if case.failed is None or not case.failed.count or not len(table["n"]):
        return None
    failed = case.failed.to_arrays()
    numbers = {f"{call.layer}:{call.name}": at for at, call in enumerate(calls)}
    failed["call"] = np.array([numbers[name] for name in failed["call"].tolist()])
    width = len(calls)
    pair, theirs = (each["file"] * width + each["call"] for each in (failed, table))
    whole = np.bincount(theirs, table["n"], int(max(pair.max(), theirs.max())) + 1)
    names = np.array([error_name(error) for error in failed["error"].tolist()])
    op = case.ops[failed["call"]]
    # Files of a lock are removed for the next task; a file that is there for good is not waited for.
    removes = np.isin(case.names[table["call"]], list(REMOVING))
    removed = np.bincount(table["file"], table["n"] * removes, max(int(failed["file"].max()) + 1, 1))
    tasks = failed["high_rank"] - failed["low_rank"] + 1
    again = (failed["file"] > 0) & np.isin(names, list(ADVICE_OF_FAILURES)) & np.isin(op, ("open", "meta"))
    again &= (failed["count"] >= AGAIN * tasks) & (failed["count"] < whole[pair])
    again &= (names != "EEXIST") | (removed[failed["file"]] >= FEW)
    # A path that is removed only if it is there is not waited for.
    asks = looks_up(case.names[failed["call"]], op)
    again &= (names != "ENOENT") | (asks & _asks_only(failed, table, again))
    if not again.any():
        return None
    part = np.zeros(len(whole))
    np.add.at(part, pair[again], failed["count"][again])
    part = (part / np.maximum(whole, 1))[theirs]
    share = share_of_rows(case, table, part > 0, part, of="n")
    order = np.argsort(-failed["count"] * again, kind="stable")[: np.count_nonzero(again)]
    files = tuple(dict.fromkeys(case.run.files[at] for at in failed["file"][order].tolist()))
    errors = tuple(dict.fromkeys(names[order].tolist()))
    first, last = failed["first_ns"][again], failed["last_ns"][again]
    between_ns = Busy({"start_ns": first, "end_ns": last}, np.zeros(len(first), np.int64), 1)
    return Polled(share, files, errors, 1e-9 * float(between_ns.most_ns(last - first)[0]))


def _asks_only(failed: dict[str, np.ndarray], table: dict[str, np.ndarray], again: np.ndarray) -> np.ndarray:
    """Find failures between whose first and last their tasks make fewer calls on files that are there."""
    others = ~np.isin(table["file"], failed["file"][again])
    rank, start_ns, end_ns, count = (table[name][others] for name in ("rank", "start_ns", "end_ns", "n"))
    found = again.copy()
    for at in np.flatnonzero(again).tolist():
        inside = (start_ns >= failed["first_ns"][at]) & (end_ns <= failed["last_ns"][at])
        inside &= (rank >= failed["low_rank"][at]) & (rank <= failed["high_rank"][at])
        found[at] = count[inside].sum() < failed["count"][at]
    return found


def asked_again(case: Case, uses: FileUses, temporary: Avoidable) -> Avoidable:
    """Find lookups of paths that the task looked up before, and the closes and calls that go with opens."""
    posix = case.layer == "posix"
    before, earlier = case.rows["repeats"], np.rint(_of_same_paths(case, uses) * case.rows["n"])
    waits = polled(case, uses)
    gone = temporary.share if waits is None else temporary.share + waits.share
    repeats = np.maximum(before, earlier) - np.rint(gone * case.rows["n"])
    # A call that a signal interrupted has to be made again: it does not ask once more.
    repeats = np.where(case.interrupted_share < MOST, repeats, 0)
    rows = posix & looks_up(case.name, case.op)
    rows &= (repeats >= MOST * case.rows["n"]) & (case.rows["n"] >= FEW)
    share = np.where(rows, repeats / case.rows["n"], 0.0)
    if not rows.any():
        return Avoidable(share, rows, None)
    # A file that stays open is not closed, and neither asked about nor moved to its end again.
    opens = case.by_cell(np.where(rows & (case.op == "open"), repeats, 0))
    for with_opens in (posix & (case.op == "close"), *(posix & (case.name == name) for name in ON_OPEN)):
        calls = case.by_cell(np.where(with_opens, case.rows["n"], 0))
        part = np.divide(opens, calls, out=np.zeros_like(opens), where=calls > 0)
        share += np.where(with_opens, np.minimum(case.of_cells(part), 1.0), 0.0)
    share = np.minimum(share, 1 - temporary.share)
    again, count = int(repeats[rows].sum()), int(case.rows["n"][rows].sum())
    name, which = "same-path-again", "the path of the task's call before"
    if before[rows].sum() < MOST * again:
        name, which = (
            "paths-asked-before",
            "a path that the task asked for before, with other paths in between",
        )
    if case.evidence.are_sums:
        name, which = (
            "more-calls-than-files",
            f"no new path: the run knows {len(case.run.files) - 1:,} of them",
        )
    sentence = f"{again:,} of {count:,} calls ask for {which}"
    return Avoidable(share, rows, Check(name, True, sentence))


def _of_same_paths(case: Case, uses: FileUses) -> np.ndarray:
    """Compute the share of each row's lookups that are not the first of their task, function and path."""
    table = uses.table.columns()
    names, ops, layers = (each[table["call"]] for each in (case.names, case.ops, case.layers))
    chosen = (layers == "posix") & looks_up(names, ops)
    _, of = distinct_rows(table["file"], table["rank"], table["call"])
    asked = np.bincount(of, table["n"])[of] if len(of) else np.zeros(0)
    again = np.where(asked >= AGAIN, 1 - 1 / np.maximum(asked, 1), 0.0)
    return share_of_rows(case, table, chosen, again, of="n")


def removed_again(case: Case, uses: FileUses) -> Avoidable:
    """Find files that a task makes and removes, or moves, again and again, such as journals of databases."""
    table = uses.table.columns()
    names, ops, layers = (each[table["call"]] for each in (case.names, case.ops, case.layers))
    posix = layers == "posix"
    removes = posix & np.isin(names, list(REMOVING | MOVING))
    if not removes.any():
        return Avoidable(np.zeros(len(case)), np.zeros(len(case), bool), None)
    pairs = distinct_rows(table["file"], table["rank"])[1]
    removed = np.bincount(pairs, table["n"] * removes)[pairs]
    moved = np.bincount(pairs, table["n"] * np.isin(names, list(MOVING)))[pairs]
    synced = np.bincount(pairs, table["n"] * (posix & (ops == "sync")))[pairs]
    # A file that is synced before it is moved to its place is whole for its readers.
    again = np.where(moved > 0, (removed >= AGAIN) & (synced < moved), removed >= FEW)
    chosen = posix & again & (removes | np.isin(ops, ("open", "close")))
    share = share_of_rows(case, table, chosen, 1 - 1 / np.maximum(removed, 1))
    counted = (share > 0) & (case.layer == "posix") & (case.op != "close")
    if not counted.any():
        return Avoidable(np.zeros(len(case)), counted, None)
    count = int(table["n"][removes & chosen].sum())
    files = len(np.unique(table["file"][removes & chosen]))
    moves = 2 * int(table["n"][chosen & np.isin(names, list(MOVING))].sum()) > count
    name, verb = ("made-and-moved", "moves") if moves else ("made-and-removed", "removes")
    written = np.bincount(table["file"], table["bytes"] * (ops == "write"))[table["file"]] > 0
    if 2 * int(table["n"][removes & chosen & ~written].sum()) > count:
        name, verb = "lock-file", "removes, without a byte written to it,"
    sentence = f"{count:,} times, a task {verb} a path that it makes again ({files:,} of them)"
    return Avoidable(share, counted, Check(name, True, sentence))
