"""Whether the latest runs of an experiment differ from those before them, and what changed in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ensembles.comparison.compare import compare_read_runs
from ensembles.comparison.components import PLACE, TAIL, TAIL_PLACE, WEIGHT, WIDTH
from ensembles.comparison.difference import Difference, did_less, make_differences
from ensembles.comparison.hypothesis_tests import LEVEL as COMPARED_LEVEL
from ensembles.comparison.report import Comparison, gate
from ensembles.comparison.times import MARGIN
from ensembles.faces.words import cell
from ensembles.history.record import RunRecord
from ensembles.history.series import (
    CALLS,
    COMMON,
    PHASE,
    RATE,
    TIME,
    WINDOWS,
    Part,
    Series,
    Tested,
    first_changed,
    judge_windows,
    kinds_of_other_sizes,
    make_series,
)
from ensembles.history.store import Acknowledgement, History, StoredRun
from ensembles.model.errors import EnsioError
from ensembles.model.levels import SEVERAL
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import bytes_text, count_text, number_text, ratio_text, seconds_text, share_text

_SEVERE = ("warning", "critical")


@dataclass(frozen=True)
class Change:
    """A change in the latest runs: evidence for the sentence of a check.

    Attributes
    ----------
    op, layer : str or None
        The calls that it concerns; None: it concerns the whole run.
    what : str
        ``calls``, ``durations``, ``time`` (of whole runs) or ``finding``.
    direction : str
        ``slower`` or ``faster``; of numbers of calls ``more`` or ``fewer``.
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
    loss_s : float
        By how much the entry of the account that it concerns is longer, in s: of a phase itself.
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
    loss_s: float = 0.0

    @property
    def is_worse(self) -> bool:
        """Whether runs may take longer for it."""
        return self.direction not in ("faster", "fewer")

    @property
    def text(self) -> str:
        """The sentence, with the calls that it concerns."""
        calls = f"{self.layer} {self.op}, " if self.layer else ""
        how = "" if self.what in ("calls", "finding") else f"{self.direction}: "
        return sanitize_text(f"{calls}{how}{self.sentence}")


def changes_of(series: Series, certain: Sequence[Tested], first: int, apart: Difference) -> list[Change]:
    """Describe each part once, by its most certain window, and phases of one kind together."""
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
    phases: dict[tuple[str, bool], list[Tested]] = {}
    changes = []
    for one in kept or moved:
        part = series.parts[one.part]
        if part.what == PHASE:
            phases.setdefault((part.kind, one.absolute > 0), []).append(one)
        else:
            changes.append(_change(part, one, series, first, apart))
    changes += [_of_phases(each, series, first) for each in phases.values()]
    return sorted(changes, key=lambda each: (not each.is_worse, -abs(each.loss_s), each.p))


def _of_reference(series: Series, seen: Tested) -> Tested:
    """Return the change of the mode with most calls, which is seen as that of another relative to it."""
    sign = series.parts[seen.part].slower
    change = sign * (seen.absolute - seen.change)
    assert series.reference is not None
    return replace(seen, part=series.reference, change=change, absolute=change)


def _ends(series: Series, part: int, first: int) -> tuple[float, float]:
    """Return the mean of a part in the runs before a change and since."""
    before, since = series.absolute[:first, part], series.absolute[first:, part]
    return _mean(before), _mean(since)


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _of_phases(moved: Sequence[Tested], series: Series, first: int) -> Change:
    """Describe phases of one kind, whose times are added."""
    parts = [series.parts[one.part] for one in moved]
    before_s, after_s = (
        float(sum(2.0**end for end in ends))
        for ends in zip(*(_ends(series, one.part, first) for one in moved), strict=True)
    )
    numbers = ", ".join(f"{part.number}" for part in sorted(parts, key=lambda part: part.number))
    name = f"{'phases' if len(parts) > 1 else 'phase'} {numbers}" + (
        f" ({parts[0].kind})" if parts[0].kind else ""
    )
    direction = "slower" if after_s > before_s else "faster"
    text = f"{name} {_times_text(before_s, after_s)}{_evidence(moved[0])}"
    part = parts[0].name if len(parts) == 1 else "phase times"
    return Change(
        None, None, "durations", direction, text, part, moved[0].runs, moved[0].p, loss_s=after_s - before_s
    )


def _change(part: Part, one: Tested, series: Series, first: int, apart: Difference) -> Change:
    size = one.absolute if part.what not in (COMMON, WIDTH, WEIGHT, TAIL, TAIL_PLACE) else one.change
    words = ("fewer", "more") if part.what == CALLS else ("faster", "slower")
    direction = words[size * part.slower > 0]
    before, after = _ends(series, one.part, first)
    unit_s = part.t_s or 1.0
    if part.what == CALLS:
        text = f"{number_text(after, 6)} calls a run instead of {number_text(before, 6)}"
    elif part.what in (TAIL, WEIGHT):
        where = "beyond" if part.what == TAIL else "at"
        shares = f"{share_text(after, 2)} instead of {share_text(before, 2)}"
        text = f"{part.name}, {where} {seconds_text(unit_s)}: {shares}"
    elif part.what == RATE:
        text = f"{part.name} {bytes_text(2.0**before)}/s → {bytes_text(2.0**after)}/s"
    elif part.what in (COMMON, WIDTH, TAIL_PLACE) or not np.isfinite([before, after]).all():
        moved = after - before if np.isfinite([before, after]).all() else one.change
        text = f"{part.name} {ratio_text(2.0**moved)}"
    else:
        text = f"{part.name.removesuffix(' place')} {_times_text(unit_s * 2.0**before, unit_s * 2.0**after)}"
    kind = next((each for each in apart.losses if each.id == f"{part.layer} {part.op}"), None)
    loss_s = kind.loss_s if kind is not None else sum(each.loss_s for each in apart.losses)
    what = {CALLS: "calls", TIME: "time"}.get(part.what, "durations")
    text += _evidence(one) if part.what != CALLS else ""
    return Change(part.op, part.layer, what, direction, text, part.name, one.runs, one.p, loss_s=loss_s)


def _times_text(before_s: float, after_s: float) -> str:
    return f"{seconds_text(before_s)} → {seconds_text(after_s)}, {ratio_text(after_s / before_s)}"


def _evidence(one: Tested) -> str:
    runs = "" if one.runs == 1 else f" over the latest {one.runs} runs"
    return f" (p = {one.p:.2g}{runs})"


def new_findings(records: Sequence[RunRecord], before: Sequence[int]) -> dict[int, list[Change]]:
    """Find the findings that all runs since a change have and none of these before it, by its first run.

    One of these runs has it as a warning or worse.
    """
    severities = [{one.id: one.severity for one in record.findings} for record in records]
    changes: dict[int, list[Change]] = {}
    for one in records[-1].findings:
        lacks = [at for at, found in enumerate(severities) if one.id not in found]
        since = max(lacks, default=-1) + 1
        known = [one.id in severities[at] for at in before if at < since]
        if known and not any(known) and any(found[one.id] in _SEVERE for found in severities[since:]):
            text = f"new finding {one.id}: {one.title}"
            new = Change(None, None, "finding", "slower", text, one.id, loss_s=one.share_s)
            changes.setdefault(since, []).append(new)
    return changes


BASELINE = 20
"""Runs before the latest that are its baseline unless others are named."""

LEVEL = 0.02
"""Level of all tests of an experiment together. Windows overlap, so that Holm's correction is too strict:
less than 1 % of the nights of an unchanged experiment give an alarm (docs/reference/calibration/history.md).
"""


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes
    ----------
    experiment : str
    verdict : str
        ``regression``: something certainly takes longer, or a finding is new; ``improvement``: what changed
        became faster; ``ok``: no change is certain; ``incomplete``: the latest run did less of everything
        than all others; ``too-few-runs``: the baseline is too short to tell, or the latest run is `unread`.
    reason : str
        By how much whole runs are longer and which entries of their time hold that, with the first run of the
        change and its labels.
    run : StoredRun
        The latest run whose record can be read.
    baseline : list of StoredRun
        Runs before the shortest window.
    changes : list of Change
        The evidence, that about most time first.
    difference : Difference or None
        Of the runs since the change from those before, if there is one.
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
    difference: Difference | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    acknowledged: Acknowledgement | None = None
    unread: list[StoredRun] = field(default_factory=list)

    @property
    def fails(self) -> bool:
        """Whether the command exits with 1."""
        return self.verdict in ("regression", "incomplete")

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
            "difference": None if self.difference is None else self.difference.to_json(),
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

    Notes
    -----
    The run is the sampling unit. See `ensembles.history.series` for the tests.

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
        known = _listed([one.name for one in history.experiments()])
        has = f"its experiments are {known}" if known else "it holds no run"
        raise EnsioError(f"there is no experiment {experiment} in {history.name}: {has}")
    named = [] if against is None or isinstance(against, int) else list(against)
    read = history.readable([*named, *stored])
    unread = [run for run in {run.id: run for run in [*named, *stored]}.values() if run.id not in read]
    runs = [run for run in stored if run.id in read]
    latest, acknowledged = (runs or stored)[-1], history.acknowledged(experiment)
    # What another recorder does not see would be a change.
    of_others = {run_id for run_id in read if runs and not read[run_id].is_as(read[latest.id])}
    runs = [run for run in runs if run.id not in of_others]
    if isinstance(against, Sequence):
        against = [run for run in against if run.id in read and run.id not in of_others and runs]
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
    ended = _ended_early([read[run.id] for run in [*baseline, latest] if run.id in read])
    early = {run.id for run, is_early in zip([*baseline, latest], ended, strict=False) if is_early}
    baseline, runs = ([run for run in each if run.id not in early] for each in (baseline, runs))
    if len(baseline) < SEVERAL:
        missing = SEVERAL - len(baseline)
        since = "" if acknowledged is None else f" since the known change ({acknowledged.reason})"
        earlier = count_text(len(baseline), "earlier run") + " of the same recorder" * bool(of_others)
        reason = f"how much runs vary is not known from {earlier}{since}: add {missing} or more"
        few = Check(experiment, "too-few-runs", reason, latest, baseline, acknowledged=acknowledged)
        return _without(unread, few)
    if latest.id in early:
        short = make_differences(
            [[read[one.id].as_read() for one in group] for group in (baseline, [latest])],
            ["before", "latest"],
            COMPARED_LEVEL,
            margin,
        )[0]
        reason = f"{', '.join(short.did_less)}{_since(latest)}"
        done = Check(experiment, "incomplete", reason, latest, baseline, [], short, [], acknowledged)
        return _without(unread, done)
    records = [read[run.id] for run in runs]
    rows = list(range(len(baseline))) if isinstance(against, Sequence) else None
    names = [_since(run) for run in runs]
    judgement = judge(records, margin, level, windows, rows, most, last is None, names)
    first = runs[judgement.first]
    changes = [replace(each, since_run=first.id, since=first.start.isoformat()) for each in judgement.changes]
    found = _comparisons(records, judgement, margin, level) if compared and changes else []
    done = Check(
        experiment,
        judgement.verdict,
        judgement.reason,
        latest,
        baseline,
        changes,
        judgement.difference,
        found,
        acknowledged,
    )
    return _without(unread, done)


def _since(run: StoredRun) -> str:
    """Name the run with which a change begins, by its labels too."""
    labels = ", ".join(f"{name}={value}" for name, value in sorted(run.labels.items()))
    return sanitize_text(f", since run {run.id} of {run.start:%Y-%m-%d}" + (f" ({labels})" if labels else ""))


def _ended_early(records: Sequence[RunRecord]) -> list[bool]:
    """Whether each run did less of everything than most of the others, which are not judged by it."""
    sums = [record.as_read().sums for record in records]
    usual = [each for each in sums if sum(bool(did_less(one, [each])) for one in sums) < len(sums) / 2]
    return [
        bool(usual) and sum(bool(did_less(one, [each])) for each in usual) > len(usual) / 2 for one in sums
    ]


def _without(unread: list[StoredRun], found: Check) -> Check:
    """Name the runs that were left out; nothing is ``ok`` if the latest run is one of them."""
    if not unread:
        return found
    latest = max([*unread, found.run], key=lambda run: (run.start, run.id))
    verdict = "too-few-runs" if found.verdict == "ok" and latest in unread else found.verdict
    numbers = _listed([f"run {run.id} (the latest)" if run is latest else f"run {run.id}" for run in unread])
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
    difference: Difference | None = None


def judge(
    records: Sequence[RunRecord],
    margin: float = MARGIN,
    level: float = LEVEL,
    windows: Sequence[int] = WINDOWS,
    baseline: Sequence[int] | None = None,
    most: int = BASELINE,
    confirm: bool = True,
    names: Sequence[str] = (),
) -> Judgement:
    """Judge the latest of the records by those before."""
    before = range(max(0, len(records) - min(windows))) if baseline is None else baseline
    baselines = [records[at] for at in before]
    series = make_series(records, before)
    tested = judge_windows(series, windows, most, SEVERAL, margin, level, baseline, confirm)
    certain = [one for one in tested if one.p <= level]
    new, changes = new_findings(records, before), []
    first = min(new, default=len(records) - 1)
    if certain:
        widest = max(one.runs for one in certain)
        begin = max(0, len(records) - most - widest) if baseline is None else 0
        moved = [one.part for one in certain]
        # Numbers of calls change in one run, whatever the load is.
        moved = [part for part in moved if series.parts[part].what == CALLS] or moved
        first = min(first, first_changed(series, sorted(set(moved)), begin, lasts=certain[0].runs > 2))
    elif not confirm:
        first = len(records) - max(windows)
    apart = _difference(records[:first] if certain or new else baselines, records[first:], margin)
    if certain and apart is not None:
        changes = changes_of(series, certain, first, apart)
        if any(change.what != "time" for change in changes):
            changes = [change for change in changes if change.what != "time"]  # the others say why
    if not confirm and len(before) >= SEVERAL and not any(one.is_worse for one in changes):
        # What the gate of ``ensio compare`` fails for is a regression, too.
        groups = [[record.as_read() for record in each] for each in (baselines, records[-max(windows) :])]
        judged = gate(compare_read_runs(groups, names=["before", "latest"], margin=margin), 1.0)
        if judged.failed:
            apart = _difference(baselines, records[-max(windows) :], margin)
            p = [each.adjusted_p for each in (apart.longer_runs() if apart else ()) if each.adjusted_p]
            least = min(p, default=COMPARED_LEVEL)
            changes.append(
                Change(None, None, "time", "slower", cell(judged.failed[0], ""), "time", max(windows), least)
            )
    changes += [change for each in new.values() for change in each]
    verdict, reason = _verdict(changes, apart)
    if verdict == "ok":
        reason += _alone(series, before, records, windows, most, confirm and baseline is None)
    elif names:
        reason += names[first]
    reason += _other_sizes(records, before)
    return Judgement(verdict, reason, changes, first, tested, series, apart if changes else None)


def _difference(
    before: Sequence[RunRecord], since: Sequence[RunRecord], margin: float = MARGIN
) -> Difference | None:
    """Subtract the accounts of records; None: there is none on one side."""
    groups = [[record.as_read() for record in records] for records in (before, since)]
    return make_differences(groups, ["before", "since"], COMPARED_LEVEL, margin)[0] if all(groups) else None


def _other_sizes(records: Sequence[RunRecord], before: Sequence[int]) -> str:
    """Say of which kinds of calls the durations are not compared, because the calls have other sizes."""
    told = [
        f"{layer} {op} ({bytes_text(new)} a call instead of {bytes_text(old)})"
        for (layer, op), (old, new) in kinds_of_other_sizes(records, before).items()
    ]
    return f"; durations of other sizes are not compared: {_listed(told)}" if told else ""


def _verdict(changes: Sequence[Change], apart: Difference | None) -> tuple[str, str]:
    """Return the verdict, and the sentence: what whole runs lose, then what changed alone."""
    worse = [change for change in changes if change.is_worse]
    if not changes or apart is None:
        return "ok", "no change is certain"
    verdict = "regression" if worse else "improvement"
    moved = [f"{change.layer} {change.op}" for change in worse or changes if change.layer]
    told = [apart.sentence(moved)]
    whole = apart.whole
    if (
        worse
        and all(change.what == "durations" for change in worse)
        and whole
        and whole.is_shorter(COMPARED_LEVEL)
    ):
        # What a run loses decides: calls that take longer make no regression of shorter runs.
        return "improvement", f"{told[0]}, although {worse[0].text}"
    if not apart.shown(moved) or not apart.is_certain:
        told.append((worse or list(changes))[0].text)  # parts say what whole runs do not show
    told += [change.text for change in worse if change.what == "finding" and change.text not in told]
    return verdict, "; ".join(told)


def _alone(
    series: Series,
    before: Sequence[int],
    records: Sequence[RunRecord],
    windows: Sequence[int],
    most: int,
    by_time: bool,
) -> str:
    """Say that the latest run alone, that before it too, or a window takes longer."""
    last, runs = len(records) - 1, 0
    if series.parts and series.parts[0].what == COMMON and len(before) >= SEVERAL:
        common, rest = series.value[:, 0], [run for run in before if run != last - 1]
        if last - 1 in before and len(rest) >= SEVERAL:
            pair = common[last - 1 :] - common[rest].mean()
            runs = 2 * int(pair.min() > _least_outlier(common[rest]))
        runs = runs or int(common[-1] > _least_outlier(common[np.asarray(before)]))
    for window in windows if by_time and not runs else ():
        old = records[:-window][-most:]
        apart = _difference(old, records[-window:]) if len(old) >= SEVERAL else None
        if apart is not None and apart.fails():
            runs = window
            break
    if not runs:
        return ""
    old = [records[at] for at in before if at < len(records) - runs]
    apart = _difference(old, records[-runs:])
    said = apart.sentence() if apart is not None else ""
    if runs == 1:
        then = "which is a regression if the next two runs show it too, or with --last 1"
        return f"; {said} in the latest run, {then}"
    return f"; {said} in the latest {runs} runs, which is a regression with --last {runs}"


def _least_outlier(common: np.ndarray) -> float:
    return max(4 * float(common.std(ddof=1)), float(np.log2(1 + MARGIN)))


def _comparisons(
    records: Sequence[RunRecord], judgement: Judgement, margin: float, level: float
) -> list[Comparison]:
    reads = [record.as_read() for record in records]
    groups = [reads[: judgement.first], reads[judgement.first :]]
    if not all(groups):
        return []
    return compare_read_runs(groups, names=["before", "since"], margin=margin, level=level)


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def control_false_alarms(found: Sequence[Check]) -> list[Check]:
    """Keep the changes whose experiments stand out among all that were checked.

    References
    ----------
    Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical
    Society B 57, 1995.
    """
    least = [min((one.p for one in each.changes), default=1.0) for each in found]
    order = np.argsort(least)
    allowed = COMPARED_LEVEL * np.arange(1, len(found) + 1) / max(len(found), 1)
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
