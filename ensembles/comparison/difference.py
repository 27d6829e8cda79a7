"""The difference of runs: by how much they are longer, and which entries of their time hold that.

An account divides the length of a run, as a task spends it on average: in calls of each kind, waiting for
other tasks, and outside of these calls. The differences of two accounts, entry by entry, add up to that of
the lengths.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ensembles.comparison.hypothesis_tests import FIRST_TESTED, RUN_TIMES
from ensembles.comparison.model import is_alike
from ensembles.comparison.times import (
    LEAST_CALLS,
    LEAST_OF_WHOLE,
    MARGIN,
    OF_IO,
    ComparedSums,
    TimeChange,
    kinds_to_test,
    time_changes,
)
from ensembles.comparison.units import WAITS_FOR_TASKS, ComparedCalls, Key
from ensembles.model.fields import plain
from ensembles.model.levels import LITTLE
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, count_text, number_text, ratio_text, seconds_text, share_text

WAITING, OUTSIDE = "waiting for other tasks", "outside of these calls"
"""Entries of an account besides those of kinds of calls."""

RUN_LABELS = {
    "io_time_s": "time in I/O",
    "critical_path_s": "I/O of critical path",
    "slowest_task_s": "I/O of slowest task",
    "wait_time_s": "waiting",
    "span_s": "span",
    "run_time_s": "run time",
}
OF_ALL_TASKS = ("io_time_s", "wait_time_s")
"""Of these times, those that are summed over tasks."""


@dataclass(frozen=True)
class ReadRun:
    """What a comparison reads of a run."""

    path: str
    calls: ComparedCalls  # The selected calls by layer and operation
    sums: ComparedSums  # Sums over the whole run
    notes: list[str]  # Caveats of the run, one sentence each
    # By layer and operation: how many of the calls only post a non-blocking request
    posts: dict[Key, int] = field(default_factory=dict)
    # Time in I/O of each phase; empty: unknown, or not needed
    steps_s: list[float] = field(default_factory=list)
    # By how much findings make the run longer, by their ids; empty: not diagnosed
    causes_s: dict[str, float] = field(default_factory=dict)
    recorder: str = ""  # What recorded it, without its version, and which layers; ``""``: not known
    layers: frozenset[str] = frozenset()  # Layers whose calls it holds, if the program makes any


@dataclass(frozen=True)
class Loss:
    """The difference of an entry of the accounts of runs.

    Attributes
    ----------
    id : str
        ``posix write``, `WAITING` or `OUTSIDE`; of causes the id of a finding.
    before_s, after_s : float
        Time a task in s, mean of the runs of the first group and of this one.
    calls, size_bytes : list of float
        Of a kind of calls: calls a run, and mean bytes of a read or write (0: none), alike.
    change : TimeChange or None
        Test of the time a run of a kind of calls.
    """

    id: str
    before_s: float
    after_s: float
    calls: list[float] = field(default_factory=list)
    size_bytes: list[float] = field(default_factory=list)
    change: TimeChange | None = None

    @property
    def loss_s(self) -> float:
        """By how much it is longer, s."""
        return self.after_s - self.before_s

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes, and ``loss_s``."""
        return {**plain(vars(self)), "loss_s": self.loss_s}

    @property
    def is_of_other_calls(self) -> bool:
        """Whether the calls have another number or size."""
        return len(self.calls) > 1 and (
            (_differ(self.calls) and abs(self.calls[1] - self.calls[0]) >= LEAST_CALLS)
            or (all(self.size_bytes) and _differ(self.size_bytes))
        )

    @property
    def text(self) -> str:
        """By how much it is longer, in which calls: ``posix sync +1.2 s (× 2, 32 calls instead of 16)``."""
        told = [ratio_text(self.after_s / self.before_s)] if min(self.before_s, self.after_s) > 0 else []
        if self.is_of_other_calls:
            of = [f" of {bytes_text(size)}" if _differ(self.size_bytes) else "" for size in self.size_bytes]
            before, after = (f"{number_text(each, 6)}" for each in self.calls)
            told.append(f"{after} calls{of[1]} instead of {before}{of[0]}")
        sign = "-" if self.loss_s < 0 else "+"
        how = ", ".join(told) or ("new" if self.after_s else "gone")
        return f"{self.id} {sign}{seconds_text(abs(self.loss_s))} ({how})"


@dataclass(frozen=True)
class Difference:
    """By how much the runs of a group are longer than those of the first, and where.

    Attributes
    ----------
    group : str
    tasks : float
        Most tasks of a run.
    times : list of TimeChange
        Of whole runs, that which is tested first before the others.
    losses : list of Loss
        Most time first, in the direction in which the runs differ. They add up to the difference of the
        runs.
    causes : list of Loss
        Findings of ``ensio diagnose`` whose part of the run differs, alike.
    bytes_ratio : float or None
        Bytes that the runs move, over those of the first group; None: some move none.
    level, margin : float
        As for `ensembles.compare`.
    did_less : list of str
        What some run of the group did less of than all of the first, if that is everything it counts: it may
        have ended before its work was done. Else empty.
    at_once : float
        Most tasks of a run that live at one time.
    """

    group: str
    tasks: float
    times: list[TimeChange]
    losses: list[Loss]
    causes: list[Loss]
    bytes_ratio: float | None
    level: float
    margin: float
    did_less: list[str]
    at_once: float = 1.0

    @property
    def whole(self) -> TimeChange | None:
        """The time of whole runs that is tested first; None: none is known of all runs."""
        return self.times[0] if self.times else None

    @property
    def is_longer(self) -> bool:
        """Whether the runs take more time: on the critical path, else in their accounts."""
        if self.whole is not None:
            return self.whole.after_s >= self.whole.before_s
        return sum(each.loss_s for each in self.losses) >= 0

    @property
    def is_certain(self) -> bool:
        """Whether whole runs certainly take another time in I/O."""
        return self.whole is not None and self.whole.is_certain(self.level)

    def longer_runs(self, factor: float = 1.0) -> list[TimeChange]:
        """Return the times of whole runs in I/O that are certainly longer by this factor.

        Summed over tasks, more counts only where the critical path is not certainly shorter.
        """
        is_shorter = self.whole is not None and self.whole.is_shorter(self.level)
        return [
            each
            for each in self.times
            if each.what in OF_IO and not is_shorter and each.is_longer(self.level, factor)
        ]

    def added(self, of_whole_runs: bool = True) -> list[Loss]:
        """Return the kinds of calls that add enough to the time in I/O, and by which the runs are longer."""
        io = next((each for each in self.times if each.what == "io_time_s"), None)
        kinds = [each for each in self.losses if each.change is not None]
        io_s = sum(each.change.before_s for each in kinds if each.change is not None)
        if of_whole_runs and self.whole is not None and (self.whole.ratio or 0.0) <= 1:
            return []
        found = []
        for each in kinds:
            assert each.change is not None
            more_s = each.change.after_s - each.change.before_s
            of_all_s = io.after_s - io.before_s if io is not None and of_whole_runs else np.inf
            if more_s >= LITTLE * io_s and of_all_s >= LEAST_OF_WHOLE * more_s and more_s > 0:
                found.append(each)
        return found

    def fails(self) -> bool:
        """Whether times alone, without durations, fail the gate of ``ensio compare``."""
        return bool(
            self.did_less
            or self.longer_runs()
            or any(each.change is not None and each.change.is_longer(self.level) for each in self.added())
        )

    def shown(self, also: Sequence[str] = ()) -> list[Loss]:
        """Return the entries that hold the difference.

        Of runs that neither certainly differ nor by more than the margin, in I/O or in length, they are those
        that do: by their test, the number of their calls, or because `also` names them.
        """
        lengths_s = [sum(getattr(each, end) for each in self.losses) for end in ("before_s", "after_s")]
        ratio = None if self.whole is None else self.whole.ratio
        is_apart = self.is_certain or _differ(lengths_s) or (ratio is not None and _differ([1.0, ratio]))
        sign = 1.0 if self.is_longer else -1.0
        most_s = sum(max(sign * each.loss_s, 0.0) for each in self.losses)
        return [
            each
            for each in self.losses
            if (is_apart and abs(each.loss_s) > LITTLE * most_s)
            or each.id in also
            or (
                not is_apart
                and each.change is not None
                and (each.change.is_certain(self.level) or each.is_of_other_calls)
            )
        ]

    @property
    def verdict(self) -> str:
        """Whether whole runs take longer in I/O: ``are slower``, ``are not certainly faster``."""
        if self.whole is None:
            return "have no common time"
        if self.is_certain:
            return "are slower" if self.is_longer else "are faster"
        ends = self.whole.low, self.whole.high
        if all(end is not None and is_alike(end, self.margin) for end in ends):
            return f"are as fast, within {share_text(self.margin)}"
        if self.whole.ratio is None or is_alike(self.whole.ratio, self.margin):
            return "do not certainly differ"
        return f"are not certainly {'slower' if self.whole.ratio > 1 else 'faster'}"

    def label(self, what: str) -> str:
        """Name a time of whole runs; sums over tasks are called so where there are several."""
        return RUN_LABELS[what] + " of all tasks" * (self.tasks > 1 and what in OF_ALL_TASKS)

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes, and ``sentence``."""
        return {**plain(vars(self)), "sentence": self.sentence()}

    def sentence(self, also: Sequence[str] = ()) -> str:
        """Say by how much whole runs are longer in I/O, with the evidence, then span and entries."""
        told = []
        if self.whole is not None:
            doubt = "" if self.is_certain else ": not certain"
            evidence = f"{doubt} ({self.whole.evidence})" if self.whole.p is not None else ""
            told.append(f"{self.label(self.whole.what)} {self.whole.text}{evidence}")
        if self.is_longer and self.bytes_ratio is not None and self.bytes_ratio > 1 / (1 - self.margin):
            told.append(f"they move {ratio_text(self.bytes_ratio)} the bytes")
        if shown := self.shown(also):
            told += [f"{self.label(each.what)} {each.text}" for each in self.times if each.what == "span_s"]
            told.append("each task: " * (round(self.at_once) > 1) + ", ".join(one.text for one in shown))
        if self.is_certain and (causes := [one for one in self.causes if (one.loss_s > 0) == self.is_longer]):
            told.append(f"diagnosis: {', '.join(one.text for one in causes)}")
        if self.did_less:
            told.append(f"incomplete: {', '.join(self.did_less)}")
        return sanitize_text("; ".join(told))


def make_differences(
    groups: Sequence[Sequence[ReadRun]],
    names: Sequence[str],
    level: float,
    margin: float = MARGIN,
    unsteady: Collection[str] = (),
) -> list[Difference]:
    """Subtract the accounts of the runs of the first group from those of each other group.

    `unsteady`: kinds of calls that show neither by durations nor by number or sizes that single runs differ.
    """
    of_runs = (key for group in groups for run in group for key in run.calls.time_s)
    keys = [key for key in dict.fromkeys(of_runs) if key not in WAITS_FOR_TASKS]
    of_kinds = times_of_kinds([[run.calls for run in group] for group in groups], keys, names, unsteady)
    at_once = [[_alive(run, groups) for run in group] for group in groups]
    accounts = [
        _mean([account_of(*each, keys) for each in zip(group, alive, strict=True)])
        for group, alive in zip(groups, at_once, strict=True)
    ]
    changed_s = {
        " ".join(key): max(abs(each[" ".join(key)] - accounts[0][" ".join(key)]) for each in accounts)
        for key in keys
    }
    open_s = sum(time_s for what, time_s in changed_s.items() if what in unsteady)
    of_runs_s = times_of_runs(groups, names, open_s / max(sum(changed_s.values()), 1e-12))
    causes = [_mean([run.causes_s for run in group]) for group in groups]
    calls = [
        _mean([{" ".join(key): run.calls.number(key) for key in keys} for run in group]) for group in groups
    ]
    sizes = [_mean([_sizes(run) for run in group]) for group in groups]
    moved = [float(np.mean([_bytes(run.sums) or 0.0 for run in group])) for group in groups]
    tasks = max(run.sums.totals.get("tasks", 1.0) for group in groups for run in group)
    found = []
    for at in range(1, len(groups)):
        losses = [
            Loss(
                what,
                accounts[0].get(what, 0.0),
                accounts[at].get(what, 0.0),
                [each.get(what, 0.0) for each in (calls[0], calls[at])] if what in of_kinds else [],
                [each.get(what, 0.0) for each in (sizes[0], sizes[at])] if what in of_kinds else [],
                of_kinds[what][at - 1] if what in of_kinds else None,
            )
            for what in dict.fromkeys([*accounts[0], *accounts[at]])
        ]
        ids = dict.fromkeys([*causes[0], *causes[at]])
        new = [Loss(one, causes[0].get(one, 0.0), causes[at].get(one, 0.0)) for one in ids]
        less = (did_less(run.sums, [one.sums for one in groups[0]], margin) for run in groups[at])
        made = Difference(
            names[at],
            tasks,
            [each for each in of_runs_s if each.group == names[at]],
            losses,
            new,
            moved[at] / moved[0] if moved[0] and moved[at] else None,
            level,
            margin,
            next(filter(None, less), []),
            max(map(max, at_once)),
        )
        sign = -1.0 if made.is_longer else 1.0
        made.losses.sort(key=lambda each: sign * each.loss_s)
        made.causes.sort(key=lambda each: sign * each.loss_s)
        found.append(made)
    return found


def _alive(run: ReadRun, groups: Sequence[Sequence[ReadRun]]) -> float:
    """Return how many tasks of a run live at one time; all of them, unless it is known of each run."""
    names = ("tasks_at_once", "tasks")
    what = next((x for x in names if all(x in one.sums.totals for group in groups for one in group)), "")
    return max(run.sums.totals.get(what, 1.0), 1.0)


def account_of(run: ReadRun, tasks: float, keys: Sequence[Key]) -> dict[str, float]:
    """Divide the length of a run: time a living task in the calls of each kind, waiting and outside, in s.

    Calls of libraries contain those of storage. What storage leaves of the time in I/O is theirs.
    """
    totals = run.sums.totals
    times_s = {key: run.calls.time_s.get(key, 0.0) for key in keys}
    below_s = sum(time_s for (layer, _), time_s in times_s.items() if layer == "posix")
    above_s = sum(times_s.values()) - below_s
    own_s = max(totals.get("io_time_s", above_s + below_s) - below_s, 0.0)
    share = min(own_s / above_s, 1.0) if above_s else 1.0
    found = {
        " ".join(key): time_s * (1.0 if key[0] == "posix" else share) / tasks
        for key, time_s in times_s.items()
    }
    found[WAITING] = totals.get("wait_time_s", 0.0) / tasks
    length_s = totals.get("run_time_s", totals.get("span_s"))
    if length_s is not None:
        # Calls of threads overlap: together they take the run at most.
        part = min(length_s / max(sum(found.values()), 1e-12), 1.0)
        found = {what: part * time_s for what, time_s in found.items()}
        found[OUTSIDE] = max(length_s - sum(found.values()), 0.0)
    return found


def did_less(run: ComparedSums, others: Sequence[ComparedSums], margin: float = MARGIN) -> list[str]:
    """Return what a run did less of than all others, if its work may not have been done; else empty.

    It made fewer calls, and moved fewer bytes in fewer phases, or more of its processes did not end in order.
    """
    found, unended = [], run.totals.get("unended", 0.0)
    cut_off = unended > max((each.totals.get("unended", 0.0) for each in others), default=0.0)
    for what in ("calls",) if cut_off else ("calls", "bytes", "phases"):
        mine, *theirs = (
            _bytes(each) if what == "bytes" else each.totals.get(what) for each in (run, *others)
        )
        least = min((each for each in theirs if each is not None), default=0.0)
        if mine is None or None in theirs or not least or mine >= (1 - margin) * least:
            return []
        text = bytes_text if what == "bytes" else number_text
        found.append(f"{text(mine)}{' ' + what if what != 'bytes' else ''} instead of {text(least)}")
    return found + [f"{count_text(round(unended), 'process')} did not end"] * cut_off


def _bytes(sums: ComparedSums) -> float | None:
    moved = [sums.totals[what] for what in ("bytes_read", "bytes_written") if what in sums.totals]
    return sum(moved) if moved else None


def _differ(values: Sequence[float]) -> bool:
    """Whether two values are apart by more than the margin within which calls are alike."""
    return len(values) > 1 and min(values) < (1 - MARGIN) * max(values)


def _mean(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Compute the means by name; what a run lacks is 0."""
    names = dict.fromkeys(name for each in values for name in each)
    return {name: float(np.mean([each.get(name, 0.0) for each in values])) for name in names}


def _sizes(run: ReadRun) -> dict[str, float]:
    return {" ".join(key): moved / calls for key, (calls, moved) in run.sums.moved.items() if calls}


def times_of_runs(
    groups: Sequence[Sequence[ReadRun]], names: Sequence[str], unsteady: float
) -> list[TimeChange]:
    """Test the times of whole runs that are known of every run, I/O of the critical path first.

    `unsteady`: part of the difference in kinds of calls that do not show that runs differ.
    """
    order = sorted(RUN_TIMES, key=lambda what: what not in FIRST_TESTED)
    times_s = {
        what: [[run.sums.totals[what] for run in group] for group in groups]
        for what in order
        if all(what in run.sums.totals for group in groups for run in group)
    }
    times_s = {what: values for what, values in times_s.items() if any(map(any, values))}
    found = time_changes(times_s, names, list(times_s), True, dict.fromkeys(times_s, unsteady))
    return [each for changes in found.values() for each in changes]


def times_of_kinds(
    read: Sequence[Sequence[ComparedCalls]],
    keys: Sequence[Key],
    names: Sequence[str],
    unsteady: Collection[str],
) -> dict[str, list[TimeChange]]:
    """Test the times a run of kinds of calls; of single runs also without the slowest call of each.

    One call of a single run shows nothing: what is certain only with it is not.
    """
    times_s, calls = times_and_calls(read, keys)
    tested = kinds_to_test(times_s, calls)
    parts = dict.fromkeys(unsteady, 1.0)
    found = time_changes(times_s, names, tested, unsteady=parts)
    if min(map(len, read)) > 1:
        return found
    several = [
        key for key in keys if min((n for group in calls[" ".join(key)] for n in group), default=0) > 1
    ]
    rest_s = {
        " ".join(key): [[run.time_s[key] - _slowest_s(run, key) for run in group] for group in read]
        for key in several
    }
    rest = time_changes(rest_s, names, [what for what in tested if what in rest_s], unsteady=parts)
    for what, changes in rest.items():
        for at, one in enumerate(changes):
            whole = found[what][at]
            if whole.adjusted_p is not None and one.adjusted_p is not None:
                is_alike = (one.ratio or 1.0) > 1 if (whole.ratio or 1.0) > 1 else (one.ratio or 1.0) < 1
                p = max(whole.adjusted_p, one.adjusted_p) if is_alike else 1.0
                found[what][at] = replace(whole, adjusted_p=p)
    return found


def _slowest_s(run: ComparedCalls, key: Key) -> float:
    return 0.0 if key in run.counts else float(run.sample(key).max_s.max())


def times_and_calls(
    read: Sequence[Sequence[ComparedCalls]], keys: Sequence[Key]
) -> tuple[dict[str, list[list[float]]], dict[str, list[list[float]]]]:
    """Return time and number of the calls of kinds in each run of each group, by ``layer op``."""
    times_s, calls = {}, {}
    for key in keys:
        times_s[" ".join(key)] = [[run.time_s.get(key, 0.0) for run in group] for group in read]
        calls[" ".join(key)] = [[float(run.number(key)) for run in group] for group in read]
    return times_s, calls
