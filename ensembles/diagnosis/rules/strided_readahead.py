"""Rule ``strided-readahead``: read-ahead that makes strided reads slow.

The case (Uselton et al., "Parallel I/O Performance: From Events to Ensembles", 2010, section IV): Lustre's
client recognises a strided pattern at its third appearance and gives the reads from the fourth on a larger
window. If writes between the reads have filled the client's memory, that window is fetched in pages of 4 KiB.
The evidence: slow reads begin with the fourth, each is slower than the one before, and the same reads are
fast without writes between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable
from ensembles.diagnosis.limits import FAR
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.distinct import distinct_rows, numbered_together
from ensembles.model.events import Events
from ensembles.model.levels import A_TENTH, ALIKE, LONGER, MOST, MOST_KINDS, NEARLY_ALL
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.model.units import bytes_text, number_text, seconds_text, share_text
from ensembles.passes.group import SummaryRequest
from ensembles.structure.phases.result import phases_of_calls
from ensembles.structure.strides import StridedReads

HEALTHY_READS = 3
"""The client recognises a stride when it appears for the third time; the reads after that are read ahead."""

LEAST_READS = HEALTHY_READS + 2
"""Of a strided run that can be judged: one read alone cannot get worse."""

_OF_MEDIAN = 1.482602218505602
"""Ratio of the standard deviation to the median absolute deviation of a normal distribution."""


@dataclass(frozen=True)
class StridedRuns:
    """Strided runs with, or without, writes between their reads; one row a run."""

    # rank, run: int64, shape (r,): The task, and the index of the run among those of its file
    rank: np.ndarray
    run: np.ndarray
    # float64, shape (r, p): Logarithm of ns per byte of the read at each position; NaN: there is no read
    time: np.ndarray
    writing: np.ndarray  # float64, shape (r, p): The same of the writes since the read before

    @classmethod
    def from_rows(cls, rows: np.ndarray) -> StridedRuns:
        """Make runs from rows that `judgeable` returned."""
        new = _begins(rows)
        first, row = np.flatnonzero(new), np.cumsum(new) - 1
        single = rows["position"] <= MOST_KINDS
        width = int(rows["position"][single].max(initial=HEALTHY_READS))
        time, writing = np.full((2, len(first), width), np.nan)
        at = row[single], rows["position"][single].astype(np.int64) - 1
        time[at] = np.log(np.maximum(rows["duration_ns"], 1) / rows["bytes"])[single]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.log(np.maximum(rows["writing_ns"], 1) / rows["written_bytes"])
        writing[at] = np.where(rows["written_bytes"] > 0, rate, np.nan)[single]
        return cls(rows["rank"][first].astype(np.int64), rows["run"][first].astype(np.int64), time, writing)

    def __len__(self) -> int:
        return len(self.rank)

    def some(self, mask: np.ndarray) -> StridedRuns:
        """Select runs by a mask."""
        return StridedRuns(self.rank[mask], self.run[mask], self.time[mask], self.writing[mask])

    @property
    def base(self) -> np.ndarray:
        """Median of the reads before the stride is recognised, of each run: shape (r,)."""
        base: np.ndarray = np.median(self.time[:, :HEALTHY_READS], axis=1)
        return base

    @property
    def rise(self) -> np.ndarray:
        """Median of the later reads minus `base`, of each run: shape (r,)."""
        rise: np.ndarray = _median(self.time[:, HEALTHY_READS:]) - self.base
        return rise

    @property
    def with_writes(self) -> np.ndarray:
        """Whether writes come before the read at each position, in most runs.

        The shape is (p,).
        """
        mostly: np.ndarray = 2 * np.count_nonzero(~np.isnan(self.writing), axis=0) > len(self)
        mostly[:1] = False  # writes before the first read are not part of the run
        return mostly

    def levels(self, quantile: float = 0.5) -> np.ndarray:
        """Compute the typical time of each position that at least half of the runs reach."""
        # Not `base`: the median of three reads is one of them, which would hide differences of positions.
        relative = self.time - self.time[:, :HEALTHY_READS].mean(axis=1)[:, None]
        many = np.count_nonzero(~np.isnan(relative), axis=0) >= 0.5 * len(self)
        width = int(np.argmin(np.append(many[HEALTHY_READS:], False))) + HEALTHY_READS
        return _quantile(relative[:, :width].T, quantile)

    def scatter(self) -> tuple[float, float]:
        """Estimate the random variation of successive reads, and of writes between."""
        steps: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for number in np.unique(self.run)[:MOST_KINDS]:
            group = self.some(self.run == number)
            typical = _median(group.writing[:, 1:].T)
            for found, levels in zip(steps, (group.levels()[1:], typical[~np.isnan(typical)]), strict=True):
                found.append(np.abs(np.diff(levels)))
        reads, writes = (np.concatenate([*found, np.empty(0)]) for found in steps)
        return _of_median(reads), _of_median(writes)

    def writing_rise(self) -> float | None:
        """Compute the rise of write times after the stride is recognised.

        None: not known.
        """
        if self.writing.shape[1] <= HEALTHY_READS + 1:
            return None
        # Writes before the read at a position; the write before the fourth read is not affected yet.
        before = _median(self.writing[:, 1 : HEALTHY_READS + 1])
        rise = _median(self.writing[:, HEALTHY_READS + 1 :]) - before
        return float(np.nanmedian(rise)) if not np.isnan(rise).all() else None


def judgeable(rows: np.ndarray) -> np.ndarray:
    """Select the rows of runs that are long enough and whose first read is known."""
    first = _begins(rows)
    whole = (rows["position"][first] == 1) & (rows["reads"][first] >= LEAST_READS)
    return rows[whole[np.cumsum(first) - 1]] if len(rows) else rows


def by_task(rank: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Compute the mean of the values of each task: shape (tasks,); NaN is left out."""
    known = ~np.isnan(values)
    _, where = np.unique(rank[known], return_inverse=True)
    where = where.reshape(-1)
    return np.bincount(where, values[known]) / np.maximum(np.bincount(where), 1)


def _begins(rows: np.ndarray) -> np.ndarray:
    """Compute whether each row is the first of its run: bool, shape (n,)."""
    new = np.ones(len(rows), bool)
    keys = ("rank", "layer", "file", "run")
    new[1:] = np.logical_or.reduce([rows[name][1:] != rows[name][:-1] for name in keys])
    return new


def _of_median(differences: np.ndarray) -> float:
    return float(_OF_MEDIAN * np.median(differences) / np.sqrt(2)) if len(differences) else 0.0


def _median(values: np.ndarray) -> np.ndarray:
    """Compute the median of each row without NaN; NaN for rows without values."""
    return _quantile(values, 0.5)


def _quantile(values: np.ndarray, quantile: float) -> np.ndarray:
    """Compute a quantile of each row without NaN; NaN for rows without values."""
    result = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    result[known] = np.nanquantile(values[known], quantile, axis=1)
    return result


FIRST_SLOW = (HEALTHY_READS + 1, HEALTHY_READS + 2)
"""Reads with which the slow ones may begin: as soon as the stride is recognised, or one later, if the
memory of the client is full only then."""

_HORIZON = 12


@dataclass(frozen=True)
class Verdict:
    """The result of the checks on strided runs with writes between their reads."""

    groups: tuple[int, ...]  # Indices of the runs on their file that are affected; empty: there is no finding
    checks: tuple[Check, ...]  # The checks
    numbers: dict[str, Any] = field(default_factory=dict)  # Numbers for the evidence

    @property
    def holds(self) -> bool:
        """Whether no check fails."""
        return bool(self.groups) and not any(check.holds is False for check in self.checks)


def verdict(mixed: StridedRuns, plain: StridedRuns) -> Verdict:
    """Check strided runs for a failing read-ahead.

    All runs with writes between their reads are checked together. If the checks fail, the first, second ...
    runs on their file are checked separately.
    """
    numbers = np.unique(mixed.run)
    if not len(numbers):
        return Verdict((), ())
    together = _judged(mixed, plain, numbers)
    if len(numbers) == 1 or len(numbers) > MOST_KINDS:
        return together
    if together.holds:
        seen = _that_see_it(mixed, numbers)
        some = mixed.some(np.isin(mixed.run, seen))
        return together if len(seen) == len(numbers) else _judged(some, plain, seen)
    alone = [_judged(mixed.some(mixed.run == number), plain, [number]) for number in numbers]
    found = [int(number) for number, one in zip(numbers, alone, strict=True) if one.holds]
    if not found:
        return together
    return _judged(mixed.some(np.isin(mixed.run, found)), plain, found)


def _that_see_it(mixed: StridedRuns, numbers: np.ndarray) -> np.ndarray:
    """Find the groups whose rise is at least half of the upper quartile of all rises."""
    rises = np.array([np.median(mixed.rise[mixed.run == number]) for number in numbers])
    affected: np.ndarray = numbers[rises >= MOST * np.quantile(rises, 0.75)]
    return affected


def _judged(mixed: StridedRuns, plain: StridedRuns, numbers: object) -> Verdict:
    groups = [mixed.some(mixed.run == number) for number in np.asarray(numbers)[:MOST_KINDS]]
    groups = [group for group in groups if len(group.levels()) > HEALTHY_READS + 1]
    if not groups:
        return Verdict((), ())
    levels = _mean([group.levels() for group in groups])
    before, after = levels[:HEALTHY_READS], levels[HEALTHY_READS:]
    ratio = float(np.median(after) - before.max())
    begin = _begin(levels, mixed.with_writes)
    if not begin.holds:
        upper = _begin(_mean([group.levels(NEARLY_ALL) for group in groups]), mixed.with_writes)
        begin = replace(upper, tasks="the slowest tenth of the tasks") if upper.holds else begin
    checks = [
        begin.check(),
        _worsens(after, mixed),
        _reads_without_writes(mixed, plain),
        _writes(mixed, ratio),
        _stands_out(mixed, plain, ratio),
    ]
    numbers_found = {
        "first_slow_read": begin.first,
        "slowdown": float(np.exp(np.median(after) - np.median(before))),
        "slowdown_by_position": [float(np.exp(level)) for level in levels - np.median(before)],
    }
    return Verdict(tuple(int(number) for number in np.asarray(numbers)), tuple(checks), numbers_found)


@dataclass(frozen=True)
class _Onset:
    """Whether reads become slow with a certain one: its time, that of later ones, and the range before."""

    first: int
    step: float
    ratio: float
    differ: float
    holds: bool
    tasks: str = ""

    def check(self) -> Check:
        """Return the check of the finding."""
        where = f"in {self.tasks}, " if self.tasks else ""
        sentence = (
            f"{where}from the {self.first}th read of a stride on, reads take "
            f"{number_text(np.exp(self.ratio))} times "
            f"as long as the slowest of the {self.first - 1} before (which differ by "
            f"{share_text(np.expm1(self.differ))}); "
            f"the {self.first}th itself takes {number_text(np.exp(self.step))} times as long"
        )
        return Check("begins-at-fourth", sentence, self.holds)


def _begin(levels: np.ndarray, with_writes: np.ndarray) -> _Onset:
    """Choose the first of the reads that may be the first slow one; the earliest if none is."""
    return max((_onset(levels, with_writes, first) for first in FIRST_SLOW), key=lambda each: each.holds)


def _onset(levels: np.ndarray, with_writes: np.ndarray, first: int) -> _Onset:
    """Judge whether a read is the first slow one.

    Reads may take longer after writes, whatever their position. The reads before it are therefore compared
    separately: those with writes before them, and the others.
    """
    before, after, with_writes = levels[: first - 1], levels[first - 1 :], with_writes[: first - 1]
    if not len(after):
        return _Onset(first, 0.0, 0.0, 0.0, False)
    step, ratio = float(after[0] - before.max()), float(np.median(after) - before.max())
    alike = [before[with_writes], before[~with_writes]]
    pressure = float(alike[0].mean() - alike[1].mean()) if all(map(len, alike)) else 0.0
    steps = max(float(np.diff(part).max(initial=0.0)) for part in alike)
    scatter = max(float(np.ptp(part)) for part in alike if len(part))
    is_step = step >= max(np.log(ALIKE), 2 * steps, 0.75 * pressure)
    steady = scatter <= MOST * ratio and pressure <= ratio
    holds = bool(is_step and steady and ratio >= np.log(LONGER))
    return _Onset(first, step, ratio, float(np.ptp(before)), holds)


def _worsens(after: np.ndarray, runs: StridedRuns) -> Check:
    near = after[:_HORIZON]
    rise = float(np.max(near) - near[0])
    pairs = np.sign(near[None, :] - near[:, None])[np.triu_indices(len(near), 1)]
    tau = float(pairs.mean())
    times = runs.time[:, HEALTHY_READS : HEALTHY_READS + len(near)]
    later = by_task(runs.rank, np.nanmean(times[:, 1:], axis=1) - times[:, 0])
    share = float(np.mean(later > 0)) if len(later) else 0.0
    holds = rise >= np.log(1 + A_TENTH) and tau > 0.2 and share > MOST
    sentence = (
        f"reads become slower from read to read, up to {number_text(np.exp(rise))} times the first slow one"
    )
    return Check("worsens", f"{sentence}, in {share_text(share)} of the tasks", bool(holds))


def _reads_without_writes(mixed: StridedRuns, plain: StridedRuns) -> Check:
    name = "only-with-writes-between"
    if not len(plain):
        sentence = "for comparison, the run has no strided reads without writes between them"
        return Check(name, sentence, None)
    here, there = float(np.nanmedian(mixed.rise)), float(np.nanmedian(plain.rise))
    holds = there <= MOST * here and here - there >= np.log(ALIKE)
    sentence = (
        f"reads with writes between them become {number_text(np.exp(here))} times as long, reads without "
        f"{number_text(np.exp(there))} times"
    )
    return Check(name, sentence, bool(holds))


def _writes(mixed: StridedRuns, ratio: float) -> Check:
    rise = mixed.writing_rise()
    if rise is None:
        return Check("not-the-writes", "there are too few writes between the reads to compare with", None)
    sentence = f"the writes between the reads become {number_text(np.exp(rise))} times as long"
    return Check("not-the-writes", sentence, bool(rise <= MOST * ratio))


def _stands_out(mixed: StridedRuns, plain: StridedRuns, ratio: float) -> Check:
    """Check the rise against disturbances of all tasks, as seen in other calls."""
    scatter = max(plain.scatter()[0] if len(plain) else 0.0, mixed.scatter()[1])
    sentence = (
        "the writes between the reads, and reads without writes between them, vary from one to the next by a "
        f"factor of {number_text(np.exp(scatter))} (standard deviation)"
    )
    return Check("stands-out", sentence, bool(ratio >= FAR * scatter))


def _mean(groups: list[np.ndarray]) -> np.ndarray:
    """Compute the mean of each position that at least half of the groups reach."""
    longest = max(map(len, groups))
    table = np.full((len(groups), longest), np.nan)
    for row, levels in enumerate(groups):
        table[row, : len(levels)] = levels
    many = np.count_nonzero(~np.isnan(table), axis=0) * 2 >= len(groups)
    mean: np.ndarray = np.nanmean(table[:, many], axis=0)
    return mean


def lost_ns(rows: np.ndarray, runs: StridedRuns) -> tuple[np.ndarray, np.ndarray]:
    """Bound by how much each slow read is longer than it would be without the fault: shape (n,) each.

    Without it, the slow reads would take the time per byte of the reads before them. These reads differ, as
    the first of them may come before the first write. The lower end compares with the slowest of their
    positions, the upper end with the fastest. Both ends include disturbances of all tasks (the scatter of
    these positions). While reads are slow, writes find an emptier cache; the lower end is reduced by their
    gain.
    """
    rate = float(np.nanmedian(runs.base))
    low, high = _levels_before(runs)
    return _lost_ns(rows, np.exp(rate + high)) - _won_by_writes_ns(rows, runs), _lost_ns(
        rows, np.exp(rate + low)
    )


def _levels_before(runs: StridedRuns) -> tuple[float, float]:
    """Bound the typical times (logarithms) of the positions before the stride is recognised."""
    levels = np.nanmedian(runs.time[:, :HEALTHY_READS] - np.nanmedian(runs.base), axis=0)
    scatter = float(np.nanstd(levels, ddof=1)) / np.sqrt(HEALTHY_READS)
    return float(np.nanmin(levels)) - scatter, float(np.nanmax(levels)) + scatter


def _lost_ns(rows: np.ndarray, ns_per_byte: float) -> np.ndarray:
    """Compute the excess time of each slow read; 0 for the reads before."""
    beyond = rows["duration_ns"] - rows["bytes"] * ns_per_byte
    return np.where(rows["position"] > HEALTHY_READS, beyond, 0.0)


def _won_by_writes_ns(rows: np.ndarray, runs: StridedRuns) -> np.ndarray:
    """Compute by how much writes became faster after the first slow read; 0 or more."""
    before = runs.writing[:, 1 : HEALTHY_READS + 1]
    if np.isnan(before).all():
        return np.zeros(len(rows))
    won = rows["written_bytes"] * np.exp(np.nanmedian(before)) - rows["writing_ns"]
    return np.where(rows["position"] > HEALTHY_READS + 1, np.maximum(won, 0.0), 0.0)


def _find(case: Case, reads: StridedReads) -> Remedy | None:
    if reads.reads and not reads.bytes_by_layer:
        raise NotApplicable(f"the file offset is known for none of the {reads.reads:,} reads of this run")
    rows = judgeable(reads.rows_nearest_to_disk)
    runs = StridedRuns.from_rows(rows[rows["interleaved"]])
    found = verdict(runs, StridedRuns.from_rows(rows[~rows["interleaved"]]))
    if not found.holds:
        return None
    rows = rows[rows["interleaved"] & np.isin(rows["run"], found.groups)]
    runs, is_slow = runs.some(np.isin(runs.run, found.groups)), rows["position"] > HEALTHY_READS
    low, high = lost_ns(rows, runs)
    low_s, high_s = (max(float(each.sum()), 0.0) * 1e-9 / reads.share for each in (low, high))
    bounds = [_of_rows(case, rows, each) for each in (low, (low + high) / 2, high)]
    slow = rows[is_slow]
    strides, counts = np.unique(rows["stride_bytes"], return_counts=True)
    stride, size = int(strides[np.argmax(counts)]), int(np.median(rows["bytes"][~is_slow]))
    evidence = {
        "stride_bytes": stride,
        "read_bytes": size,
        "gap_bytes": stride - size,
        "strides": len(strides),
        "positions": [HEALTHY_READS + 1, int(slow["reads"].max())],
        "slow_reads": int(slow["calls"].sum()),
        "tasks_share": reads.share,
        **found.numbers,
        **_medians(runs),
        "time_lost_s": [low_s, high_s],
        "time_lost_share_of_io": [lost_s / max(reads.io_time_ns * 1e-9, 1e-9) for lost_s in (low_s, high_s)],
    }
    return Remedy(
        _of_rows(case, slow, slow["duration_ns"]) > 0,
        bounds[1],
        f"reads of {bytes_text(size)} with holes of {bytes_text(stride - size)} between them, "
        f"interleaved with writes, are slow from the {found.numbers['first_slow_read']}th on: "
        f"{number_text(found.numbers['slowdown'])} times as long as the first {HEALTHY_READS}; "
        f"all tasks together lose {seconds_text(low_s)} to {seconds_text(high_s)}",
        (*found.checks, _all_seen(reads)),
        evidence,
        bounds[0],
        bounds[2],
        case.paths(np.bincount(slow["file"], slow["duration_ns"])),
        ordinals=find_spans(slow["ordinal"], MOST_SPANS),
    )


def _of_rows(case: Case, reads: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """Divide time of reads among the rows of the shared evidence; tasks that were not held lose alike."""
    columns = {"rank": reads["rank"], "start": reads["start_ns"], "thread": np.zeros(len(reads))}
    events = Events.partly(columns, case.run.calls, case.run.files)
    mine = {"phase": phases_of_calls(case.evidence.phases, events), "rank": reads["rank"]} | {
        "call": reads["call"]
    }
    theirs, of_rows, size = numbered_together(("phase", "rank", "call"), mine, case.rows)
    whole_ns = np.bincount(of_rows, case.rows["time_ns"], size)
    part = np.maximum(np.bincount(theirs, time_ns, size), 0.0) / np.maximum(whole_ns, 1.0)
    held = np.isin(case.rows["rank"], reads["rank"])
    _, kind = distinct_rows(case.rows["phase"], case.rows["call"])
    of_kind = [np.bincount(kind, held * case.rows["time_ns"] * each) for each in (part[of_rows], 1.0)]
    usual = (of_kind[0] / np.maximum(of_kind[1], 1.0))[kind]
    found: np.ndarray = case.rows["time_ns"] * np.minimum(np.where(held, part[of_rows], usual), 1.0)
    return found


def _all_seen(reads: StridedReads) -> Check:
    share = 1 - reads.reads_with_offset / max(reads.reads, 1)
    holds = None if share > A_TENTH else True
    return Check("places-known", f"the file offset is known for {share_text(1 - share)} of the reads", holds)


def _medians(runs: StridedRuns) -> dict[str, Any]:
    """Compute the median time at each position in seconds per MiB."""
    many = np.count_nonzero(~np.isnan(runs.time), axis=0) >= MOST * len(runs)
    width = int(np.argmin(np.append(many, False)))
    medians = np.nanmedian(runs.time[:, :width], axis=0)
    return {"median_s_per_mib_by_position": (np.exp(medians) * (1 << 20) * 1e-9).tolist()}


rule = EvidenceRule("strided-readahead", _find, {"strided-reads": SummaryRequest(StridedReads)})
