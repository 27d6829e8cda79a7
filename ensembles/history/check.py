"""Whether the latest run of an experiment is another one than those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ensembles.comparison.compare import compare_read_runs
from ensembles.comparison.report import Comparison
from ensembles.comparison.verdict import MARGIN
from ensembles.history.record import RunRecord
from ensembles.history.store import History, StoredRun
from ensembles.model.errors import EnsioError

LEAST_RUNS = 3
"""Baseline runs from which a verdict is given: two show the variation from run to run by one difference."""

BASELINE = 20
"""Runs before the latest that are its baseline unless others are named."""

LEVEL = 0.01
"""Probability of a false alarm in a night, for all parts of all kinds of calls together."""

_SEVERE = ("warning", "critical")


@dataclass(frozen=True)
class Change:
    """What is another one in the latest run.

    Attributes
    ----------
    op, layer : str or None
        The calls that it concerns; None: a finding.
    what : str
        ``calls``, ``durations`` or ``finding``.
    direction : str
        ``slower``, ``faster`` or ``mixed``.
    sentence : str
        What changed, with numbers.
    """

    op: str | None
    layer: str | None
    what: str
    direction: str
    sentence: str


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes
    ----------
    experiment : str
    verdict : str
        ``regression``: something certainly takes longer, or a finding is new; ``improvement``: what changed
        became faster; ``ok``: no change is certain; ``too-few-runs``: the baseline is too short to tell.
    reason : str
        One sentence.
    run : StoredRun
        The run that was checked.
    baseline : list of StoredRun
    changes : list of Change
        What takes most time first.
    comparisons : list of Comparison
        Of the baseline with the run, by kind of calls.
    """

    experiment: str
    verdict: str
    reason: str
    run: StoredRun
    baseline: list[StoredRun]
    changes: list[Change] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio history check --json`` prints."""
        return {
            "experiment": self.experiment,
            "verdict": self.verdict,
            "reason": self.reason,
            "run": stored_json(self.run),
            "baseline": [stored_json(run) for run in self.baseline],
            "changes": [asdict(change) for change in self.changes],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
        }


def stored_json(run: StoredRun) -> dict[str, Any]:
    """Return the attributes of a run as JSON has them."""
    return asdict(run) | {"start": run.start.isoformat()}


def check(
    history: History,
    experiment: str,
    against: Sequence[StoredRun] | None = None,
    margin: float = MARGIN,
    level: float = LEVEL,
) -> Check:
    """Compare the latest run of an experiment with the runs before it.

    Parameters
    ----------
    history : History
    experiment : str
    against : sequence of StoredRun, optional
        The baseline. Default: the `BASELINE` runs before the latest.
    margin, level : float
        Largest change that does not count, and the probability of a false alarm, for all parts of all kinds
        of calls together.

    Returns
    -------
    Check

    Raises
    ------
    EnsioError
        There is no such experiment, or a record is damaged.

    Notes
    -----
    The run is the sampling unit, and the model is that of `ensembles.compare`: the new run is judged by the
    variation from run to run in its baseline.

    Examples
    --------
    >>> from ensembles.history.check import check
    >>> from ensembles.history.record import RunRecord
    >>> from ensembles.history.store import History
    >>> history = History("checked.db", make=True)
    >>> _ = history.add(RunRecord.of_run(en.open("ensio-ior")), "ior")
    >>> check(history, "ior").verdict
    'too-few-runs'
    """
    runs = history.runs(experiment)
    if not runs:
        known = ", ".join(one.name for one in history.experiments()) or "none"
        raise EnsioError(
            f"there is no experiment {experiment} in {history.place}: its experiments are {known}"
        )
    latest = runs[-1]
    baseline = runs[:-1][-BASELINE:] if against is None else [run for run in against if run.id != latest.id]
    if len(baseline) < LEAST_RUNS:
        missing = LEAST_RUNS - len(baseline)
        return Check(
            experiment,
            "too-few-runs",
            f"{len(baseline)} earlier runs do not show how much runs vary: add {missing} or more",
            latest,
            baseline,
        )
    *before, record = history.records([*(run.id for run in baseline), latest.id])
    verdict, reason, changes, found = judge(before, record, margin, level)
    return Check(experiment, verdict, reason, latest, baseline, changes, found)


def judge(
    baseline: Sequence[RunRecord], latest: RunRecord, margin: float = MARGIN, level: float = LEVEL
) -> tuple[str, str, list[Change], list[Comparison]]:
    """Judge a record by those of a baseline.

    Parameters
    ----------
    baseline : sequence of RunRecord
        At least two.
    latest : RunRecord
    margin, level : float
        As for `check`.

    Returns
    -------
    verdict, reason : str
    changes : list of Change
    comparisons : list of Comparison
        As in `Check`.
    """
    groups = [[record.as_read() for record in baseline], [latest.as_read()]]
    found = compare_read_runs(groups, names=["baseline", "latest"], margin=margin, level=level)
    changes = [_change(one) for one in found if one.verdict == "different"]
    changes += _new_findings(baseline, latest)
    return *_verdict(changes, found), changes, found


def _change(found: Comparison) -> Change:
    what = "calls" if found.counts_differ else "durations"
    return Change(found.op, found.layer, what, found.direction or "mixed", found.reason)


def _new_findings(baseline: Sequence[RunRecord], latest: RunRecord) -> list[Change]:
    """Findings of the latest run that no run of the baseline has."""
    known = {one.id for record in baseline for one in record.findings}
    return [
        Change(None, None, "finding", "slower", f"new finding {one.id}: {one.title}")
        for one in latest.findings
        if one.id not in known and one.severity in _SEVERE
    ]


def _verdict(changes: Sequence[Change], found: Sequence[Comparison]) -> tuple[str, str]:
    worse = [change for change in changes if change.direction != "faster"]
    if worse:
        return "regression", worse[0].sentence
    if changes:
        return "improvement", changes[0].sentence
    if all(one.verdict == "same" for one in found):
        return "ok", "every kind of calls is the same within the margin"
    enough = max((one.enough_runs or math.inf for one in found if one.verdict != "same"), default=math.inf)
    more = "" if math.isinf(enough) else f"; {enough} runs would find or exclude a change beyond the margin"
    return "ok", f"no change is certain{more}"
