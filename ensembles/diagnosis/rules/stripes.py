"""Rules of files whose stripes are known.

``single-stripe``: many tasks write a shared file that lies on one storage target. ``lock-contention``: nodes
take the lock of the same stripes from each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, p_of_chance
from ensembles.diagnosis.evidence import size_classes, stripes_of
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows, tasks_at_once
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.limits import LEAST_CALLS, LEAST_UNITS, LOW, SMALL_CLASS, WIDE_BYTES
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.without_calls import CountedCase, counted_case, counted_finding
from ensembles.model.distinct import distinct_rows
from ensembles.model.events import OPS, Events
from ensembles.model.levels import ALIKE, CERTAIN, FEW, LONGER, MOST, NEARLY_ALL
from ensembles.model.units import count_text, number_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.structure.phases.result import phases_of_calls

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.result import Phases


WIDER = 8
"""Stripes of the remedy whose gain is predicted."""


class Crowded(NamedTuple):
    """Calls on shared files of one stripe."""

    # bool, shape (m,): Of `FileUses.table`: calls while several tasks have work for the target
    rows: np.ndarray
    writes: np.ndarray  # bool, shape (m,): Writes to files of one stripe
    at_once: float  # Targets for which there is work at once
    least_at_once: float  # The same if tasks go on from target to target together
    makers: int  # Tasks that write to these files
    # The work is that of calls on the file; else it waits for the few tasks that make the calls for all
    sure: bool


def find_crowded(case: Case, table: dict[str, np.ndarray]) -> Crowded | None:
    """Find calls on shared files of one stripe, for which several targets would have work."""
    layouts = [case.run.info.striping_of(path) for path in case.run.files]
    counts = np.array([0 if layout is None else layout.stripe_count for layout in layouts])
    if not counts.any():
        raise NotApplicable(
            "the layout of the files is not known: record the run on Lustre, with the client's extended "
            "attributes"
        )
    op, uses = case.ops[table["call"]], case.calls_on_files[table["call"]]
    # What a write leaves in the cache, a close, a sync or the next read waits for.
    uses &= np.isin(op, ("write", "read", "sync", "close")) & (counts[table["file"]] == 1)
    writes = uses & (op == "write") & (table["bytes"] > 0)
    if not writes.any():
        return None
    number, written = table["file"][uses], table["file"][writes]
    users = np.bincount(distinct_rows(number, table["rank"][uses])[0][0], minlength=len(counts))
    moved = np.bincount(written, table["bytes"][writes], len(counts))
    shared = (users >= LEAST_UNITS) & (moved >= WIDE_BYTES)
    # One large write is for as many targets as it has stripes.
    stripes = np.array([layout.stripe_bytes if layout is not None else 0 for layout in layouts])
    of_call = moved / np.maximum(np.bincount(written, table["n"][writes], len(counts)), 1)
    at_once = tasks_at_once(table, uses)
    time_ns = table["time_ns"][uses]
    # In a collective call, the bytes of all tasks are there at once, although few of them store them.
    together = _bytes_of_collectives(case, table, len(counts))
    by_tasks, at_once = (
        at_once * np.clip(each / np.maximum(stripes, 1), 1, WIDER)[number]
        for each in (of_call, np.maximum(of_call, together))
    )
    every, early = _targets_with_more_stripes(table, uses, writes, stripes)
    at_once = np.minimum(at_once, every)
    crowded = shared[number] & (at_once >= FEW)
    if not crowded.any():
        return None
    makers = len(np.unique(table["rank"][writes & shared[table["file"]]]))
    sure = makers >= LEAST_UNITS and bool(np.average(by_tasks[crowded], weights=time_ns[crowded]) >= FEW)
    chosen = uses.copy()
    chosen[uses] = crowded
    # No more targets help than there is work at once.
    useful = float(np.clip(np.average(at_once[crowded], weights=time_ns[crowded]), FEW, WIDER))
    least = float(np.average(np.minimum(at_once, early)[crowded], weights=time_ns[crowded]))
    return Crowded(chosen, writes, useful, least, makers, sure)


def _targets_with_more_stripes(
    table: dict[str, np.ndarray], uses: np.ndarray, writes: np.ndarray, stripes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Count the targets that the writes of each row's phase would lie on, if the file had more stripes.

    Tasks whose parts lie whole rounds of stripes apart begin on the same target. If it serves all alike, they
    go on to the next at about the same time, as long as their parts do not reach over all stripes. A close
    or a sync waits for the writes of all phases.
    """
    file = table["file"][uses]
    _, where = distinct_rows(file, table["phase"][uses])
    shape = (int(where.max(initial=-1)) + 1, WIDER)
    group = np.full(len(uses), -1)
    group[uses] = where
    at = np.flatnonzero(writes & (table["low"] < table["high"]) & (stripes[table["file"]] > 0))
    step = stripes[table["file"][at]]
    first = table["low"][at] // step
    reach = np.minimum((table["high"][at] - 1) // step - first, WIDER - 1)
    touched, begun, reaches_all = np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape[0], bool)
    begun[group[at], first % WIDER] = True
    for further in range(WIDER):
        some = reach >= further
        touched[group[at[some]], (first[some] + further) % WIDER] = True
    reaches_all[group[at[reach == WIDER - 1]]] = True
    of_file = np.zeros((len(stripes), WIDER), bool)
    np.logical_or.at(of_file, file, touched[where])
    every = np.where(writes[uses], touched.sum(axis=1)[where], of_file.sum(axis=1)[file])
    early = np.where(writes[uses] & ~reaches_all[where], begun.sum(axis=1)[where], every)
    is_known = every > 0  # calls without an offset say nothing
    return np.where(is_known, every, WIDER).astype(float), np.where(is_known, early, WIDER).astype(float)


def _bytes_of_collectives(case: Case, table: dict[str, np.ndarray], files: int) -> np.ndarray:
    """Return the bytes that all tasks together write in one collective call on each file; 0: in none."""
    names = case.names[table["call"]]
    rows = np.char.startswith(names, "MPI_File_write") & np.char.endswith(names, "_all")
    moved, calls = (np.bincount(table["file"][rows], table[name][rows], files) for name in ("bytes", "n"))
    found: np.ndarray = len(case.ranks) * moved / np.maximum(calls, 1)
    return found


_LIKELY = 0.35


def find_counted(run: Run) -> Finding | None:
    """Find shared files with a stripe count of 1 that several tasks write at the same time.

    MPI-IO comes first: one stripe makes ROMIO choose one aggregator, so that POSIX shows a single task.
    """
    case = counted_case(run)
    layouts = [run.info.striping_of(run.files[number]) for number in case.files["file"].tolist()]
    if "MPI-IO" in run.counters.modules:
        collective = counted_case(run, "MPI-IO")
        layouts += [run.info.striping_of(run.files[number]) for number in collective.files["file"].tolist()]
        found = _find_in(collective, case)
    else:
        found = None
    if all(layout is None for layout in layouts):
        raise NotApplicable("the layout of the files is not known: record on Lustre, with the module LUSTRE")
    return found or _find_in(case, case)


def _find_in(case: CountedCase, posix: CountedCase) -> Finding | None:
    run, files = case.run, case.files
    layouts = [run.info.striping_of(run.files[number]) for number in files["file"].tolist()]
    counts = np.array([0 if layout is None else layout.stripe_count for layout in layouts])
    lasts_s = np.nan_to_num(files["end_s"] - files["start_s"])
    at_once = (files["read_s"] + files["write_s"]) / np.maximum(lasts_s, 1e-9)
    chosen = (counts == 1) & (files["is_shared"] > 0) & (files["bytes_written"] >= WIDE_BYTES)
    chosen &= (at_once >= FEW) & (run.tasks >= LEAST_UNITS)
    if not chosen.any():
        return None
    useful = np.clip(at_once, FEW, WIDER)
    saved = np.where(chosen, case.time_s * (1 - 1 / useful), 0.0)
    most = float(at_once[chosen].max())
    number = int(chosen.sum())
    files_text = f"{number} shared file{'s' * (number != 1)}"
    checks = [
        Check("one-target", f"{files_text} with a stripe count of 1"),
        Check("many-writers", f"on average, {number_text(most)} tasks are in calls on it at the same time"),
        Check(
            "others-are-faster",
            "how fast more stripes are is not in this run: record one with a stripe count of 8",
            None,
        ),
    ]
    if case.module.layer == "mpiio" and (alone := _aggregator(posix, files["file"][chosen])) is not None:
        checks.insert(2, alone)
    return counted_finding(
        case,
        "single-stripe",
        f"{run.tasks:,} tasks write {files_text} on one storage target{' each' * (number != 1)}",
        checks,
        {"tasks": run.tasks, "tasks_at_once": most, "files": number},
        (0.0, _LIKELY * case.gain_s(saved), case.gain_s(saved)),
        chosen,
        "write",
    )


def _aggregator(posix: CountedCase, numbers: np.ndarray) -> Check | None:
    """Say that one task moves the bytes of all, if the calls of POSIX in these files show it."""
    files = posix.files
    here = np.isin(files["file"], numbers) & (files["bytes_read"] + files["bytes_written"] >= WIDE_BYTES)
    spent_s = (files["read_s"] + files["write_s"] + files["meta_s"])[here]
    slowest_s = posix.time_s[here]
    if not len(spent_s) or slowest_s.sum() < NEARLY_ALL * spent_s.sum():
        return None
    ranks = np.unique(files["slowest_rank"][here])
    who = f"task {int(ranks[0])}" if len(ranks) == 1 and ranks[0] >= 0 else "one task a file"
    return Check(
        "one-aggregator",
        f"{who} spends {share_text(slowest_s.sum() / spent_s.sum())} of the time in POSIX calls",
    )


def _find_single(case: Case, summary: FileUses) -> Remedy | None:
    table = summary.table.columns()
    found = find_crowded(case, table)
    if found is None:
        return None
    chosen, useful = found.rows, found.at_once
    moved = np.bincount(table["file"][found.writes], table["bytes"][found.writes], len(case.run.files))
    # A target that always has work serves the same bytes, whatever the number of tasks that wait for it: with
    # more stripes each target has its part of them. No more targets help than there is work at once.
    # At the lower end client and network limit it, to few targets.
    least = min(max(useful * LEAST_UNITS / WIDER, LONGER), found.least_at_once)
    share = share_of_rows(case, table, chosen)
    time_ns = case.rows["time_ns"] * share
    files = np.unique(table["file"][chosen])
    names = case.paths(np.where(np.isin(np.arange(len(moved)), files), moved, 0))
    tasks = len(np.unique(table["rank"][chosen]))
    files_text = count_text(len(files), "shared file")
    small = (case.rows["size"] <= SMALL_CLASS) & (case.rows["bytes"] > 0)
    of_small = float(time_ns[small].sum() / max(time_ns.sum(), 1))
    checks = [
        Check("one-target", f"{files_text} with a stripe count of 1"),
        Check("many-writers", f"{tasks} tasks use them, with work for {number_text(useful)} targets at once"),
    ]
    if of_small > MOST:
        text = (
            f"{share_text(of_small)} of the time is in requests below 256 KiB, which may wait "
            "for themselves only"
        )
        checks.append(Check("for-the-target", text, None))
    if not found.sure:
        text = f"{found.makers} of {tasks} tasks make the writes of all: they may be slow themselves"
        checks.append(Check("not-the-aggregators", text, None))
    saved = time_ns * (1 - 1 / useful)
    most = saved if found.sure else time_ns * (1 - 1 / WIDER)
    return Remedy(
        share > 0,
        saved if found.sure else LOW * saved,
        f"{tasks} tasks write {files_text} on one storage target{' each' * (len(files) != 1)}",
        tuple(checks),
        {
            "tasks": tasks,
            "tasks_at_once": useful,
            "files": len(files),
            "gain_assumes": f"a stripe count of {WIDER} on targets that are as fast as this one",
        },
        np.where(small | (not found.sure or least < ALIKE), 0.0, time_ns * (1 - 1 / least)),
        most,
        names,
    )


single_stripe = EvidenceRule("single-stripe", _find_single, FILE_USES, counted=find_counted)


MOST_ROWS = 1 << 17

_NAMES = ("file", "stripe", "start", "rank", "phase", "call", "size", "ragged", "duration")


class StripeWrites(Summary):
    """A mergeable summary: the writes to some stripes of files whose layout is known.

    Stripes are chosen by a hash of file and number, so that all parts of a run choose the same ones. If too
    many writes are held, the share of the stripes is halved.

    Parameters
    ----------
    stripe_bytes : ndarray of int64, shape (files,)
        Bytes of a stripe of each file; 0: unknown.

    Attributes
    ----------
    share : float
        Share of the stripes that is held.
    """

    columns = ("rank", "call", "file", "offset", "requested", "moved", "start", "duration")
    requires = ANY_ORDER
    meaning = 1

    def __init__(self, phases: Phases | None, stripe_bytes: np.ndarray) -> None:
        self._phases, self._stripe_bytes = phases, stripe_bytes
        self.share = 1.0
        self._parts: list[np.ndarray] = []

    @classmethod
    def for_run(cls, run: Run) -> StripeWrites:
        """Make an empty summary for a run."""
        return cls(run.phases, stripes_of(run)[:, 0])

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        chosen = (chunk.op == OPS.index("write")) & (chunk.offset >= 0) & (chunk.moved > 0)
        chosen &= self._stripe_bytes[np.minimum(chunk.file, len(self._stripe_bytes) - 1)] > 0
        at = np.flatnonzero(chosen)
        if not len(at):
            return
        phase = phases_of_calls(self._phases, chunk)[at]
        writes = chunk[at]
        width = self._stripe_bytes[writes.file]
        low, high = writes.offset, writes.offset + writes.moved
        ragged = (low % width != 0).astype(np.int64) + (high % width != 0)
        columns = (writes.file, low // width, writes.start, writes.rank, phase, writes.call)
        rows = np.stack(
            [
                *(column.astype(np.int64) for column in columns),
                size_classes(writes.requested),
                ragged,
                writes.duration,
            ]
        )
        last = (high - 1) // width
        second = rows[:, last != rows[1]]
        second[1] = last[last != rows[1]]
        self._keep(np.concatenate([rows, second], axis=1))

    def merge(self, other: StripeWrites) -> None:
        """Add the writes of other calls."""
        self.share = min(self.share, other.share)
        self._parts += other._parts
        self._keep(np.empty((len(_NAMES), 0), np.int64))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the writes, sorted by file, stripe and start."""
        rows = self._held()
        rows = rows[:, np.lexsort(rows[[3, 2, 1, 0]])]
        return dict(zip(_NAMES, rows, strict=True))

    def _held(self) -> np.ndarray:
        empty = np.empty((len(_NAMES), 0), np.int64)
        rows = np.concatenate([empty, *self._parts], axis=1)
        return rows[:, _lot(rows[0], rows[1]) < self.share]

    def _keep(self, rows: np.ndarray) -> None:
        self._parts.append(rows[:, _lot(rows[0], rows[1]) < self.share])
        if sum(part.shape[1] for part in self._parts) <= MOST_ROWS:
            return
        self._parts = [self._held()]
        while self._parts[0].shape[1] > MOST_ROWS and self.share > 2.0**-40:
            self.share /= 2
            self._parts = [self._held()]


def _lot(file: np.ndarray, stripe: np.ndarray) -> np.ndarray:
    """Compute a reproducible random number from 0 to 1 for each stripe (finaliser of SplitMix64)."""
    x = (stripe.astype(np.uint64) << np.uint64(20)) ^ file.astype(np.uint64)
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    lot: np.ndarray = (x ^ (x >> np.uint64(31))) / 2.0**64
    return lot


REQUEST = SummaryRequest(StripeWrites.for_run, StripeWrites.columns)
"""What rules need, to get it filled."""


def alternation(
    rows: dict[str, np.ndarray], ranks: np.ndarray, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Compare writes to a stripe that another node wrote before with those after one of the same node."""
    task = np.searchsorted(ranks, rows["rank"])
    same = np.zeros(len(task), bool)
    same[1:] = (rows["file"][1:] == rows["file"][:-1]) & (rows["stripe"][1:] == rows["stripe"][:-1])
    before = np.concatenate([[0], task[:-1]])
    # A task that goes on in its stripe keeps the lock and its page: it compares with nothing.
    follows = np.flatnonzero(same & (before != task))
    mine, theirs = task[follows], before[follows]
    taken = nodes[mine] != nodes[theirs]
    if not len(follows) or taken.all():
        return follows, taken, 0.0, 1.0
    _, group = distinct_rows(*(rows[name][follows] for name in ("phase", "call", "size", "ragged")))
    value = np.log(np.maximum(rows["duration"][follows], 1))
    value = value - (np.bincount(group, value) / np.bincount(group))[group]
    effect = _effect(value, taken)

    def drawn(rng: np.random.Generator) -> float:
        other = rng.permutation(nodes)
        return _effect(value, other[mine] != other[theirs])

    return follows, taken, effect, p_of_chance(effect, drawn)


def _effect(value: np.ndarray, taken: np.ndarray) -> float:
    return float(value[taken].mean() - value[~taken].mean()) if taken.any() and not taken.all() else 0.0


def _need_nodes(run: Run) -> None:
    if not any("lustre.lov" in facts for facts in run.info.file_facts.values()):
        raise NotApplicable("the stripes of the files are not known: record the run on Lustre")
    hosts = {process.host for process in run.info.processes if process.host}
    if not hosts:
        raise NotApplicable("the nodes of the tasks are not known: record the run with ensio")
    if len(hosts) < 2:
        raise NotApplicable("all tasks are on one node, which holds its locks: record a run on several nodes")


def _find_contention(case: Case, summary: StripeWrites) -> Remedy | None:
    nodes = case.nodes_of_tasks()
    if nodes is None:
        raise NotApplicable("the nodes of some tasks are not known: record all tasks with ensio")
    rows = summary.to_arrays()
    mine = case.calls_on_files[rows["call"]]
    rows = {name: column[mine] for name, column in rows.items()}
    follows, taken, effect, p = alternation(rows, case.ranks, nodes)
    if len(follows) < LEAST_CALLS:
        return None
    if taken.all():
        raise NotApplicable(
            "every write follows one of another node in its stripe, and none shows what a write without "
            "a lock takes: record a run with several tasks on each node"
        )
    factor = float(np.exp(effect))
    if p > CERTAIN or factor < ALIKE:
        return None
    task = np.searchsorted(case.ranks, rows["rank"])
    writes = (case.op == "write") & case.on_files & np.isin(case.rows["call"], rows["call"])
    whole = np.bincount(task, minlength=len(case.ranks))
    part = np.bincount(task[follows][taken], minlength=len(case.ranks)) / np.maximum(whole, 1)
    share = np.where(writes, part[case.task], 0.0)
    saved = case.rows["time_ns"] * share * (1 - 1 / factor)
    files = np.unique(rows["file"][follows[taken]])
    error_s = case.run.info.clock_error_s
    usual_s = float(np.median(rows["duration"])) * 1e-9
    clocks = None if error_s is None else error_s < usual_s or None
    checks = (
        Check(
            "not-by-chance",
            f"{int(taken.sum()):,} of {len(taken):,} writes follow one of another node in their stripe: "
            f"permutation of tasks over nodes, p = {p:.2g}",
        ),
        Check("not-the-alignment", "compared are writes of one size with as many ends inside a stripe"),
        Check(
            "clocks",
            f"clocks of nodes agree to {'an unknown time' if error_s is None else seconds_text(error_s)}; "
            f"a write takes {seconds_text(usual_s)}",
            clocks,
        ),
    )
    return Remedy(
        share > 0,
        saved,
        f"writes to a stripe that another node wrote before take {number_text(factor)} times as long",
        checks,
        {"slowdown": factor, "p": p, "stripes_sampled_share": summary.share, "writes": int(taken.sum())},
        0.6 * saved,
        1.2 * saved,
        tuple(case.run.files[number] for number in files.tolist()),
    )


lock_contention = EvidenceRule("lock-contention", _find_contention, {"stripe-writes": REQUEST}, _need_nodes)
