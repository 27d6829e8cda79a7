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
from ensembles.model.units import count_text, seconds_text

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
    of_storage = np.isin(case.op, ("open", "meta", "seek"))
    share = np.where(of_library | ((case.layer == "posix") & of_storage), 1.0, 0.0)
    share = np.where((case.op == "sync") & (case.layer == "posix"), _share_of_empty_syncs(case, table), share)
    time_ns = share * is_left * without_single_long_ns(case, share > 0)
    calls = _calls_of_functions(case)
    rows = (time_ns > 0) & (calls >= LEAST_CALLS)
    if not rows.any():
        return None
    saved = np.where(rows, time_ns * (1 - 1 / calls), 0.0)
    of_call = np.bincount(case.rows["call"], saved)
    order = np.argsort(-of_call, kind="stable")
    named = [at for at in order[:_MOST_NAMED].tolist() if of_call[at] >= _LEAST_NAMED * of_call.sum()]
    rows &= np.isin(case.rows["call"], named)
    saved = np.where(rows, saved, 0.0)
    parts, kinds = [], []
    for at in named:
        mine = rows & (case.rows["call"] == at)
        count = int(case.rows["n"][mine].sum())
        each_s = 1e-9 * float(case.rows["time_ns"][mine].sum()) / count
        parts.append(f"{count_text(count, 'call')} of {case.run.calls[at].name}, {seconds_text(each_s)} each")
        kinds.append("library" if of_library[mine].any() else str(case.op[mine][0]))
    chosen = np.isin(table["call"], named)
    cost = np.bincount(table["file"][chosen], table["time_ns"][chosen], len(case.run.files))
    paths = np.argsort(-cost, kind="stable")[: np.count_nonzero(cost)]
    files = tuple(case.run.files[at] for at in paths.tolist())
    on = f", on {len(files):,} paths" if len(files) > 1 else f", on {files[0]}" if files else ""
    return Remedy(
        rows,
        saved,
        f"{'; '.join(parts)}{on}: a cost of each call, whatever it moves",
        "; ".join(dict.fromkeys(_ADVICE[kind] for kind in kinds)),
        (
            Check("many", True, f"a task makes {LEAST_CALLS} of them or more in a phase"),
            Check("needed", None, "whether the program needs as many, one run does not show"),
        ),
        {"functions": [case.run.calls[at].name for at in named]},
        low_ns=np.zeros(len(case)),
        files=files,
        fewer=np.where(rows, case.rows["n"] * (1 - 1 / calls), 0.0),
    )


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
