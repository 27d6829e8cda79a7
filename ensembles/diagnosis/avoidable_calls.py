"""What a program gains that asks for each path once, or keeps a file: one remedy of ``metadata-storm``."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case, how_long
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.flushes import without_the_flush_ns
from ensembles.diagnosis.limits import AGAIN, LARGE_BYTES, LEAST_CALLS, LOW
from ensembles.diagnosis.path_calls import (
    MOVING,
    REMOVING,
    Avoidable,
    asked_again,
    reads_folders,
    removed_again,
)
from ensembles.diagnosis.principles import ADVICE_OF_CALLS, ADVICE_OF_PATHS
from ensembles.diagnosis.remedy import SHORTER_QUEUES, Remedy
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import bytes_text, count_text, seconds_text

LEAST_FILES = 32
"""Files that several tasks open from which one task could open them for all."""


def opened_by_all(case: Case, uses: FileUses) -> tuple[np.ndarray, tuple[str, ...], Check | None]:
    """Compute which share of the opens and closes others make for the same small files."""
    table = uses.table.columns()
    op, posix = case.ops[table["call"]], case.layers[table["call"]] == "posix"
    nothing = np.zeros(len(case)), (), None
    opens = posix & (op == "open")
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
    mine = posix & np.isin(op, ("open", "close")) & chosen[table["file"]]
    share = share_of_rows(case, table, mine, 1 - 1 / np.maximum(tasks, 1)[table["file"]])
    numbers = np.flatnonzero(chosen)
    names = tuple(case.run.files[number] for number in numbers.tolist())
    each = bytes_text(round(float(moved[chosen].sum() / times[chosen].sum())))
    sentence = (
        f"{count_text(len(numbers), 'file')} with {each} for each open are opened by {tasks[chosen].min()} "
        "tasks or more each"
    )
    return share, names, Check("same-files-by-all", True, sentence)


KEPT = 0.75
"""Part of the saving at the lower end: what an open reads, the program may need later."""


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
    what = "for files that other tasks open too"
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
    low = np.where(temporary.share > asked, LOW, KEPT) * saved
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
        fewer=case.rows["n"] * share,
        parts=SHORTER_QUEUES,
        advice=advice,
    )


def _habitual_ns(case: Case, rows: np.ndarray) -> np.ndarray:
    """Take single long calls off (`Case.habitual_ns`), but of removals: those are of the same file again."""
    return case.habitual_ns(rows & (case.op != "close") & ~np.isin(case.name, list(REMOVING | MOVING)))
