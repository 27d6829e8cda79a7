"""Calls on paths: which functions look a path up, and which of these calls a program could leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, how_long
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import DENSE, LARGE_BYTES, LEAST_CALLS, LOW
from ensembles.diagnosis.principles import ADVICE_OF_CALLS, ADVICE_OF_FAILURES, ADVICE_OF_PATHS
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.storage_load import without_the_flush_ns
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows
from ensembles.model.error_names import error_name
from ensembles.model.levels import AGAIN, FEW, MOST
from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.structure.phases.critical_path import Busy

if TYPE_CHECKING:
    from ensembles.run.run import Run


_FILE_CALLS = (
    "chmod chown dup dup2 dup3 fallocate fchmod fchmodat fchown fchownat fcntl fcntl_lock fgetxattr "
    "flistxattr flock fremovexattr fsetxattr fstat fstatfs fstatvfs ftruncate futimens futimes futimesat "
    "lchown lockf lremovexattr lsetxattr lutimes posix_fadvise posix_fallocate readahead readdir removexattr "
    "setxattr truncate utime utimensat utimes"
)
NO_LOOKUPS = frozenset(_FILE_CALLS.split(" ")) | {"mmap", "mremap", "munmap"}
"""Functions of the operation ``meta`` that look no path up for its own sake: of open files, or changes."""

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
    found: np.ndarray = np.isin(op, ("open", "meta")) & ~np.isin(name, [*NO_LOOKUPS, *CHANGING])
    return found


def reads_folders(case: Case) -> bool:
    """Return whether tasks read folders, and ask for paths about as often as folders have entries."""
    read = int(case.rows["n"][case.name == "readdir"].sum())
    return read >= AGAIN and read >= MOST * case.rows["n"][looks_up(case.name, case.op)].sum()


def habit_of_lookups(case: Case, uses: FileUses) -> str:
    """Return which advice calls on paths take: ``once`` on each, a ``scan`` of folders, or on a ``path``."""
    asked = case.rows["n"] * looks_up(case.name, case.op)
    if len(uses.table.columns()["n"]) and _of_same_paths(case, uses) @ asked < MOST * asked.sum():
        return "once"
    return "scan" if reads_folders(case) else "path"


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
    if not len(uses.table.columns()["n"]):
        name, which = (
            "more-calls-than-files",
            f"no new path: the run knows {len(case.run.files) - 1:,} of them",
        )
    sentence = f"{again:,} of {count:,} calls ask for {which}"
    return Avoidable(share, rows, Check(name, sentence))


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
    if not moves and 2 * int(table["n"][removes & chosen & ~written].sum()) > count:
        name, verb = "lock-file", "removes, without a byte written to it,"
    sentence = f"{count:,} times, a task {verb} a path that it makes again ({count_text(files, 'path')})"
    return Avoidable(share, counted, Check(name, sentence))


LEAST_FILES = 32
"""Paths that several tasks ask for from which one task could ask for all."""


def opened_by_all(case: Case, uses: FileUses) -> tuple[np.ndarray, tuple[str, ...], Check | None]:
    """Compute which share of the lookups and closes others make for the same paths, or small files."""
    table = uses.table.columns()
    op, posix = case.ops[table["call"]], case.layers[table["call"]] == "posix"
    nothing = np.zeros(len(case)), (), None
    opens = posix & looks_up(case.names[table["call"]], op)
    if len(case.ranks) < 2 or not opens.any():
        return nothing
    size = int(table["file"].max()) + 1
    pairs, _ = distinct_rows(table["file"][opens], table["rank"][opens])
    tasks = np.bincount(pairs[0], minlength=size)
    moved = np.bincount(table["file"][posix], table["bytes"][posix], size)
    times = np.bincount(table["file"][opens], table["n"][opens], size)
    read_only = np.bincount(table["file"], table["bytes"] * (posix & (op == "write")), size) <= moved / 2
    chosen = (tasks >= max(2, len(case.ranks) / 2)) & (moved <= LARGE_BYTES * times) & read_only
    if np.count_nonzero(chosen) < LEAST_FILES:
        return nothing
    mine = (opens | (posix & (op == "close"))) & chosen[table["file"]]
    share = share_of_rows(case, table, mine, 1 - 1 / np.maximum(tasks, 1)[table["file"]])
    numbers = np.flatnonzero(chosen)
    names = tuple(case.run.files[number] for number in numbers.tolist())
    each = bytes_text(round(float(moved[chosen].sum() / times[chosen].sum())))
    sentence = (
        f"{count_text(len(numbers), 'path')} with {each} for each call are asked for by "
        f"{tasks[chosen].min()} tasks or more each"
    )
    return share, names, Check("same-files-by-all", sentence)


REWRITE = (
    "write only the bytes that change: open the file once and write to their places in it, or write the file "
    "less often; an open that empties it (O_TRUNC, mode w) waits until all that it held is thrown away"
)


def written_anew(case: Case, uses: FileUses, counted: np.ndarray) -> str:
    """Say how much large files get that are written whole after each open; ``""``: most opens differ."""
    table, files = uses.table.columns(), len(case.run.files)
    op, layer = case.ops[table["call"]], case.layers[table["call"]]
    stored = np.isin(layer, STORAGE)
    moved, *opens = (
        np.bincount(table["file"], table[name] * (np.isin(layer, layers) & (op == kind)), files)
        for name, layers, kind in (("bytes", STORAGE, "write"), *(("n", (each,), "open") for each in STORAGE))
    )
    times = np.maximum(*opens)  # a stream is opened by a call inside
    held = np.zeros(files, np.int64)
    np.maximum.at(held, table["file"], np.where(stored & (op == "write"), table["high"], 0))
    anew = (times >= LEAST_CALLS) & (moved >= times * np.maximum(held / 2, LARGE_BYTES))
    time_ns = case.rows["time_ns"] * counted
    of_opens = share_of_rows(case, table, stored & (op == "open") & anew[table["file"]])
    if 2 * float(of_opens @ time_ns) <= time_ns.sum():
        return ""
    written, sizes = (bytes_text(int(each[anew].sum())) for each in (moved, held))
    return f"{written} are written to {count_text(int(anew.sum()), 'file')} of {sizes}"


def leave_out_calls(case: Case, uses: FileUses) -> Remedy | None:
    """Compute what calls on paths cost that a program could leave out."""
    temporary = removed_again(case, uses)
    again = asked_again(case, uses, temporary)
    shared, files, files_check = opened_by_all(case, uses)
    asked = np.maximum(again.share, shared)
    rows = (asked > 0) | (temporary.share > 0)
    if not rows.any():
        return None
    share = np.minimum(asked + temporary.share, 1.0)
    counted = again.counted | temporary.counted | ((shared > 0) & (case.op != "close"))
    likely = _habitual_ns(case, rows) * share
    saved = np.minimum(likely, share * without_the_flush_ns(case, counted))
    removes = float((saved * temporary.share)[counted].sum()) > float((saved * asked)[counted].sum())
    moves = removes and temporary.check is not None and temporary.check.name == "made-and-moved"
    if moves:  # other lookups, such as of a search, are another habit
        counted, share, again = temporary.counted, temporary.share, Avoidable(again.share, counted, None)
        rows = share > 0
        likely = _habitual_ns(case, rows) * share
        saved = np.minimum(likely, share * without_the_flush_ns(case, counted))
    count = int(case.rows["n"][counted].sum())
    each_s = float(case.rows["time_ns"][counted].sum()) / max(count, 1) * 1e-9
    repeated = int(np.rint(np.sum(case.rows["n"] * share * counted)))
    if repeated < AGAIN and not removes:
        return None
    checks = tuple(each for each in (again.check, temporary.check, files_check) if each is not None)
    what = "for paths that other tasks ask for too"
    if again.check is not None:
        is_other = again.check.name == "paths-asked-before"
        what = "for paths that the task asked for before" if is_other else "for the same path again"
    advice = ""
    title = f"{count:,} calls on paths, {repeated:,} of them {what}, {how_long(case, counted)}"
    if removes and temporary.check is not None:
        took_s = 1e-9 * float(case.rows["time_ns"] @ temporary.share)
        title = (
            f"files are made and {'moved' if moves else 'removed'} again and again, which takes "
            f"{seconds_text(took_s)}: {temporary.check.sentence}"
        )
        advice = ADVICE_OF_PATHS[temporary.check.name]
    elif reads_folders(case):
        advice = ADVICE_OF_CALLS["scan"]
    anew = "" if removes else written_anew(case, uses, counted)
    advice = REWRITE if anew else advice
    # A file that is kept has to be emptied instead.
    low = np.where(temporary.share > asked, LOW, DENSE) * saved
    return Remedy(
        # Closes that go with the calls gain too, but who looks at the calls wants those on paths.
        counted & rows if (counted & rows).any() else rows,
        saved,
        f"{title}; {anew}" if anew else title,
        checks,
        {"repeated": repeated, "mean_s": each_s},
        case.kept_after_flush(np.where(counted, low, 0.0)),
        likely,
        files,
        advice=advice,
    )


def _habitual_ns(case: Case, rows: np.ndarray) -> np.ndarray:
    """Take single long calls off (`Case.habitual_ns`), but of removals: those are of the same file again."""
    return case.habitual_ns(rows & (case.op != "close") & ~np.isin(case.name, list(REMOVING | MOVING)))
