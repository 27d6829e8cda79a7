"""Causes, symptoms and the account of a run whose calls are known one by one.

Lost time is given to findings one after the other, the largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence import ROW
from ensembles.diagnosis.finding import (
    DOUBT,
    FROM_SHARE,
    LIKELY_COUNTS,
    SURE,
    Check,
    Finding,
    NotApplicable,
    divide,
)
from ensembles.diagnosis.limits import COPIED_BYTES, LEAST_CALLS
from ensembles.diagnosis.path_calls import REMOVING
from ensembles.diagnosis.principles import (
    AT_RATE,
    BYTES,
    CALLS,
    EXCHANGE,
    IN_LIBRARY,
    LATE_TASK,
    MESSAGES,
    RECORDED,
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
from ensembles.model.distinct import distinct_rows, numbered_together
from ensembles.model.levels import MOST, NEARLY_ALL, SIGNIFICANT
from ensembles.model.units import share_text
from ensembles.statistics import special
from ensembles.structure.late_entry import LateEntry
from ensembles.structure.phases.barriers import ENDS
from ensembles.summaries.ranktable import RankTable

_SLOW_UNITS = ("straggler-task", "straggler-node")


def share_out(findings: Sequence[Finding], case: Case) -> tuple[list[Finding], float | None, Mended]:
    """Give the lost time to findings, and find symptoms."""
    known = [_beside_main(finding, case) for finding in findings]
    findings = _without_time_of_clients(known, case)
    rest = [finding for finding in findings if finding.saved_ns is not None]
    done: list[Finding] = [finding for finding in findings if finding.saved_ns is None]
    mended, explained_s = Mended(case), 0.0
    surely = Mended(case)
    least_s = FROM_SHARE["warning"] * case.run_s
    symptoms: list[Finding] = []
    while rest:
        gains = [mended.gain_s(each.saved_ns, each.kind.of_each_call) - explained_s for each in rest]
        # Of findings that gain nearly the same, the first is the most specific.
        best = int(np.argmax(np.array(gains) >= NEARLY_ALL * max(gains))) if max(gains) > 0 else 0
        best = _habit_of_unit(rest, best)
        finding, share_s = rest.pop(best), max(gains[best], 0.0)
        if finding.id in _SLOW_UNITS and any(_is_habit_of(cause, finding) for cause in done):
            symptoms.append(finding)
            continue
        # Where tasks do not meet, the task that saves most hides what the others save.
        if done and case.model.shows_waiting and share_s < least_s <= case.gain_s(finding.saved_ns):
            left_s = surely.gain_s(finding.saved_ns, finding.kind.of_each_call) - surely.gain_s()
            if left_s < least_s or _explained(finding, done):
                symptoms.append(finding)
                continue
        mended.add(finding.saved_ns, finding.kind.of_each_call)
        surely.add(_surely_saved(finding, case), finding.kind.of_each_call)
        explained_s += share_s
        done.append(replace(finding, share_s=share_s))
    for symptom in symptoms:
        cause = _cause_of(symptom, done, case)
        done[cause] = replace(done[cause], symptoms=(*done[cause].symptoms, symptom.id))
        done.append(replace(symptom, share_s=0.0, is_symptom=True))
    waiting_s = case.model.waiting_s
    return done, None if waiting_s is None else max(waiting_s - explained_s, 0.0), mended


def _beside_main(finding: Finding, case: Case) -> Finding:
    """Take all certainty from a gain in tasks whose main thread makes no call: it may compute meanwhile."""
    if finding.saved_ns is None or finding.gain_s is None or not case.run.info.beside_main.any():
        return finding
    hidden = case.run.info.beside_main[case.rows["rank"]]
    if float(finding.saved_ns[hidden].sum()) < NEARLY_ALL * float(finding.saved_ns.sum()):
        return finding
    check = Check("main-thread-waits", "the main thread makes no call, and may compute meanwhile", None)
    checks = (*finding.checks, check)
    gain_s = 0.0, finding.gain_s[1]
    return replace(finding, gain_s=gain_s, likely_s=0.0, checks=checks, saved_ns=None)


class Mended:
    """What remedies save together.

    What one leaves of a row is saved at the share of the next. Remedies for what single calls cost save the
    same time: the most that one of them does.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._others, self._of_calls = np.zeros((2, len(case)))

    def add(self, saved_ns: np.ndarray, of_each_call: bool = False) -> None:
        """Apply one more remedy; `of_each_call` as `Cause.of_each_call`."""
        self._others, self._of_calls = self._with(saved_ns, of_each_call)

    def gain_s(self, saved_ns: np.ndarray | None = None, of_each_call: bool = False) -> float:
        """Compute by how much the run is shorter, perhaps with one more remedy."""
        both = (self._others, self._of_calls) if saved_ns is None else self._with(saved_ns, of_each_call)
        return self._case.gain_s(_both(self._case, *both))

    def left_share(self) -> np.ndarray:
        """Compute which share of the time of each row is left: shape (n,)."""
        saved = _both(self._case, self._others, self._of_calls)
        left: np.ndarray = np.maximum(1 - saved / np.maximum(self._case.rows["time_ns"], 1), 0.0)
        return left

    def _with(self, saved_ns: np.ndarray, of_each_call: bool) -> tuple[np.ndarray, np.ndarray]:
        if of_each_call:
            return self._others, np.maximum(self._of_calls, saved_ns)
        return _both(self._case, self._others, saved_ns), self._of_calls


def _habit_of_unit(rest: Sequence[Finding], best: int) -> int:
    """Return the number of the habit that makes a task or node slow, if `best` is a slow one; else `best`."""
    if rest[best].id not in _SLOW_UNITS:
        return best
    return next((at for at, each in enumerate(rest) if _is_habit_of(each, rest[best])), best)


def _is_habit_of(cause: Finding, slow: Finding) -> bool:
    """Check whether a cause is in calls of a slow task or node alone, and explains much of what it loses."""
    if cause.saved_ns is None or cause.id in _SLOW_UNITS or not cause.kind.of_each_call:
        return False
    in_unit = float(cause.saved_ns[slow.saved_ns > 0].sum())
    whole = max(float(cause.saved_ns.sum()), 1.0)
    return in_unit >= max(NEARLY_ALL * whole, MOST * float(slow.saved_ns.sum()))


def _explained(finding: Finding, causes: Sequence[Finding]) -> bool:
    """Check whether another cause explains what each of the same calls costs."""
    whole = max(float(finding.saved_ns.sum()), 1.0)
    return finding.kind.of_each_call and any(
        cause.kind.of_each_call
        and cause.saved_ns is not None
        and float(finding.saved_ns[cause.saved_ns > 0].sum()) >= NEARLY_ALL * whole
        for cause in causes
    )


def _surely_saved(finding: Finding, case: Case) -> np.ndarray:
    """Take part of the way to the lower end off what a finding saves."""
    gain_s = case.gain_s(finding.saved_ns)
    low_s = gain_s if finding.gain_s is None else min(finding.gain_s[0], gain_s)
    part = 1 - (1 - LIKELY_COUNTS) * (1 - low_s / gain_s) if gain_s > 0 else 1.0
    saved: np.ndarray = finding.saved_ns * part
    return saved


def _both(case: Case, mended: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Combine savings: what the first leaves of a row is saved at the second's share."""
    time_ns = np.maximum(case.rows["time_ns"], 1)
    both: np.ndarray = mended + saved * np.maximum(1 - mended / time_ns, 0)
    return both


def _cause_of(symptom: Finding, causes: Sequence[Finding], case: Case) -> int:
    """Return the number of the cause after whose remedy least is left of a symptom."""
    left = []
    for cause in causes:
        if cause.saved_ns is None or cause.share_s is None:
            left.append(np.inf)
            continue
        left.append(case.gain_s(_both(case, cause.saved_ns, symptom.saved_ns)) - case.gain_s(cause.saved_ns))
    return int(np.argmin(left))


def _without_time_of_clients(findings: list[Finding], case: Case) -> list[Finding]:
    """Take time that calls lose in the client off the gains of remedies at the targets."""
    mended = np.zeros(len(case))
    for finding in findings:
        if finding.kind.in_client and finding.saved_ns is not None:
            mended = _both(case, mended, finding.saved_ns)
    if not mended.any():
        return findings
    left = 1 - mended / np.maximum(case.rows["time_ns"], 1)
    return [_less(each, left, case) if each.kind.at_targets else each for each in findings]


def _less(finding: Finding, left: np.ndarray, case: Case) -> Finding:
    """Return a finding whose remedy saves a part of each row."""
    if finding.saved_ns is None or finding.gain_s is None:
        return finding
    saved = finding.saved_ns * left
    part = case.gain_s(saved) / max(case.gain_s(finding.saved_ns), 1e-9)
    gain_s = part * finding.gain_s[0], part * finding.gain_s[1]
    return replace(finding, saved_ns=saved, gain_s=gain_s, likely_s=part * finding.likely_s)


_KEPT_OPEN = (
    "open the file once and keep it open, collect what goes to it in a buffer, and move it in a few large "
    "pieces, such as one a step"
)
_ONE_CHANGE = (
    "make many changes before a sync, so that the file beside the data is made, synced and removed once for "
    "all of them (SQLite: one transaction for many changes, or journal_mode=WAL with synchronous=NORMAL)"
)


def with_habits(findings: Sequence[Finding], case: Case) -> list[Finding]:
    """Advise one mend for findings of one habit: files opened for each line, or a journal for each change."""
    by_id = {finding.id: finding for finding in findings}
    storm = by_id.get("metadata-storm")
    if storm is None or storm.rows is None:
        return list(findings)
    checks = {check.name for check in storm.checks}
    paths, time_ns = _rows_of(case, storm), case.rows["time_ns"]
    opens = case.op == "open"
    opens &= 2 * time_ns[paths & opens].sum() > time_ns[paths].sum()  # a scan is not kept open
    ways = (
        ("made-and-removed", "sync-per-write", np.isin(case.name, list(REMOVING)), _ONE_CHANGE),
        ("same-path-again", "small-requests", opens, _KEPT_OPEN),
        ("paths-asked-before", "small-requests", opens, _KEPT_OPEN),
    )
    for check, cause, of_paths, mend in ways:
        other = by_id.get(cause)
        if check not in checks or other is None or other.rows is None:
            continue
        explained = storm.id in other.symptoms or other.id in storm.symptoms
        if not explained and _go_together(case, paths & of_paths, _rows_of(case, other)):
            first, second = sorted((storm, other), key=lambda each: each.weight, reverse=True)
            advice = {
                first.id: f"{mend}; this removes {second.id} too, which is the same habit",
                second.id: f"part of the same habit as {first.id}, whose mend removes both: {mend}",
            }
            return [replace(each, advice=advice.get(each.id, each.advice)) for each in findings]
    return list(findings)


def _rows_of(case: Case, finding: Finding) -> np.ndarray:
    """Find the rows of the shared evidence that a finding concerns."""
    theirs, mine, _ = numbered_together(ROW, dict(zip(ROW, finding.rows, strict=True)), case.rows)
    rows: np.ndarray = np.isin(mine, theirs)
    return rows


def _go_together(case: Case, paths: np.ndarray, others: np.ndarray) -> bool:
    """Check whether the same tasks make both kinds of calls in the same phases, about as often."""
    of_paths, of_others = (case.by_cell(np.where(rows, case.rows["n"], 0)) for rows in (paths, others))
    there = of_others[of_paths > 0].sum()
    if not there or there < NEARLY_ALL * of_others.sum():
        return False
    # Calls for each open, or syncs for each removed file: the two belong to one line, or to one change.
    return bool(MOST * of_paths.sum() <= there <= LEAST_CALLS * of_paths.sum())


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
    recorded, recorder = _recorder(case, path)
    outside = [
        recorder,
        Entry(TURNS, in_turns_s),
        waiting,
        Entry(MESSAGES, max(most_s - in_turns_s, 0.0)),
    ]
    inside = _of_calls(case, left, path, libraries, path.io_s - slow.time_s)
    inside = [slow, *inside, Entry(UNTRACED, case.critical.untraced_s)]
    shared = [each for each in findings if each.share_s is not None]
    return divide(case.critical, shared, inside, outside, recorded)


def _recorder(case: Case, path: Path) -> tuple[Entry, Entry]:
    """Return the entries of the recorder in I/O calls, and outside of them; that of threads counts once."""
    threads = case.run.info.threads_of_tasks[case.rows["rank"]]
    inside_ns = np.where(path.rows, (case.recorded_ns - case.rows["time_ns"]) / threads, 0.0).sum()
    all_ns = np.where(path.rows, case.recorder_ns * case.rows["n"] / threads, 0.0)
    of_call = np.bincount(case.rows["call"], all_ns, 1)
    in_calls_s, at_ends_s = 1e-9 * float(of_call.sum()), case.run.info.recorder_s
    call, inside_s = case.run.calls[int(np.argmax(of_call))].name, 1e-9 * float(inside_ns)
    outside = Entry(RECORDER, max(in_calls_s - inside_s, 0.0) + at_ends_s, call * (in_calls_s >= at_ends_s))
    return Entry(RECORDED, inside_s, call), outside


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
                likely_s=entry.time_s * kind.is_estimated,
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
