"""Finding ``fewer-calls``: many calls whose cost comes from no byte, of any function; and the account.

Rules name causes by patterns. What no pattern explains is named by its principle: a number of calls, times
what each costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ensembles.diagnosis.account import BYTES, CALLS, FEWER_CALLS, OUTSIDE, Account, Entry
from ensembles.diagnosis.accounting import Mended
from ensembles.diagnosis.case import SMALL_CLASS, Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import FROM_SHARE, Check, Finding
from ensembles.diagnosis.path_calls import without_single_long_ns
from ensembles.diagnosis.remedy import Remedy, make_finding
from ensembles.diagnosis.small_calls import LEAST_CALLS
from ensembles.model.events import Call
from ensembles.model.units import count_text, seconds_text
from ensembles.structure.library_time import LIBRARIES

WITHOUT_BYTES = ("open", "meta", "seek")
"""Operations of storage whose cost is none of bytes; a sync or close may have to write some."""

_MOSTLY_LEFT = 0.5
"""Share of the time of calls that findings leave from which on no finding explains them."""

_MOST_NAMED = 3
_LEAST_NAMED = 0.1  # of the time that the finding names

_ADVICE = {
    "open": "put many records into one file that stays open, or let one task open and the others ask it",
    "sync": "sync a folder once, after all files of a step are in their places",
    "meta": "ask or change once for all records instead of for each: the size of a file before the first "
    "write, a path before the loop",
    "seek": "leave the seeks out: pread and pwrite take the offset",
    "library": "make fewer objects: one dataset or attribute with an array instead of one object for each "
    "record, opened once",
}


def make_account(findings: Sequence[Finding], mended: Mended, case: Case) -> Account:
    """Divide the time of a run.

    Parameters
    ----------
    findings : sequence of Finding
        With `Finding.share_s`.
    mended : Mended
        All of their remedies.
    case : Case
    """
    entries = [Entry(each.id, each.share_s) for each in findings if each.share_s]
    moves = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    before_s = sum(entry.time_s for entry in entries)
    for name, rows in ((CALLS, ~moves), (BYTES, moves)):
        left_ns = np.where(rows, mended.left_share() * case.rows["time_ns"], 0.0)
        mended.add(np.where(rows, case.rows["time_ns"], 0.0))
        most = np.argmax(np.bincount(case.rows["call"], left_ns, 1))
        call = case.run.calls[most].name if left_ns.any() else ""
        entries.append(Entry(name, max(mended.gain_s() - before_s, 0.0), call))
        before_s += entries[-1].time_s
    entries.append(Entry(OUTSIDE, max(case.run_s - before_s, 0.0)))
    ordered = sorted(entries, key=lambda entry: (entry.id in (OUTSIDE, CALLS, BYTES), -entry.time_s))
    return Account(case.run_s, tuple(ordered), case.model.shows_waiting or len(case.ranks) == 1)


def with_fewer_calls(
    findings: Sequence[Finding], mended: Mended, case: Case, uses: FileUses, libraries: frozenset[str]
) -> list[Finding]:
    """Add the calls that no finding explains and that cost time whatever they move.

    Parameters
    ----------
    findings : sequence of Finding
        With `Finding.share_s`.
    mended : Mended
        All of their remedies; that of the new finding is added.
    case : Case
    uses : FileUses
        Filled.
    libraries : frozenset of str
        Layers whose own time is known, as the storage calls inside them were recorded.
    """
    found = []
    remedy = _remedy(case, uses, mended.left_share() >= _MOSTLY_LEFT, libraries)
    for finding in [] if remedy is None else make_finding(case, FEWER_CALLS, remedy):
        before_s = mended.gain_s()
        share_s = mended.gain_s(finding.saved_ns) - before_s
        if share_s >= FROM_SHARE["warning"] * case.run_s:
            mended.add(finding.saved_ns)
            found.append(replace(finding, share_s=share_s))
    return [*findings, *found]


def _remedy(case: Case, uses: FileUses, is_left: np.ndarray, libraries: frozenset[str]) -> Remedy | None:
    """Find calls whose cost is none of bytes, and of which a task makes many in a phase."""
    table = uses.table.columns()
    of_library = np.isin(case.layer, list(libraries)) & (case.rows["size"] <= SMALL_CLASS)
    of_storage = (case.layer == "posix") & np.isin(case.op, WITHOUT_BYTES)
    share = np.where(of_library | of_storage, 1.0, 0.0)
    share = np.where((case.op == "sync") & (case.layer == "posix"), _share_of_empty_syncs(case, table), share)
    time_ns = share * is_left * without_single_long_ns(case, share > 0)
    calls = _calls_of_functions(case)
    rows = (time_ns > 0) & (calls >= LEAST_CALLS)
    if not rows.any():
        return None
    saved = np.where(rows, time_ns * (1 - 1 / calls), 0.0)
    named = costliest(np.bincount(case.rows["call"], saved))
    rows &= np.isin(case.rows["call"], named)
    saved = np.where(rows, saved, 0.0)
    sums = {name: np.bincount(case.rows["call"][rows], case.rows[name][rows]) for name in ("n", "time_ns")}
    calls_of = [(case.run.calls[at], int(sums["n"][at]), float(sums["time_ns"][at])) for at in named]
    chosen = np.isin(table["call"], named)
    cost = np.bincount(table["file"][chosen], table["time_ns"][chosen], len(case.run.files))
    paths = np.argsort(-cost, kind="stable")[: np.count_nonzero(cost)]
    files = tuple(case.run.files[at] for at in paths.tolist())
    return Remedy(
        rows,
        saved,
        *told(calls_of, files),
        {"functions": [call.name for call, _, _ in calls_of]},
        low_ns=np.zeros(len(case)),
        files=files,
        fewer=np.where(rows, case.rows["n"] * (1 - 1 / calls), 0.0),
    )


def costliest(time_ns: np.ndarray) -> list[int]:
    """Return the numbers of the functions that take a notable part of the time of all, the largest first."""
    order = np.argsort(-time_ns, kind="stable")[:_MOST_NAMED].tolist()
    return [at for at in order if time_ns[at] >= max(_LEAST_NAMED * time_ns.sum(), 1.0)]


def told(
    functions: Sequence[tuple[Call, int, float]], files: Sequence[str] = ()
) -> tuple[str, str, tuple[Check, ...]]:
    """Return title, advice and checks of functions, each with its number of calls and their time in ns."""
    calls = "; ".join(
        f"{count_text(count, 'call')} of {call.name}, {seconds_text(1e-9 * time_ns / count)} each"
        for call, count, time_ns in functions
    )
    on = f", on {len(files):,} paths" if len(files) > 1 else f", on {files[0]}" if files else ""
    kinds = [_ADVICE["library" if call.layer in LIBRARIES else call.op] for call, _, _ in functions]
    checks = (
        Check("many", True, f"a task makes {LEAST_CALLS} of them or more between two meetings"),
        Check("needed", None, "whether the program needs as many, one run does not show"),
    )
    return f"{calls}{on}: a cost of each call, whatever it moves", "; ".join(dict.fromkeys(kinds)), checks


def _calls_of_functions(case: Case) -> np.ndarray:
    """Count the calls of each row's function by its task in its phase: shape (n,)."""
    window, task = case.cell_of_rows(np.ones(len(case), bool))
    _, number = np.unique(np.stack([window, task, case.rows["call"]]), axis=1, return_inverse=True)
    number = number.reshape(-1)
    counted: np.ndarray = np.bincount(number, case.rows["n"])[number]
    return counted


def _share_of_empty_syncs(case: Case, table: dict[str, np.ndarray]) -> np.ndarray:
    """Compute the share of each row's time in syncs of files and folders that no call wrote to."""
    ops = np.array([call.op for call in case.run.calls] or [""])[table["call"]]
    written = np.bincount(table["file"], table["bytes"] * (ops == "write"), len(case.run.files))
    return share_of_rows(case, table, (ops == "sync") & (written[table["file"]] == 0))
