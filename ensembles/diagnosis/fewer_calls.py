"""Finding ``fewer-calls``: many calls whose cost comes from no byte, of any function.

Rules name causes by patterns. What no pattern explains is named by its principle: a number of calls, times
what each costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from posixpath import dirname

import numpy as np

from ensembles.diagnosis.accounting import Mended
from ensembles.diagnosis.case import Case, how_long
from ensembles.diagnosis.file_uses import FileUses, chunks_from_cache, share_of_rows, uses_of_rows
from ensembles.diagnosis.finding import LEAST_CALL_SHARE, Check, Finding, matters
from ensembles.diagnosis.limits import LEAST_CALLS
from ensembles.diagnosis.path_calls import CHANGING, MOVING, NO_LOOKUPS, habit_of_lookups
from ensembles.diagnosis.principles import ADVICE_OF_CALLS, FEWER_CALLS
from ensembles.diagnosis.remedy import Remedy, make_finding
from ensembles.diagnosis.rules.small_requests import emptied_streams, first_on_files
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows, extents
from ensembles.model.error_names import error_name
from ensembles.model.events import Call
from ensembles.model.levels import MOST, SMALL_BYTES
from ensembles.model.units import count_text, seconds_text
from ensembles.structure.libraries import LIBRARIES

WITHOUT_BYTES = ("open", "meta", "seek")
"""Operations of storage whose cost is none of bytes; a sync or close may have to write some."""


def with_fewer_calls(
    findings: Sequence[Finding], mended: Mended, case: Case, uses: FileUses, libraries: frozenset[str]
) -> list[Finding]:
    """Add the calls that no finding explains and that cost time whatever they move."""
    found = []
    remedy = _remedy(case, uses, (1 - mended.left_share()) * case.rows["time_ns"], libraries)
    for finding in [] if remedy is None else make_finding(case, FEWER_CALLS, remedy):
        before_s = mended.gain_s()
        share_s = mended.gain_s(finding.saved_ns) - before_s
        if matters(max(share_s, (finding.gain_s or (0.0, 0.0))[1]), case.run_s):
            mended.add(finding.saved_ns)
            found.append(replace(finding, share_s=share_s))
    return [*findings, *found]


def _remedy(case: Case, uses: FileUses, mended_ns: np.ndarray, libraries: frozenset[str]) -> Remedy | None:
    """Find calls whose cost is none of bytes, and of which a task makes many in a phase."""
    table = uses.table.columns()
    of_storage = np.isin(case.layer, STORAGE) & np.isin(case.op, WITHOUT_BYTES)
    of_storage |= emptied_streams(case) & (case.op == "sync")
    share = np.where(of_storage, 1.0, _share_of_objects(case, table, libraries))
    share = np.where((case.op == "sync") & (case.layer == "posix"), _share_of_small_syncs(case, table), share)
    of_calls, likely, most = first_on_files(case, uses)
    share, part = np.where(most > 0, likely, share), np.where(most > 0, of_calls, 1.0)
    calls = np.maximum(_calls_of_functions(case, part * (share > 0) * case.rows["n"]), 1.0)
    rows = (share > 0) & (calls >= LEAST_CALLS)
    likely_ns = np.where(most > 0, case.rows["time_ns"], case.habitual_ns(rows))
    left = np.maximum(1 - mended_ns / np.maximum(likely_ns, 1.0), 0.0)
    rows &= left >= MOST
    if not rows.any():
        return None
    share = np.where(rows, share * left * (1 - 1 / calls), 0.0)
    named = costliest(np.bincount(case.rows["call"], share * likely_ns))
    rows &= np.isin(case.rows["call"], named)
    share = np.where(rows, share, 0.0)
    used_ns = table["time_ns"] * uses_of_rows(case, table, rows)
    folders = {dirname(path) for path in case.run.files}
    is_folder = np.array([path in folders for path in case.run.files], bool)[table["file"]]
    lookups = habit_of_lookups(case, uses)
    told, advice = [], []
    for at in named:
        mine_ns = used_ns * (table["call"] == at)
        is_of_folders = mine_ns @ is_folder > MOST * mine_ns.sum()
        files = distinct_rows(table["file"][mine_ns > 0], table["rank"][mine_ns > 0])[0].shape[1]
        told.append(_said(case, rows & (case.rows["call"] == at), at, files, part, share))
        advice.append(ADVICE_OF_CALLS[_kind_of(case.run.calls[at], is_of_folders, lookups)])
    files = case.paths(np.bincount(table["file"], used_ns, len(case.run.files)))
    or_more = " or more" * bool(case.run.info.calls_on_other_paths)
    on = f", on {len(files):,} paths{or_more}" if len(files) > 1 else f", on {files[0]}" if files else ""
    who = "a task makes" if case.run.info.live_together else "tasks that do not live together make"
    checks = (
        Check("many", f"{who} {LEAST_CALLS} of them or more between two meetings"),
        Check("needed", "whether the program needs as many, one run does not show", None),
    )
    return Remedy(
        rows,
        share * likely_ns,
        "; ".join(told) + on,
        checks,
        {"functions": [case.run.calls[at].name for at in named], **_rest_of_turns(case, rows, mended_ns)},
        low_ns=np.zeros(len(case)),
        high_ns=np.maximum(share, np.where(share > 0, most, 0.0)) * case.rows["time_ns"],
        files=files,
        advice="; ".join(dict.fromkeys(advice)),
    )


def _rest_of_turns(case: Case, rows: np.ndarray, mended_ns: np.ndarray) -> dict[str, float]:
    """Return what a task does besides these calls, from the first on objects to the last; findings aside."""
    of_objects = rows & np.isin(case.layer, list(LIBRARIES))
    if not of_objects.any():
        return {}
    rank, begin, end, time_ns, n = (case.rows[x] for x in ("rank", "start_ns", "end_ns", "time_ns", "n"))
    tasks = int(rank.max()) + 1
    first, last = extents(rank[of_objects], begin[of_objects], end[of_objects], tasks)
    within = (end > first[rank]) & (begin < last[rank])
    spent_ns = (np.where(rows, time_ns, mended_ns) + case.recorder_ns * n) * within
    rest_ns = np.maximum(last - first, 0) - np.bincount(rank, spent_ns, tasks)
    return {"between_s": max(1e-9 * float(rest_ns.max()), 0.0)}


def costliest(time_ns: np.ndarray) -> list[int]:
    """Return the numbers of the functions that take a notable part of the time of all, the largest first."""
    least_ns = min(LEAST_CALL_SHARE * time_ns.sum(), time_ns.max(initial=0.0))
    order = np.argsort(-time_ns, kind="stable").tolist()
    return [at for at in order if time_ns[at] >= max(least_ns, 1.0)]


_ATTRIBUTES = ("H5A", "nc_put_att", "nc_get_att", "ncmpi_put_att", "ncmpi_get_att")


def _kind_of(call: Call, is_of_folders: bool, lookups: str) -> str:
    """Return which advice a function takes."""
    if call.layer in LIBRARIES:
        return "flush" if call.op == "sync" else "library"
    if call.op == "sync":
        of_file = "mapping" if call.name == "msync" else "folder" if is_of_folders else "file"
        return "stream" if call.layer == "stdio" else of_file
    if call.op != "meta":
        return "once" if call.op in ("read", "write") else call.op
    if "lock" in call.name:
        return "lock"
    if call.name in MOVING:
        return "move"
    if call.name in CHANGING:
        return "change"
    return "descriptor" if call.name in NO_LOOKUPS - {"readdir"} else lookups


def _said(case: Case, rows: np.ndarray, number: int, files: int, part: np.ndarray, share: np.ndarray) -> str:
    """Tell number and time of the calls of a function, of how many, and their error if most of them fail."""
    call, count = case.run.calls[number], int(case.rows["n"][rows].sum())
    whole = int(case.rows["n"][case.rows["call"] == number].sum())
    of_all = f"{count:,} of {count_text(whole, 'call')}" if count < whole else count_text(count, "call")
    if call.layer in STORAGE and call.op in ("read", "write"):
        first, time_ns = (
            float(case.rows[name][rows] @ of[rows]) for name, of in (("n", part), ("time_ns", share))
        )
        first = min(files or first, count)
        each = seconds_text(1e-9 * time_ns / first)
        return f"{round(first):,} calls of {call.name}, the first on a file, take {each} each"
    kinds = case.failed.kinds() if case.failed is not None else ()
    failing = next((kind for kind in kinds if kind.call == call and 2 * kind.calls > count), None)
    fails = f", most of which fail ({error_name(failing.error)})," if failing else ""
    return f"{of_all} of {call.name}{fails} {how_long(case, rows)}"


def _calls_of_functions(case: Case, count: np.ndarray) -> np.ndarray:
    """Add up the calls of each row's function in its phase by task, or by all that do not live together."""
    window, task = case.cell_of_rows(np.ones(len(case), bool))
    task = task * case.run.info.live_together
    _, number = np.unique(np.stack([window, task, case.rows["call"]]), axis=1, return_inverse=True)
    number = number.reshape(-1)
    counted: np.ndarray = np.bincount(number, count)[number]
    return counted


def _share_of_objects(case: Case, table: dict[str, np.ndarray], libraries: frozenset[str]) -> np.ndarray:
    """Compute the share of each row's time in calls of libraries that carry neither data nor held chunks."""
    is_attribute = np.array([name.startswith(_ATTRIBUTES) for name in case.names.tolist()])
    moves = np.isin(case.ops, ("read", "write")) & ~is_attribute
    held = np.unique(table["file"][chunks_from_cache(table, case.run.calls)])
    carries = np.isin(case.ops[table["call"]], ("sync", "close")) & np.isin(table["file"], held)
    found = np.isin(case.layer, list(libraries)) & ~moves[case.rows["call"]]
    return np.where(found, 1 - share_of_rows(case, table, carries), 0.0)


def _share_of_small_syncs(case: Case, table: dict[str, np.ndarray]) -> np.ndarray:
    """Compute the share of each row's time in syncs of files and folders that get few bytes for each."""
    if not case.rows["bytes"][case.op == "write"].any():
        return np.ones(len(case))
    ops = case.ops[table["call"]]
    written, syncs = (
        np.bincount(table["file"], table[of] * (ops == op), len(case.run.files))
        for of, op in (("bytes", "write"), ("n", "sync"))
    )
    return share_of_rows(case, table, (ops == "sync") & (written <= SMALL_BYTES * syncs)[table["file"]])
