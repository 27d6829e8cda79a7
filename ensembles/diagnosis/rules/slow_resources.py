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
from ensembles.diagnosis.limits import DENSE, FEW, LEAST_CALLS, LEAST_RATIO, LEAST_UNITS, LITTLE
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.storage_load import targets_of
from ensembles.diagnosis.without_calls import counted_case, counted_finding
from ensembles.model.distinct import numbered_together
from ensembles.model.events import OPS, Events
from ensembles.model.levels import CERTAIN, MOST
from ensembles.model.units import count_text, number_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.summaries.keyed_sums import KeyedSums, groups_of_rows

if TYPE_CHECKING:
    from ensembles.run.run import Run


LEAST_TARGETS = 6
"""Of one file with fewer stripes, targets are the same as call indices: tasks in step use them in turn."""

OUTLIER = 2.0


class SlowTarget(NamedTuple):
    """A slow target."""

    target: int
    factor: float  # By which its calls take longer than the same calls on others
    p: float  # Of a permutation of targets among pairs of task and target
    shortest: float  # The same factor, of the shortest call of each task
    slow_users: float  # Share of the tasks that are slow there
    # users, pairs, targets: Tasks that use it, and pairs and targets that were compared
    users: int
    pairs: int
    targets: int


def find_slow_target(case: Case) -> SlowTarget | None:
    """Return the slowest target, if it is slower than load, tasks and chance explain."""
    table = case.evidence.targets.columns()
    if not len(table["n"]):
        raise NotApplicable(
            "no call is known to lie on one target: the layout of the files is unknown, or each "
            "call has stripes on many "
            "targets; record file by file on Lustre, or with a small stripe count"
        )
    mean = table["log_ns"] / table["n"]
    residual = mean - group_medians(mean, groups_of_rows([table["call"], table["size"]])[0])
    targets, target = np.unique(table["target"], return_inverse=True)
    if len(targets) < LEAST_TARGETS:
        raise NotApplicable(
            f"calls lie on {len(targets)} targets alone, and {LEAST_TARGETS} are needed to compare"
        )
    # A pair of task and target is one observation: its calls share what happens to them.
    pair, where = np.unique(table["rank"] * (1 << 32) + table["target"], return_inverse=True)
    weight = np.bincount(where, table["time_ns"])
    value = np.bincount(where, residual * table["time_ns"]) / np.maximum(weight, 1)
    of = np.searchsorted(targets, pair % (1 << 32))
    value = value - _of_tasks(value, pair >> 32)
    value = value - _explained_by_load(table, target, np.bincount(of))[of]
    score = _scores(value, of, len(targets))
    worst = int(np.argmax(score))
    p = p_of_chance(score[worst], lambda rng: _scores(rng.permutation(value), of, len(targets)).max())
    # A target that more tasks use at once serves each of them later: that is load, not slowness.
    mine = of == worst
    factor, users = float(np.exp(np.median(value[mine]))), int(mine.sum())
    slow_users = float(np.mean(value[mine] > 0.5 * np.log(factor)))
    medians = np.array([np.median(value[of == number]) for number in range(len(targets))])
    next_worst = float(np.max(np.delete(medians, worst)))
    if p > CERTAIN or factor < LEAST_RATIO or users < 2 or slow_users < MOST:
        return None
    if np.log(factor) < OUTLIER * next_worst:
        return None
    # Tasks in step queue up at the target where all of them begin; the first of a queue shows its own speed.
    shortest = _shortest(table, int(targets[worst]))
    if shortest < MOST * np.log(factor):
        return None
    return SlowTarget(
        int(targets[worst]), factor, p, float(np.exp(shortest)), slow_users, users, len(pair), len(targets)
    )


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


def _explained_by_load(table: dict[str, np.ndarray], target: np.ndarray, users: np.ndarray) -> np.ndarray:
    """Compute what more bytes, or more tasks, than usual explain of the time of each target (logarithms)."""
    load = np.bincount(target, table["bytes"]).astype(float)
    more = [np.log(np.maximum(values, 1) / np.median(values)) for values in (load, users.astype(float))]
    # A target that is asked for more than it can serve falls behind by more than in proportion.
    found: np.ndarray = 2 * np.maximum(np.maximum(*more), 0)
    return found


def _scores(value: np.ndarray, target: np.ndarray, targets: int) -> np.ndarray:
    count = np.bincount(target, minlength=targets)
    return np.bincount(target, value, targets) / np.sqrt(np.maximum(count, 1))


class SlowFiles(NamedTuple):
    """Files on a slow target."""

    target: int
    factor: float  # By which they take longer than other files of the same size in the same phase
    p: float  # Of a permutation of files
    files: np.ndarray  # int64, shape (k,): Their numbers
    # compared, targets: Files and targets that were compared
    compared: int
    targets: int
    rows: np.ndarray  # bool, shape (m,): Of `FileUses.table`: their transfers, syncs and closes


def find_slow_files(case: Case, uses: FileUses) -> SlowFiles | None:
    """Return the files of the slowest target, if load and chance do not explain that they are slower."""
    table, stripes = uses.table.columns(), case.evidence.stripes
    waits = case.calls_on_files & np.isin(case.ops, ("read", "write", "sync", "close"))
    at = stripes[np.minimum(table["file"], len(stripes) - 1)]
    known = waits[table["call"]] & (at[:, 3] > 0) & (at[:, 1] > 0) & (at[:, 1] <= LEAST_UNITS)
    files, slower, moved = _slowness(table, known)
    if len(files) < LEAST_UNITS:
        return None
    file, target = targets_of(stripes[files])
    targets, of = np.unique(target, return_inverse=True)
    if len(targets) < LEAST_UNITS:
        return None
    load = np.bincount(of, (moved / stripes[files, 1])[file])
    busiest = np.zeros(len(files))
    np.maximum.at(busiest, file, np.log(np.maximum(load[of], 1) / max(np.median(load), 1)))
    users = np.bincount(of)
    score = np.bincount(of, (slower - busiest)[file]) / np.sqrt(users)
    worst = int(np.argmax(score))
    mine = np.zeros(len(files), bool)
    mine[file[of == worst]] = True
    value = slower - _slope(busiest[~mine], slower[~mine]) * busiest
    score = np.bincount(of, value[file]) / np.sqrt(users)
    factor = float(np.exp(np.median(value[mine]) - np.median(value)))
    if mine.sum() < FEW or mine.all() or factor < LEAST_RATIO:
        return None
    p = p_of_chance(
        score[worst], lambda rng: (np.bincount(of, rng.permutation(value)[file]) / np.sqrt(users)).max()
    )
    elsewhere = ~mine[file]
    others = [np.median(value[file[elsewhere & (of == each)]]) for each in np.unique(of[elsewhere])]
    if p > CERTAIN or np.log(factor) < OUTLIER * max(others):
        return None
    rows = known & np.isin(table["file"], files[mine])
    return SlowFiles(int(targets[worst]), factor, p, files[mine], len(files), len(targets), rows)


def _slope(load: np.ndarray, slower: np.ndarray) -> float:
    """Estimate how much slower files are where their busiest target has more bytes (logarithms).

    Between 0 and 2: a target that is asked for more than it serves falls behind by more than in proportion.
    """
    spread = load - load.mean() if len(load) else load
    square = float((spread**2).sum())
    return float(np.clip((spread * slower).sum() / square, 0.0, 2.0)) if square > 0 else 1.0


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
    targets, of, count = np.unique(target[known], return_inverse=True, return_counts=True)
    if len(targets) < LEAST_UNITS:
        raise NotApplicable(
            f"the log shows files on {len(targets)} targets alone, and {LEAST_UNITS} are needed: "
            "record a run with a file for each task on Lustre, with Darshan's module LUSTRE"
        )
    value, size = np.log(time_s[known]), np.frexp(moved[known].astype(float))[1]
    for each in np.unique(size):  # files of about the same size are compared
        value[size == each] -= np.median(value[size == each])
    load = np.bincount(of, moved[known])
    value -= 2 * np.maximum(np.log(load / np.median(load)), 0)[of]
    score = np.bincount(of, value) / np.sqrt(count)
    worst = int(np.argmax(score))
    p = p_of_chance(
        score[worst], lambda rng: (np.bincount(rng.permutation(of), value) / np.sqrt(count)).max()
    )
    medians = np.array([np.median(value[of == number]) for number in range(len(targets))])
    factor, next_worst = float(np.exp(medians[worst])), float(np.max(np.delete(medians, worst)))
    if p > CERTAIN or count[worst] < FEW or factor < LEAST_RATIO:
        return None
    if np.log(factor) < OUTLIER * next_worst:
        return None
    number = int(targets[worst])
    chosen = known & (target == number)
    lost_s = np.where(chosen, time_s * (1 - 1 / factor), 0.0)
    # Elsewhere a file takes at least as long as the fastest ones of its size do.
    others = known & ~chosen
    least_s = moved * np.quantile(time_s[others] / moved[others], LITTLE)
    room_s = np.where(chosen, np.maximum(time_s - least_s, 0.0), 0.0)
    low_s, likely_s, high_s = (case.gain_s(np.minimum(part * lost_s, room_s)) for part in _PARTS)
    checks = (
        Check("not-by-chance", f"permutation of targets among {known.sum():,} files: p = {p:.2g}"),
        Check(
            "as-many-bytes",
            f"{count[worst]:,} files of about the same size lie on it, with "
            f"{load[worst] / np.median(load):.2f} times as many bytes as on the other targets (median)",
        ),
    )
    return counted_finding(
        case,
        "slow-target",
        f"files on target {number} take {number_text(factor)} times as long as those on the other "
        f"{len(targets) - 1} targets",
        checks,
        {"target": number, "slowdown": factor, "p": p, "targets": len(targets), "files": int(count[worst])},
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
    files = find_slow_files(case, uses)
    if files is not None:
        text = (
            f"{len(files.files)} of {files.compared} files lie on it: permutation of files, "
            f"p = {files.p:.2g}; files of about the same size are compared in each phase"
        )
        share = share_of_rows(case, uses.table.columns(), files.rows)
        return _remedy(case, files, share, ("files", "files"), (Check("not-by-chance", text),))
    found = find_slow_target(case)
    if found is None:
        return None
    checks = (
        Check(
            "not-by-chance",
            f"permutation of targets among {found.pairs} pairs of task and target: p = {found.p:.2g}",
        ),
        Check(
            "whoever-asks",
            f"{share_text(found.slow_users)} of the {found.users} tasks that use it alone in a call "
            "are slow there",
        ),
        Check(
            "not-the-queue",
            f"also the shortest call of a task takes {number_text(found.shortest)} times as long there",
        ),
    )
    return _remedy(case, found, share_on_target(case, found.target), ("calls", "the same calls"), checks)


def _remedy(
    case: Case,
    found: SlowTarget | SlowFiles,
    share: np.ndarray,
    words: tuple[str, str],
    checks: tuple[Check, ...],
) -> Remedy:
    """Take what is beyond the time on other targets off a share of each row; `words`: here and there."""
    low, saved, high = (part * (case.rows["time_ns"] * share * (1 - 1 / found.factor)) for part in _PARTS)
    numbers = found.files.tolist() if isinstance(found, SlowFiles) else []
    return Remedy(
        share > 0,
        saved,
        f"{words[0]} on target {found.target} take {number_text(found.factor)} times as long as {words[1]} "
        f"on the other {found.targets - 1} targets",
        checks,
        {"target": found.target, "slowdown": found.factor, "p": found.p, "targets": found.targets},
        low,
        high,
        tuple(case.run.files[number] for number in numbers),
    )


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
    if p > CERTAIN or factor < LEAST_RATIO:
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
