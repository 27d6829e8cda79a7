"""Whether the latest runs of an experiment differ from those before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ensembles.comparison.compare import compare_read_runs
from ensembles.comparison.components import PLACE, TAIL, WEIGHT
from ensembles.comparison.hypothesis_tests import LEVEL as COMPARED_LEVEL
from ensembles.comparison.report import Comparison
from ensembles.comparison.verdict import MARGIN
from ensembles.history.change_text import common_text, listed, ratio_sentence, time_text
from ensembles.history.longer_runs import (
    change_of_runs,
    longer_times,
    sentence_of_runs,
    what_takes_longer,
)
from ensembles.history.record import RunRecord
from ensembles.history.series import (
    CALLS,
    COMMON,
    SLOW,
    TIME,
    Part,
    Series,
    kinds_of_other_sizes,
    make_series,
)
from ensembles.history.store import Acknowledgement, History, StoredRun
from ensembles.history.windows import WINDOWS, Tested, first_changed, judge_windows
from ensembles.model.errors import EnsioError
from ensembles.model.units import number_text, ratio_text, share_text

LEAST_RUNS = 3
"""Baseline runs from which a verdict is given: two show the variation from run to run by one difference."""

BASELINE = 20
"""Runs before the latest that are its baseline unless others are named."""

LEVEL = 0.02
"""Level of all tests of an experiment together. Windows overlap, so that Holm's correction is too strict:
less than 1 % of the nights of an unchanged experiment give an alarm (docs/reference/calibration/history.md).
"""

FALSE_SHARE = 0.05
"""Greatest expected share of false alarms among the experiments that one check reports."""

_SEVERE = ("warning", "critical")


@dataclass(frozen=True)
class Change:
    """What is another one in the latest runs.

    Attributes
    ----------
    op, layer : str or None
        The calls that it concerns; None: it concerns the whole run.
    what : str
        ``calls``, ``durations``, ``time`` (a run, of whole runs or of these calls) or ``finding``.
    direction : str
        ``slower`` or ``faster``.
    sentence : str
        What changed, with numbers.
    part : str
        Which part: ``mode 2 place``, ``all durations``, ``calls``; of a finding its id.
    runs : int
        Latest runs that were judged together when it was found.
    p : float
        p-value, adjusted for everything that was tested in the experiment.
    since_run : int or None
        Number of the run with which the change begins.
    since : str or None
        Start of that run, UTC.
    """

    op: str | None
    layer: str | None
    what: str
    direction: str
    sentence: str
    part: str = ""
    runs: int = 1
    p: float = 0.0
    since_run: int | None = None
    since: str | None = None


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes
    ----------
    experiment : str
    verdict : str
        ``regression``: something certainly takes longer, or a finding is new; ``improvement``: what changed
        became faster; ``ok``: no change is certain; ``too-few-runs``: the baseline is too short to tell, or
        the latest run is `unread`.
    reason : str
        One sentence.
    run : StoredRun
        The latest run whose record can be read.
    baseline : list of StoredRun
        Runs before the shortest window.
    changes : list of Change
        The most certain first.
    comparisons : list of Comparison
        Of the baseline with the runs since the change, by kind of calls, if there is one.
    acknowledged : Acknowledgement or None
        Known change with which the baseline begins.
    unread : list of StoredRun
        Runs whose records cannot be read. They are left out.
    """

    experiment: str
    verdict: str
    reason: str
    run: StoredRun
    baseline: list[StoredRun]
    changes: list[Change] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    acknowledged: Acknowledgement | None = None
    unread: list[StoredRun] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio history check --json`` prints."""
        known = self.acknowledged
        return {
            "experiment": self.experiment,
            "verdict": self.verdict,
            "reason": self.reason,
            "run": stored_json(self.run),
            "baseline": [stored_json(run) for run in self.baseline],
            "unread": [stored_json(run) for run in self.unread],
            "changes": [asdict(change) for change in self.changes],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "acknowledged": None if known is None else asdict(known) | {"since": known.since.isoformat()},
        }


def stored_json(run: StoredRun) -> dict[str, Any]:
    """Return the attributes of a run as JSON has them."""
    return asdict(run) | {"start": run.start.isoformat()}


def check(
    history: History,
    experiment: str,
    against: Sequence[StoredRun] | int | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
    last: int | None = None,
    compared: bool = True,
) -> Check:
    """Judge the latest runs of an experiment by the runs before them.

    Parameters
    ----------
    history : History
    experiment : str
    against : sequence of StoredRun or int, optional
        The baseline, or how many runs before the judged ones are. Default: `BASELINE`.
    margin, level : float
        Largest change of numbers of calls that does not count, and the level of all tests of the experiment
        together.
    last : int, optional
        Judge so many runs together, and also a single one in which everything takes longer. Default: the
        latest run, and the latest of `WINDOWS`.
    compared : bool
        Whether the comparisons of what changed are made.

    Raises
    ------
    EnsioError
        There is no such experiment.

    Notes
    -----
    The run is the sampling unit. See `ensembles.history.windows` for the tests.

    Examples
    --------
    >>> from ensembles.history.check import check
    >>> from ensembles.history.record import KindRecord, RunRecord
    >>> from ensembles.history.store import History
    >>> history = History("checked.db", make=True)
    >>> _ = history.add(RunRecord.of_run(en.open("ensio-ior")), "ior")
    >>> check(history, "ior").verdict
    'too-few-runs'
    """
    most = against if isinstance(against, int) else BASELINE
    windows: tuple[int, ...] = WINDOWS if last is None else (last,)
    runs = stored = history.runs(experiment, last=most + max(windows))
    if not runs:
        known = listed([one.name for one in history.experiments()])
        has = f"its experiments are {known}" if known else "it holds no run"
        raise EnsioError(f"there is no experiment {experiment} in {history.name}: {has}")
    named = [] if against is None or isinstance(against, int) else list(against)
    read = history.readable([*named, *stored])
    unread = [run for run in {run.id: run for run in [*named, *stored]}.values() if run.id not in read]
    runs = [run for run in stored if run.id in read]
    latest, acknowledged = (runs or stored)[-1], history.acknowledged(experiment)
    if isinstance(against, Sequence):
        against = [run for run in against if run.id in read and runs]
        judged = runs[-max(windows) :]
        chosen = {run.id for run in against}
        # Named runs are the baseline; a window may not contain one of them.
        windows = tuple(n for n in windows if not chosen & {run.id for run in judged[-n:]}) or (1,)
        judged = judged[-max(windows) :]
        baseline = [run for run in against if run.id not in {one.id for one in judged}]
        runs = [*baseline, *judged]
    else:
        if acknowledged is not None:
            runs = [run for run in runs if run.start >= acknowledged.since] or [latest]
        baseline = runs[: -min(windows)][-most:]
    if len(baseline) < LEAST_RUNS:
        missing = LEAST_RUNS - len(baseline)
        since = "" if acknowledged is None else f" since the known change ({acknowledged.reason})"
        reason = f"{len(baseline)} earlier runs{since} do not show how much runs vary: add {missing} or more"
        few = Check(experiment, "too-few-runs", reason, latest, baseline, acknowledged=acknowledged)
        return _without(unread, few)
    records = [read[run.id] for run in runs]
    rows = list(range(len(baseline))) if isinstance(against, Sequence) else None
    judgement = judge(records, margin, level, windows, rows, most, confirm=last is None)
    changes = [
        change
        if change.since_run is None
        else replace(
            change, since_run=runs[change.since_run].id, since=runs[change.since_run].start.isoformat()
        )
        for change in judgement.changes
    ]
    found = _comparisons(records, judgement, margin, level) if compared and changes else []
    done = Check(
        experiment, judgement.verdict, judgement.reason, latest, baseline, changes, found, acknowledged
    )
    return _without(unread, done)


def _without(unread: list[StoredRun], found: Check) -> Check:
    """Name the runs that were left out; nothing is ``ok`` if the latest run is one of them."""
    if not unread:
        return found
    latest = max([*unread, found.run], key=lambda run: (run.start, run.id))
    verdict = "too-few-runs" if found.verdict == "ok" and latest in unread else found.verdict
    numbers = listed([f"run {run.id} (the latest)" if run is latest else f"run {run.id}" for run in unread])
    reason = f"{found.reason}; left out, because the record cannot be read: {numbers}"
    return replace(found, verdict=verdict, reason=reason, unread=unread)


@dataclass(frozen=True)
class Judgement:
    """Verdict, reason, changes (`since_run` counts from 0), first changed run and the tests, of records."""

    verdict: str
    reason: str
    changes: list[Change]
    first: int
    tested: list[Tested]
    series: Series


def judge(
    records: Sequence[RunRecord],
    margin: float = MARGIN,
    level: float = LEVEL,
    windows: Sequence[int] = WINDOWS,
    baseline: Sequence[int] | None = None,
    most: int = BASELINE,
    confirm: bool = True,
) -> Judgement:
    """Judge the latest of the records by those before.

    Parameters
    ----------
    records : sequence of RunRecord
        In the order of time.
    margin, level : float
        As for `check`.
    windows : sequence of int
        Numbers of latest records that are judged together.
    baseline : sequence of int, optional
        Records of the baseline. Default: the `most` records before a window.
    most : int
    confirm : bool
        Whether a single run in which everything takes longer does not count.
    """
    before = range(max(0, len(records) - min(windows))) if baseline is None else baseline
    baselines = [records[at] for at in before]
    series = make_series(records, before)
    tested = judge_windows(series, windows, most, LEAST_RUNS, margin, level, baseline, confirm)
    certain = [one for one in tested if one.p <= level]
    first, changes = len(records) - 1, []
    if certain:
        widest = max(one.runs for one in certain)
        begin = max(0, len(records) - most - widest) if baseline is None else 0
        moved = [one.part for one in certain]
        first = first_changed(series, sorted(set(moved)), begin, lasts=certain[0].runs > 2)
        changes = _changes(series, certain, first, records)
        if any(change.what != "time" for change in changes):
            changes = [change for change in changes if change.what != "time"]  # the others say why
    if not confirm and len(before) >= LEAST_RUNS:
        changes = _with_times(changes, baselines, records[-max(windows) :], margin, first)
    changes += _new_findings(baselines, records[-1], len(records) - 1)
    verdict, reason = _verdict(
        changes,
        series,
        before,
        records,
        lambda: _alone_in_time(records, windows, most) if confirm and baseline is None else "",
    )
    reason += _other_sizes(records, before)
    return Judgement(verdict, reason, changes, first, tested, series)


def _with_times(
    changes: Sequence[Change],
    before: Sequence[RunRecord],
    latest: Sequence[RunRecord],
    margin: float,
    first: int,
) -> list[Change]:
    """Add for what the gate of ``ensio compare`` fails, unless another change says it already."""
    slower = [change for change in changes if change.direction == "slower"]
    if any(change.part == "all durations" for change in slower):
        return list(changes)
    named = {(change.layer, change.op) for change in slower}
    added = []
    for reason in what_takes_longer(before, latest, margin):
        if reason.kind in named or (not reason.kind and named):
            continue
        layer, op = reason.kind or (None, None)
        part = f"{layer} {op} time" if reason.kind else "time"
        added.append(Change(op, layer, "time", "slower", reason.sentence, part, len(latest), reason.p, first))
    return [*changes, *added]


def _other_sizes(records: Sequence[RunRecord], before: Sequence[int]) -> str:
    """Say of which kinds of calls the durations are not compared, because the calls have other sizes."""
    from ensembles.model.units import bytes_text

    told = [
        f"{layer} {op} ({bytes_text(new)} a call instead of {bytes_text(old)})"
        for (layer, op), (old, new) in kinds_of_other_sizes(records, before).items()
    ]
    return f"; durations of other sizes are not compared: {listed(told)}" if told else ""


def _changes(
    series: Series, certain: Sequence[Tested], first: int, records: Sequence[RunRecord]
) -> list[Change]:
    """Describe each part once, by its most certain window."""
    found: dict[int, Tested] = {}
    for one in certain:
        found.setdefault(one.part, one)
    moved = list(found.values())
    # A location that stays while the mode with most calls moves has not changed.
    still = [one for one in moved if abs(one.absolute) < abs(one.change) / 2]
    kept = [one for one in moved if one not in still]
    places = [one for one in still if series.parts[one.part].what == PLACE]
    if places and series.reference is not None:
        kept.insert(0, _of_reference(series, places[0]))
    kept = kept or moved
    return [_change(series.parts[one.part], one, series, first, records) for one in kept]


def _of_reference(series: Series, seen: Tested) -> Tested:
    """Return the change of the mode with most calls, which is seen as that of another relative to it."""
    sign = series.parts[seen.part].slower
    change = sign * (seen.absolute - seen.change)
    assert series.reference is not None
    return replace(seen, part=series.reference, change=change, absolute=change)


def _change(part: Part, one: Tested, series: Series, first: int, records: Sequence[RunRecord]) -> Change:
    size = one.absolute if part.what not in (COMMON, WEIGHT, TAIL, SLOW) else one.change
    direction = "slower" if size * part.slower > 0 else "faster"
    before = float(np.nanmean(series.absolute[:first, one.part])) if first else float("nan")
    after = float(np.nanmean(series.absolute[first:, one.part]))
    runs = "" if one.runs == 1 else f" over the latest {one.runs} runs"
    if part.what == CALLS:
        text = f"{number_text(after, 6)} calls a run instead of {number_text(before, 6)}{runs}"
        return Change(part.op, part.layer, "calls", direction, text, part.name, one.runs, one.p, first)
    if part.what == TIME:
        ratio = ratio_text(2.0 ** (after - before))
        text = (
            f"{part.name} {time_text(2.0**before)} → {time_text(2.0**after)}, {ratio} (p = {one.p:.2g}{runs})"
        )
        return Change(None, None, "time", direction, text, part.name, one.runs, one.p, first)
    if part.what == SLOW:
        # The limit moves with the slowest mode of each run.
        limit = (
            "are slow"
            if part.beyond is None
            else f"take more than {number_text(part.beyond)} times as long as"
        )
        mode = "" if part.beyond is None else " the slowest mode of their run"
        text = f"{share_text(after**2, 2)} of the calls {limit}{mode} instead of {share_text(before**2, 2)}"
    elif part.what == WEIGHT:
        text = (
            f"{part.name}, at {time_text(part.t_s)}: {share_text(after, 1)} of the calls instead of "
            f"{share_text(before, 1)}"
        )
    elif part.what == TAIL:
        text = (
            f"tail beyond {time_text(part.t_s)}: {number_text(2.0**one.change)} times as far above the body"
        )
    elif part.what == COMMON and np.isfinite([before, after]).all():
        text = common_text(after - before, records[:first], records[first:])
    else:
        text = ratio_sentence(part, before, after, size)
    text += f" (p = {one.p:.2g}{runs})"
    return Change(part.op, part.layer, "durations", direction, text, part.name, one.runs, one.p, first)


def _new_findings(baseline: Sequence[RunRecord], latest: RunRecord, number: int) -> list[Change]:
    """Findings of the latest run that no run of the baseline has."""
    known = {one.id for record in baseline for one in record.findings}
    return [
        Change(
            None, None, "finding", "slower", f"new finding {one.id}: {one.title}", one.id, since_run=number
        )
        for one in latest.findings
        if one.id not in known and one.severity in _SEVERE
    ]


def _verdict(
    changes: Sequence[Change],
    series: Series,
    before: Sequence[int],
    records: Sequence[RunRecord],
    in_time: Callable[[], str],
) -> tuple[str, str]:
    worse = [change for change in changes if change.direction != "faster"]
    if worse and all(change.what == "durations" for change in worse):
        # What a run loses decides: calls that take longer make no regression of shorter runs.
        latest = records[-max(change.runs for change in worse) :]
        runs = change_of_runs([records[at] for at in before], latest)
        if runs is not None and runs.is_shorter(COMPARED_LEVEL):
            said = sentence_of_runs(runs, records)
            return "improvement", f"{said}, although {_of_its_kind(worse[0])}"
    if worse:
        return "regression", _of_its_kind(worse[0])
    if changes:
        return "improvement", _of_its_kind(changes[0])
    alone = _alone(series, before, records) or in_time()
    return "ok", f"no change is certain{alone}"


def _of_its_kind(change: Change) -> str:
    kind = " ".join(word for word in (change.layer, change.op) if word)
    return f"{kind}: {change.sentence}" if kind else change.sentence


def _alone(series: Series, before: Sequence[int], records: Sequence[RunRecord]) -> str:
    """Say that calls take longer in the latest run only, or in the one before it too."""
    if not series.parts or series.parts[0].what != COMMON or len(before) < LEAST_RUNS:
        return ""
    common, last = series.value[:, 0], len(records) - 1
    rest = [run for run in before if run != last - 1]
    others = [records[run] for run in rest]
    if last - 1 in before and len(rest) >= LEAST_RUNS:
        pair = common[last - 1 :] - common[rest].mean()
        if pair.min() > _least_outlier(common[rest]):
            text = common_text(float(pair.min()), others, records[last - 1 :])
            return (
                f"; the run before was like this one: {text} in both, so judge them together, with --last 2"
            )
    if common[-1] <= _least_outlier(common[np.asarray(before)]):
        return ""
    text = common_text(float(common[-1]), [records[run] for run in before], records[last:])
    return f"; {text} in the latest run, which is a regression if the next run shows it too, or with --last 1"


def _alone_in_time(records: Sequence[RunRecord], windows: Sequence[int], most: int) -> str:
    """Say for which latest runs the gate of ``ensio compare`` fails by their times."""
    for runs in windows:
        before = records[:-runs][-most:]
        if len(before) < LEAST_RUNS or not (told := longer_times(before, records[-runs:])):
            continue
        if runs == 1:
            return (
                f"; {told} in the latest run, which is a regression if the next run shows it too, or with "
                "--last 1"
            )
        return f"; {told} in the latest {runs} runs, which is a regression with --last {runs}"
    return ""


def _least_outlier(common: np.ndarray) -> float:
    return max(4 * float(common.std(ddof=1)), float(np.log2(1 + MARGIN)))


def _comparisons(
    records: Sequence[RunRecord], judgement: Judgement, margin: float, level: float
) -> list[Comparison]:
    if any(kind.calls and not kind.counts for record in records for kind in record.kinds):
        return []  # only sums are known
    reads = [record.as_read() for record in records]
    groups = [reads[: judgement.first], reads[judgement.first :]]
    if not all(groups):
        return []
    return compare_read_runs(groups, names=["before", "since"], margin=margin, level=level)


def control_false_alarms(found: Sequence[Check], share: float = FALSE_SHARE) -> list[Check]:
    """Keep the changes whose experiments stand out among all that were checked.

    Parameters
    ----------
    found : sequence of Check
    share : float
        Greatest expected share of false alarms among the reported experiments.

    Returns
    -------
    list of Check
        Experiments that are not significant among so many have the verdict ``ok``, and say so.

    References
    ----------
    Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical
    Society B 57, 1995.
    """
    least = [min((one.p for one in each.changes), default=1.0) for each in found]
    order = np.argsort(least)
    allowed = share * np.arange(1, len(found) + 1) / max(len(found), 1)
    passed = np.flatnonzero(np.array(least)[order] <= allowed)
    kept = set(order[: passed[-1] + 1].tolist()) if len(passed) else set()
    return [
        each
        if number in kept or not each.changes
        else _without(
            each.unread,
            replace(
                each,
                verdict="ok",
                reason=f"no change is certain among {len(found)} experiments (p = {least[number]:.2g})",
                changes=[],
            ),
        )
        for number, each in enumerate(found)
    ]
