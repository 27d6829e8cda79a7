"""The account of a run whose calls are known one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.accounting import Mended, divide
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import ROW
from ensembles.diagnosis.finding import (
    DOUBT,
    FROM_SHARE,
    SURE,
    Check,
    Finding,
    NotApplicable,
)
from ensembles.diagnosis.limits import COPIED_BYTES, LEAST_CALLS
from ensembles.diagnosis.principles import (
    AT_RATE,
    BYTES,
    CALLS,
    EXCHANGE,
    IN_LIBRARY,
    LATE_TASK,
    MESSAGES,
    RECORDER,
    SLOW_TASK,
    TURNS,
    UNTRACED,
    cause_of,
)
from ensembles.diagnosis.remedy import where_of
from ensembles.diagnosis.rules.collective import collective_calls
from ensembles.diagnosis.rules.small_requests import formatted_calls, small_calls
from ensembles.diagnosis.with_meetings import Path
from ensembles.model.distinct import distinct_rows
from ensembles.model.levels import SIGNIFICANT
from ensembles.model.units import share_text
from ensembles.statistics import special
from ensembles.structure.late_entry import LateEntry
from ensembles.structure.phases.barriers import ENDS
from ensembles.summaries.ranktable import RankTable


def make_account(
    findings: Sequence[Finding],
    mended: Mended,
    case: Case,
    libraries: frozenset[str],
    late: LateEntry | None,
    left_late_s: float = 0.0,
) -> Account:
    """Divide the time of a run."""
    left = mended.left_share()
    path = case.model.path((1 - left) * case.rows["time_ns"])
    in_turns_s = _in_turns_s(case)
    slow = _of_task(SLOW_TASK, path.slow_s, case)
    waiting = _of_task(LATE_TASK, path.late_s * (not in_turns_s), case)
    exchanged = messages_s(case.run.reading.known_ranks)
    exchanged = exchanged if len(exchanged) == case.run.tasks > 1 else np.zeros(0)
    if case.model.waiting_s is None:  # tasks wait as long as their messages show
        most_s = float(np.median(exchanged) - exchanged.min()) if len(exchanged) else 0.0
        slow = replace(slow, time_s=min(slow.time_s, most_s))
        rank = int(np.argmin(exchanged)) if len(exchanged) else None
        waiting = Entry(LATE_TASK, most_s - slow.time_s, rank=rank)
    elif exchanged.any() and waiting.rank is not None:
        most_s = _awaited_s(waiting.rank, exchanged, case) + left_late_s
        waiting = replace(waiting, time_s=min(waiting.time_s, most_s))
    if late is not None and not late.is_of_io and late.late_s > waiting.time_s and not in_turns_s:
        waiting = Entry(LATE_TASK, late.late_s, late.call, late.rank)
    most_s = float(exchanged.min()) if len(exchanged) else 0.0
    # A task that waits for a message of the task before it waits for its turn.
    outside = [
        _recorder(case, path),
        Entry(TURNS, in_turns_s),
        waiting,
        Entry(MESSAGES, max(most_s - in_turns_s, 0.0)),
    ]
    inside = _of_calls(case, left, path, libraries, path.io_s - slow.time_s)
    inside = [slow, *inside, Entry(UNTRACED, case.critical.untraced_s)]
    return divide(case.critical, [each for each in findings if each.share_s is not None], inside, outside)


def _recorder(case: Case, path: Path) -> Entry:
    """Make the entry of the recorder's own time; that of threads at the same time counts once."""
    whole_ns = case.recorder_ns * case.rows["n"] / case.run.info.threads_of_tasks[case.rows["rank"]]
    of_call = np.bincount(case.rows["call"], np.where(path.rows, whole_ns, 0.0), 1)
    return Entry(RECORDER, 1e-9 * float(of_call.sum()), case.run.calls[int(np.argmax(of_call))].name)


def messages_s(table: RankTable | None) -> np.ndarray:
    """Return how long each task is in calls for messages and waits, but for I/O: shape (tasks,)."""
    if table is None or not len(table.rank):
        return np.zeros(0)
    layers = ("mpisync", "mpimsg")
    exchanges = np.array([each.layer in layers and each.name not in ENDS for each in table.calls])[table.call]
    _, task = np.unique(table.rank, return_inverse=True)
    found: np.ndarray = np.bincount(task, np.where(exchanges, table.time_ns - table.inner_ns, 0)) * 1e-9
    return found


def _awaited_s(rank: int, exchanged: np.ndarray, case: Case) -> float:
    """Bound for how long others wait, in messages and barriers, for what a task does outside of I/O."""
    slow_s = float(case.model.path(np.zeros(len(case))).slow_s[case.ranks == rank].sum())
    return max(float(np.median(np.delete(exchanged, rank)) - exchanged[rank]) - slow_s, 0.0)


def _of_task(name: str, time_s: np.ndarray, case: Case) -> Entry:
    """Make the entry of waiting; the task is named if it has most of it."""
    whole_s, last = float(time_s.sum()), int(np.argmax(time_s)) if len(time_s) else 0
    is_one = whole_s > 0 and 2 * time_s[last] > whole_s
    return Entry(name, whole_s, rank=int(case.ranks[last]) if is_one else None)


def _of_calls(
    case: Case, left: np.ndarray, path: Path, libraries: frozenset[str], io_s: float
) -> list[Entry]:
    """Divide the time of the calls on the path by what they do."""
    time_ns = np.where(path.rows, left * case.rows["time_ns"], 0.0)
    exchange_ns = np.zeros(len(case))
    try:
        collective = collective_calls(case)
    except NotApplicable:
        collective = None
    if collective is not None:
        # A task that makes no storage calls waits in collective ones for those of the slowest that does.
        own = np.where(collective.rows, time_ns, 0.0)
        of_window = case.by_cell(own).sum(axis=1)
        part = np.minimum(collective.beyond / np.maximum(of_window, 1.0), 1.0)
        exchange_ns = own * part[case.cell_of_rows(np.ones(len(case), bool))[0]]
        inner = (case.layer == "posix") & (case.rows["depth"] > 0)
        stored = case.by_cell(np.where(inner, left * case.rows["time_ns"], 0.0))
        slowest = np.arange(stored.shape[1]) == stored.argmax(axis=1)[:, None]
        awaited = np.divide(
            of_window * (1 - part), stored.max(axis=1), out=np.zeros(len(part)), where=stored.max(axis=1) > 0
        )
        is_known = case.of_cells(np.broadcast_to(stored.max(axis=1)[:, None] > 0, stored.shape))
        time_ns = np.where(collective.rows & is_known, 0.0, time_ns - exchange_ns)
        time_ns += np.where(inner, left * case.rows["time_ns"], 0.0) * case.of_cells(
            slowest * awaited[:, None]
        )
    of_library = np.isin(case.layer, list(libraries)) | formatted_calls(case)
    moves = np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0) & ~of_library
    # Calls that wait for requests wait for their bytes.
    transfers = moves | ((case.op == "wait") & ~of_library)
    # Reads that jump do not show what rate their bytes have in order, and small calls show what calls cost.
    in_order = moves & ~small_calls(case)["seek-heavy"]
    in_order &= case.rows["bytes"] >= COPIED_BYTES * case.rows["n"]
    at_rate_ns = np.where(in_order, np.minimum(time_ns, _at_best_rate_ns(case, moves)), 0.0)
    parts = (
        (EXCHANGE, exchange_ns),
        (IN_LIBRARY, np.where(of_library, time_ns, 0.0)),
        (AT_RATE, at_rate_ns),
        (CALLS, np.where(transfers | of_library, 0.0, time_ns)),
        (BYTES, np.where(transfers, time_ns - at_rate_ns, 0.0)),
    )
    whole_ns = max(sum(float(values.sum()) for _, values in parts), 1.0)
    entries = []
    for name, values in parts:
        of_call = np.bincount(case.rows["call"], values, 1)
        call = case.run.calls[int(np.argmax(of_call))].name if of_call.any() else ""
        entries.append(Entry(name, io_s * float(of_call.sum()) / whole_ns, call))
    return entries


def _at_best_rate_ns(case: Case, rows: np.ndarray) -> np.ndarray:
    """Compute what the bytes of rows take at the best rate that all tasks together show: shape (n,).

    The rate is that of a phase, or of a quarter of the only one, with `LEAST_CALLS` calls of the function and
    size class or more. If the kernel fetched or sent a part of the bytes only, this part has the best rate
    of those that are slower than the rest.
    """
    table = {**case.rows, "quarter": np.zeros(len(case), np.int64)}
    if len(np.unique(case.rows["phase"])) == 1:
        table = case.evidence.quarters.columns()
    kinds, kind = distinct_rows(*(np.concatenate([case.rows[x], table[x]]) for x in ("call", "size")))
    place, kind = kind[: len(case)], kind[len(case) :]
    (of_kind, *_), part = distinct_rows(kind, table["phase"], table["quarter"])
    count, moved, time_ns = (
        np.bincount(part, table[name], len(of_kind)) for name in ("n", "bytes", "time_ns")
    )
    each_ns = np.divide(time_ns, moved, out=np.full(len(of_kind), np.inf), where=moved > 0)
    each_ns[count < LEAST_CALLS] = np.inf
    order = np.lexsort((each_ns, of_kind))
    of_kind, moved, each_ns = of_kind[order], moved[order], each_ns[order]
    size = kinds.shape[1]
    whole = np.bincount(of_kind, moved, size)
    faster = np.cumsum(moved) - moved
    faster -= (np.cumsum(whole) - whole)[of_kind]
    stored = np.array([_stored_share(case, case.run.calls[call].op) for call in kinds[0].tolist()])
    best_ns, best_stored_ns = np.full((2, size), np.inf)
    np.minimum.at(best_ns, of_kind, each_ns)
    slow = faster >= ((1 - stored) * whole)[of_kind]
    np.minimum.at(best_stored_ns, of_kind[slow], each_ns[slow])
    known = np.isfinite(best_ns)
    best_stored_ns = np.where(np.isfinite(best_stored_ns), best_stored_ns, best_ns)
    best_ns = (1 - stored) * np.where(known, best_ns, 0.0) + stored * np.where(known, best_stored_ns, 0.0)
    found: np.ndarray = np.where(rows, case.rows["bytes"] * best_ns[place], 0.0)
    return found


def _stored_share(case: Case, op: str) -> float:
    """Return which part of the bytes of an operation the kernel fetched or sent; 1: not known."""
    kernel = case.run.info.kernel_bytes
    moved, stored = (0, 0) if kernel is None else (kernel.read, kernel.fetched)
    if kernel is not None and op == "write":
        moved, stored = kernel.written, kernel.dirtied
    return min(stored / moved, 1.0) if moved else 1.0


def findings_of_waits(
    account: Account, findings: Sequence[Finding], case: Case, why_late: str
) -> list[Finding]:
    """Name waiting and exchange that no finding names, from 2 % of the run on."""
    found = []
    for entry in account.entries:
        kind = cause_of(entry.id)
        least_s = FROM_SHARE["warning"] * case.run_s
        if entry.time_s < least_s or not (kind.words and kind.advice):
            continue
        is_told = entry.id == LATE_TASK and bool(why_late)
        by_habit = entry.rank is not None and (is_told or case.model.is_last_by_habit(entry.rank))
        if entry.id in (SLOW_TASK, LATE_TASK) and not by_habit:
            continue  # one of several tasks is the last
        what = kind.principle, kind.in_io
        alike = [each for each in findings if (each.kind.principle, each.kind.in_io) == what]
        if any(each.severity != "note" or (each.gain_s or (0, 0))[1] >= entry.time_s for each in alike):
            continue  # a finding names it, or the largest part of it
        rows = np.ones(len(case), bool) if entry.rank is None else case.rows["rank"] == entry.rank
        seen = int(case.rows["n"][rows & (case.name == entry.call)].sum())
        rows &= (case.name == entry.call) | (not seen)
        where = where_of(case, rows)
        if entry.call and not seen:  # a barrier does no I/O
            where = replace(where, op=None, layer=None, calls=(entry.call,))
        sentence = why_late if is_told else entry.words
        share = share_text(entry.time_s / case.run_s)
        found.append(
            Finding(
                entry.id,
                DOUBT * SURE,
                where,
                {"waiting_s": entry.time_s, "run_s": case.run_s, "calls": seen},
                (Check("waits", sentence), Check("gain", "a remedy gains a part of it, or all", None)),
                kind.advice,
                (0.0, entry.time_s),
                f"{share} of the run: {entry.words}{f'; {sentence}' * (sentence != entry.words)}",
                likely_s=entry.time_s,
                rows=np.stack([case.rows[name][rows] for name in ROW]) if seen or not entry.call else None,
            )
        )
    return found


def _in_turns_s(case: Case) -> float:
    """Compute for how long the last tasks wait for others that do their I/O one after the other."""
    if not case.model.shows_waiting:
        return 0.0
    shape = case.present.shape
    at = case.cell_of_rows(np.ones(len(case), bool))
    begin, end = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(begin, at, case.rows["start_ns"])
    np.maximum.at(end, at, case.rows["end_ns"])
    found_ns, log_p, in_turns, all_windows = 0.0, 0.0, 0, 0
    for window in np.flatnonzero((case.present.sum(axis=1) > 1) & (case.windows > 0)).tolist():
        order = np.argsort(begin[window])[: case.present[window].sum()]
        first, last = begin[window][order], end[window][order]
        all_windows += 1
        if (first[1:] >= last[:-1]).all():
            in_turns += 1
            found_ns += float((last - first)[:-1].sum())
            fills = float((last - first).sum()) / max(last[-1] - first[0], 1.0)
            log_p += (len(order) - 1) * np.log(max(1 - fills, 1e-9))
    # The p-values of all phases, 1 of those in which tasks overlap, by R. A. Fisher's method.
    is_usual = 2 * in_turns > all_windows
    is_sure = is_usual and float(special.chdtrc(2 * all_windows, -2 * log_p)) < SIGNIFICANT
    return 1e-9 * found_ns if is_sure else 0.0
