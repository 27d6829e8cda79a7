"""Rules of resources that serve all tasks slowly.

``slow-target``: whatever lies on one storage target is slow, whichever task asks for it. ``write-back``: the
kernel holds writers back while the dirty pages of the node are near their limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, group_medians, p_of_chance
from ensembles.diagnosis.evidence import size_classes
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, Finding, NotApplicable
from ensembles.diagnosis.limits import DENSE, LEAST_CALLS, LEAST_UNITS
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.storage_load import targets_of
from ensembles.diagnosis.without_calls import counted_case, counted_finding
from ensembles.model.distinct import distinct_rows, numbered_together
from ensembles.model.events import OPS, Events
from ensembles.model.levels import CERTAIN, FEW, LITTLE, LONGER, MOST
from ensembles.model.units import count_text, number_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.keyed_sums import KeyedSums, groups_of_rows

if TYPE_CHECKING:
    from ensembles.run.run import Run


LEAST_TARGETS = 6
"""Of one file with fewer stripes, targets are the same as call indices: tasks in step use them in turn."""


class SlowTarget(NamedTuple):
    """A slow target."""

    target: int
    targets: int  # Targets that were compared
    factor: float  # By which what lies on it takes longer than the same on others
    p: float  # Of a permutation of what was compared
    mine: np.ndarray  # bool, shape (units,): What lies on it

    @property
    def evidence(self) -> dict[str, float]:
        """Numbers of a finding."""
        return {"target": self.target, "slowdown": self.factor, "p": self.p, "targets": self.targets}

    def title(self, what: str, others: str) -> str:
        """Return a sentence for people."""
        times = f"take {number_text(self.factor)} times as long as {others}"
        return f"{what} on target {self.target} {times} on the other {self.targets - 1} targets"


def slowest_target(
    slower: np.ndarray, unit: np.ndarray, target: np.ndarray, load: np.ndarray
) -> SlowTarget | None:
    """Return the slowest target, if it is slower than load, the next one and chance explain.

    `slower` (units,): logarithm of how many times as long as others each unit takes. `unit`, `target` (n,):
    on which targets it lies. `load` (targets,): bytes or users of each target, by number.
    """
    targets, of = np.unique(target, return_inverse=True)
    busiest = np.zeros(len(slower))
    np.maximum.at(busiest, unit, np.log(np.maximum(load, 1) / max(np.median(load), 1))[of])
    parts = np.sqrt(np.bincount(of))

    def scores(values: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.bincount(of, values[unit]) / parts
        return found

    worst = int(np.argmax(scores(slower - busiest)))
    mine = np.zeros(len(slower), bool)
    mine[unit[of == worst]] = True
    value = slower - _slope(busiest[~mine], slower[~mine]) * busiest
    if mine.sum() < FEW or mine.all():
        return None
    factor = float(np.exp(np.median(value[mine]) - np.median(value)))
    elsewhere = ~mine[unit]
    others = [np.median(value[unit[elsewhere & (of == each)]]) for each in np.unique(of[elsewhere])]
    if factor < LONGER or np.log(factor) < FEW * max(others):
        return None
    p = p_of_chance(scores(value)[worst], lambda rng: scores(rng.permutation(value)).max())
    return SlowTarget(int(targets[worst]), len(targets), factor, p, mine) if p <= CERTAIN else None


def _slope(load: np.ndarray, slower: np.ndarray) -> float:
    """Estimate how much slower units are where their busiest target has more bytes (logarithms).

    Between 0 and 2: a target that is asked for more than it serves falls behind by more than in proportion.
    """
    spread = load - load.mean() if len(load) else load
    square = float((spread**2).sum())
    return float(np.clip((spread * slower).sum() / square, 0.0, 2.0)) if square > 0 else 1.0


def find_slow_calls(case: Case) -> tuple[SlowTarget, tuple[Check, ...]] | None:
    """Compare calls that lie on one target: a pair of task and target is one observation."""
    table = case.evidence.targets.columns()
    if not len(table["n"]):
        raise NotApplicable(
            "no call is known to lie on one target: the layout of the files is unknown, or each "
            "call has stripes on many "
            "targets; record file by file on Lustre, or with a small stripe count"
        )
    mean = table["log_ns"] / table["n"]
    residual = mean - group_medians(mean, groups_of_rows([table["call"], table["size"]])[0])
    targets, of_rows = np.unique(table["target"], return_inverse=True)
    if len(targets) < LEAST_TARGETS:
        raise NotApplicable(
            f"calls lie on {len(targets)} targets alone, and {LEAST_TARGETS} are needed to compare"
        )
    (rank, target), where = distinct_rows(table["rank"], table["target"])
    weight = np.bincount(where, table["time_ns"])
    value = np.bincount(where, residual * table["time_ns"]) / np.maximum(weight, 1)
    value = value - _of_tasks(value, rank)
    # A target that more tasks use at once serves each of them later: that is load, not slowness.
    loads = np.bincount(of_rows, table["bytes"]), np.bincount(np.searchsorted(targets, target))
    load = np.maximum(*(each / max(np.median(each), 1) for each in loads)) * np.median(loads[0])
    found = slowest_target(value, np.arange(len(value)), target, load)
    if found is None:
        return None
    users, slow_users = int(found.mine.sum()), float(np.mean(value[found.mine] > MOST * np.log(found.factor)))
    # Tasks in step queue up at the target where all of them begin; the first of a queue shows its own speed.
    shortest = _shortest(table, found.target)
    if slow_users < MOST or shortest < MOST * np.log(found.factor):
        return None
    text = f"permutation of targets among {len(value)} pairs of task and target: p = {found.p:.2g}"
    queue = f"also the shortest call of a task takes {number_text(np.exp(shortest))} times as long there"
    asks = f"{share_text(slow_users)} of the {users} tasks that use it alone in a call are slow there"
    return found, (Check("not-by-chance", text), Check("whoever-asks", asks), Check("not-the-queue", queue))


def share_on_target(case: Case, target: int) -> np.ndarray:
    """Estimate which share of the time of each row was spent on a target."""
    table = case.evidence.targets.columns()
    theirs, mine, size = numbered_together(("rank", "call", "size"), table, case.rows)
    part, whole = (np.bincount(theirs, table["time_ns"] * on, size) for on in (table["target"] == target, 1))
    share: np.ndarray = (part / np.maximum(whole, 1))[mine]
    return share


def _shortest(table: dict[str, np.ndarray], target: int) -> float:
    """Compute how much longer the shortest calls of the tasks are on a target (logarithm)."""
    key, mine = table["call"] * 128 + table["size"], table["target"] == target
    least = np.log(np.maximum(table["least_ns"], 1))
    total = weight = 0.0
    for name in np.unique(key[mine]):
        there, elsewhere = (key == name) & mine, (key == name) & ~mine
        if elsewhere.any():
            targets = table["target"]
            others = [
                np.median(least[elsewhere & (targets == each)]) for each in np.unique(targets[elsewhere])
            ]
            time_ns = float(table["time_ns"][there].sum())
            total += time_ns * float(np.median(least[there]) - np.median(others))
            weight += time_ns
    return total / weight if weight else 0.0


def _of_tasks(value: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the median of each task that uses several targets: a slow task is slow on all of them."""
    where = np.unique(rank, return_inverse=True)[1]
    return np.where(np.bincount(where)[where] >= LEAST_TARGETS, group_medians(value, where), 0.0)


def find_slow_files(
    case: Case, uses: FileUses
) -> tuple[SlowTarget, tuple[Check, ...], np.ndarray, np.ndarray] | None:
    """Compare files with their syncs and closes; return the slow ones, and the rows of `uses` that wait."""
    table, stripes = uses.table.columns(), case.evidence.stripes
    waits = case.calls_on_files & np.isin(case.ops, ("read", "write", "sync", "close"))
    at = stripes[np.minimum(table["file"], len(stripes) - 1)]
    known = waits[table["call"]] & (at[:, 3] > 0) & (at[:, 1] > 0) & (at[:, 1] <= LEAST_UNITS)
    files, slower, moved = _slowness(table, known)
    if len(files) < LEAST_UNITS:
        return None
    unit, target = targets_of(stripes[files])
    of = np.unique(target, return_inverse=True)[1]
    load = np.bincount(of, (moved / stripes[files, 1])[unit])
    found = slowest_target(slower, unit, target, load) if len(load) >= LEAST_UNITS else None
    if found is None:
        return None
    text = (
        f"{int(found.mine.sum())} of {len(files)} files lie on it: permutation of files, "
        f"p = {found.p:.2g}; files of about the same size are compared in each phase"
    )
    numbers = files[found.mine]
    return found, (Check("not-by-chance", text),), numbers, known & np.isin(table["file"], numbers)


def _slowness(table: dict[str, np.ndarray], known: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare the time in each file with that in others of the same phase and size class."""
    rows = np.flatnonzero(known)
    cell, first = groups_of_rows([table["file"][rows], table["phase"][rows]])
    time_ns, moved = (np.bincount(cell, table[name][rows]) for name in ("time_ns", "bytes"))
    file, phase = table["file"][rows][first], table["phase"][rows][first]
    group = groups_of_rows([phase, size_classes(moved)])[0]
    value = np.log(np.maximum(time_ns, 1))
    alike = np.bincount(group)[group] >= LEAST_UNITS
    median, length = (group_medians(of, group) for of in (value, time_ns))
    files, where = np.unique(file[alike], return_inverse=True)
    weight = np.bincount(where, length[alike], len(files))
    slower = np.bincount(where, ((value - median) * length)[alike], len(files)) / np.maximum(weight, 1)
    return files, slower, np.bincount(where, moved[alike], len(files))


_PARTS = (0.7, 1.0, 1.1)


def find_counted(run: Run) -> Finding | None:
    """Compare the times of files of one target each, by permutation of targets over files."""
    case = counted_case(run)
    files, time_s = case.files, case.time_s
    moved = files["bytes_read"] + files["bytes_written"]
    target = np.array([_only_target(run, run.files[number]) for number in files["file"].tolist()])
    known = (target >= 0) & (moved > 0) & (time_s > 0)
    targets, of = np.unique(target[known], return_inverse=True)
    if len(targets) < LEAST_UNITS:
        raise NotApplicable(
            f"the log shows files on {len(targets)} targets alone, and {LEAST_UNITS} are needed: "
            "record a run with a file for each task on Lustre, with Darshan's module LUSTRE"
        )
    slower, size = np.log(time_s[known]), np.frexp(moved[known].astype(float))[1]
    for each in np.unique(size):  # files of about the same size are compared
        slower[size == each] -= np.median(slower[size == each])
    load = np.bincount(of, moved[known])
    found = slowest_target(slower, np.arange(len(slower)), target[known], load)
    if found is None:
        return None
    chosen = known & (target == found.target)
    count, more = int(chosen.sum()), load[targets == found.target][0] / np.median(load)
    lost_s = np.where(chosen, time_s * (1 - 1 / found.factor), 0.0)
    # Elsewhere a file takes at least as long as the fastest ones of its size do.
    others = known & ~chosen
    least_s = moved * np.quantile(time_s[others] / moved[others], LITTLE)
    room_s = np.where(chosen, np.maximum(time_s - least_s, 0.0), 0.0)
    low_s, likely_s, high_s = (case.gain_s(np.minimum(part * lost_s, room_s)) for part in _PARTS)
    checks = (
        Check("not-by-chance", f"permutation of targets among {known.sum():,} files: p = {found.p:.2g}"),
        Check(
            "as-many-bytes",
            f"{count:,} files of about the same size lie on it, with {more:.2f} times as many bytes as on "
            "the other targets (median)",
        ),
    )
    return counted_finding(
        case,
        "slow-target",
        found.title("files", "those"),
        checks,
        found.evidence | {"files": count},
        (low_s, likely_s, high_s),
        chosen,
        most_s=case.gain_s(room_s),
    )


def _only_target(run: Run, path: str) -> int:
    """Return the target of a file that lies on one; -1: it has several, or they are not known."""
    striping = run.info.striping_of(path)
    if striping is None or striping.stripe_count != 1 or len(striping.components) != 1:
        return -1
    targets = striping.components[0].targets
    return int(targets[0]) if len(targets) == 1 else -1


def _find_target(case: Case, uses: FileUses) -> Remedy | None:
    of_files = find_slow_files(case, uses)
    if of_files is not None:
        found, checks, numbers, rows = of_files
        share, words = share_of_rows(case, uses.table.columns(), rows), ("files", "files")
    else:
        of_calls, numbers = find_slow_calls(case), np.empty(0, np.int64)
        if of_calls is None:
            return None
        found, checks = of_calls
        share, words = share_on_target(case, found.target), ("calls", "the same calls")
    low, saved, high = (part * (case.rows["time_ns"] * share * (1 - 1 / found.factor)) for part in _PARTS)
    files = tuple(case.run.files[number] for number in numbers.tolist())
    return Remedy(share > 0, saved, found.title(*words), checks, found.evidence, low, high, files)


slow_target = EvidenceRule("slow-target", _find_target, FILE_USES, counted=find_counted)


class WritesBySample(Summary):
    """A mergeable summary: writes between consecutive samples of the memory of their node.

    Attributes
    ----------
    table : KeyedSums
        By ``node`` and ``interval`` (number of samples before): ``bytes`` and ``time_ns`` of writes.
    """

    columns = ("rank", "call", "depth", "carried", "moved", "start", "duration")
    requires = ANY_ORDER

    def __init__(self, node: np.ndarray, times: tuple[np.ndarray, ...]) -> None:
        self._node, self._times = node, times
        self.table = KeyedSums(("node", "interval"), ("bytes", "time_ns"))

    @classmethod
    def for_run(cls, run: Run) -> WritesBySample:
        """Make an empty summary for a run."""
        node, memory = memory_of_nodes(run)
        return cls(node, tuple(time for time, _ in memory))

    def add(self, chunk: Events) -> None:
        """Add events."""
        chosen = (chunk.op == OPS.index("write")) & (chunk.moved > 0) & chunk.outermost
        writes = chunk[chosen & (chunk.rank < len(self._node))]
        node = self._node[writes.rank]
        for number in np.unique(node[node >= 0]).tolist():
            mine = writes[node == number]
            interval = np.searchsorted(self._times[number], mine.start)
            keys = {"node": np.full(len(mine), number), "interval": interval}
            self.table.add(keys | {"bytes": mine.moved, "time_ns": mine.duration})

    def merge(self, other: WritesBySample) -> None:
        """Add the writes of other calls."""
        self.table.merge(other.table)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `table`."""
        return self.table.columns()


def memory_of_nodes(run: Run) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the node of each rank (-1: none), and of each node the times and dirty shares of its samples."""
    hosts = {process.rank: process.host for process in run.info.processes}
    samples = run.surroundings().known("dirty_bytes").columns
    dirty = samples["dirty_bytes"] + np.maximum(samples["writeback_bytes"], 0)
    share = dirty / np.maximum(dirty + np.maximum(samples["available_bytes"], 0), 1)
    names = sorted({hosts.get(rank, "") for rank in np.unique(samples["rank"]).tolist()})
    of_sample = np.array([names.index(hosts.get(rank, "")) for rank in samples["rank"].tolist()], np.int64)
    memory = []
    for number in range(len(names)):
        mine = np.flatnonzero(of_sample == number)
        mine = mine[np.argsort(samples["time"][mine], kind="stable")]
        memory.append((samples["time"][mine], share[mine]))
    node = np.full(max([rank for rank in hosts if rank >= 0], default=0) + 1, -1)
    for rank, host in hosts.items():
        if rank >= 0 and host in names:
            node[rank] = names.index(host)
    return node, memory


def _need_samples(run: Run) -> None:
    if not len(run.surroundings().known("dirty_bytes")):
        raise NotApplicable(
            "the run has no samples of the kernel's memory: record it with ensio, without "
            "ENSIO_SURROUNDINGS=0"
        )


def _find_held_back(case: Case, summary: WritesBySample) -> Remedy | None:
    table = summary.to_arrays()
    _, memory = memory_of_nodes(case.run)
    ends = [np.concatenate([share, share[-1:]]) for _, share in memory]
    before = [np.concatenate([share[:1], share]) for _, share in memory]
    if not len(table["node"]) or max(float(share.max()) for share in ends) < LITTLE:  # no writer waits
        return None
    pairs = list(zip(table["node"].tolist(), table["interval"].tolist(), strict=True))
    level = np.array([(ends[node][at] + before[node][at]) / 2 for node, at in pairs])
    slowness = np.log(table["time_ns"] / table["bytes"])
    if len(level) < LEAST_CALLS:
        raise NotApplicable(
            f"the memory of the nodes was sampled {count_text(len(level), 'time')} while tasks wrote, and "
            f"{LEAST_CALLS} are needed: record a longer run (a sample is taken every few seconds)"
        )
    near = level >= DENSE * level.max()
    if near.all() or not near.any():
        return None
    difference = _slower(slowness, near)
    p = p_of_chance(difference, lambda rng: _slower(rng.permutation(slowness), near))
    factor = float(np.exp(difference))
    if p > CERTAIN or factor < LONGER:
        return None
    part = float(table["time_ns"][near].sum() / table["time_ns"].sum())
    rows = (case.op == "write") & (case.rows["depth"] == 0) & (case.rows["bytes"] > 0)
    saved = np.where(rows, case.rows["time_ns"] * part * (1 - 1 / factor), 0.0)
    checks = (
        Check("near-the-limit", f"up to {share_text(level.max())} of the memory of a node is dirty"),
        Check(
            "not-by-chance",
            f"in {int(near.sum())} of {len(level)} intervals between samples, writes take "
            f"{number_text(factor)} times as long per byte: permutation of intervals, p = {p:.2g}",
        ),
    )
    title = f"writes take {number_text(factor)} times as long while dirty pages are near their limit"
    evidence = {"dirty_share": float(level.max()), "slowdown": factor, "p": p, "intervals": len(level)}
    # The bytes have to reach the disk: what is gained is at most what computation can hide.
    return Remedy(rows, saved, title, checks, evidence, np.zeros(len(case)), saved)


def _slower(slowness: np.ndarray, near: np.ndarray) -> float:
    return float(np.median(slowness[near]) - np.median(slowness[~near]))


write_back = EvidenceRule(
    "write-back",
    _find_held_back,
    {"writes-by-sample": SummaryRequest(WritesBySample.for_run, WritesBySample.columns)},
    _need_samples,
)
