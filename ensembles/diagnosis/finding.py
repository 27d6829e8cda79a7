"""Findings with their evidence, and the diagnosis that collects them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.principles import CALLS, OTHERS, OUTSIDE, RECORDED, TRIALS, Cause, cause_of
from ensembles.model.levels import A_TENTH, FEW, WORTH_NAMING
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.spans import find_spans, some_spans_text, spans_text
from ensembles.model.units import count_text, seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.diagnosis.account import CallTime
    from ensembles.structure.late_entry import LateEntry
    from ensembles.structure.phases.critical_path import CriticalPath
    from ensembles.structure.phases.late_calls import LateOutside


SEVERITIES = ("note", "warning", "critical")
"""Severities, rising."""

FROM_SHARE = {"warning": WORTH_NAMING, "critical": A_TENTH}
"""Least cost of a severity, as a share of the run (`ensembles.run.run.Run.length_s`)."""

_KINDS: dict[tuple[str | None, str | None], str] = {
    (None, "meta"): "metadata calls",
    ("stdio", "sync"): "flushes",
}
"""Names of operations, perhaps of a layer, other than the plural of the word."""

LIKELY_COUNTS = 1 / 3
"""Part of the best estimate of a gain that counts as if it were certain."""

SURE = 0.95
"""Confidence if all checks hold. It is below 1, as the machine itself was not examined."""

DOUBT = 0.8
"""Factor of the confidence for each check that the data could not decide."""


@dataclass(frozen=True)
class Check:
    """A necessary condition of a finding, and whether it holds.

    Attributes
    ----------
    name : str
        Its name.
    sentence : str
        The observation, with numbers.
    holds : bool or None
        None: the data could not decide.
    """

    name: str
    sentence: str
    holds: bool | None = True


@dataclass(frozen=True)
class Where:
    """The calls that a finding concerns.

    An attribute is None if the finding does not depend on it.

    Attributes
    ----------
    op, layer : str or None
        Operation and layer.
    calls : tuple of str or None
        Functions.
    files : tuple of str
        Up to `MOST_FILES` paths, the most costly first.
    file_count, tasks : int
        Number of all files, and of tasks.
    ranks : tuple of (int, int)
        Spans of ranks, both ends included; at most `MOST_SPANS`, which then include some other ranks.
    phases : tuple of int or None
        Phases as ``ensio phases`` numbers them.
    phase_names : tuple of str or None
        Names of the phases, if the program named them.
    ordinals : tuple of (int, int)
        Spans of ordinals (call index of a task on a file), both ends included.
    times_s : (float, float) or None
        Start of the first call and end of the last, in seconds since the origin of the run.
    sites : tuple of (str, float)
        Call sites that led to these calls, with their shares of them, the largest first.
    """

    op: str | None = None
    layer: str | None = None
    calls: tuple[str, ...] | None = None
    files: tuple[str, ...] = ()
    file_count: int = 0
    tasks: int = 0
    ranks: tuple[tuple[int, int], ...] = ()
    phases: tuple[int, ...] | None = None
    phase_names: tuple[str, ...] | None = None
    ordinals: tuple[tuple[int, int], ...] = ()
    times_s: tuple[float, float] | None = None
    sites: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes."""
        return {
            **vars(self),
            "files": list(self.files),
            "calls": None if self.calls is None else list(self.calls),
            "ranks": spans_text(self.ranks),
            "phases": None if self.phases is None else list(self.phases),
            "phase_names": None if self.phase_names is None else list(self.phase_names),
            "ordinals": [list(span) for span in self.ordinals],
            "times_s": None if self.times_s is None else list(self.times_s),
            "sites": [{"label": label, "share": share} for label, share in self.sites],
        }

    def __str__(self) -> str:
        kind = _KINDS.get((self.layer, self.op), _KINDS.get((None, self.op), f"{self.op or 'call'}s"))
        what = kind + (f" ({', '.join(self.calls)})" if self.calls else "")
        parts = [what + (f" {some_spans_text(self.ordinals)} of a task on a file" if self.ordinals else "")]
        if self.files:
            shown = self.files[:FEW]
            names = ", ".join(sanitize_text(name) for name in shown)
            others = f" and others ({self.file_count:,} files)" if self.file_count > len(shown) else ""
            parts.append(f"on {names}{others}")
        ranks = ""
        if self.ranks:
            spanned = sum(high - low + 1 for low, high in self.ranks)
            joined = f"some of ranks {self.ranks[0][0]}-{self.ranks[-1][1]}"
            ranks = f" ({joined if spanned > self.tasks else some_spans_text(self.ranks)})"
        parts.append(f"in {count_text(self.tasks, 'task')}{ranks}")
        if self.phases:
            names = ", ".join(map(sanitize_text, dict.fromkeys(self.phase_names or ())))
            many = "s" * (len(self.phases) != 1)
            parts.append(
                f"phase{many} {some_spans_text(find_spans(self.phases))}" + (f" ({names})" if names else "")
            )
        if self.times_s:
            parts.append(f"from {self.times_s[0]:.3f} to {self.times_s[1]:.3f} s")
        named = [f"{sanitize_text(label)} ({share_text(share)})" for label, share in self.sites]
        if named:
            named[0] = f"{named[0][:-1]} of the time)"
        return ", ".join(parts) + (f"; called from {'; '.join(named)}" if named else "")


class Gain(NamedTuple):
    """By how much a run would be shorter, s: a 90 % interval, and the best estimate (None: not known)."""

    low_s: float
    high_s: float
    likely_s: float | None = None


@dataclass(frozen=True)
class Finding:
    """One cause of slow I/O.

    Attributes
    ----------
    id : str
        Id of the cause, for example ``strided-readahead``.
    confidence : float
        From 0 to 1: share of the evidence that is present (`rate_confidence`). It is not a probability.
    where : Where
        The calls that it concerns.
    evidence : mapping of str to value
        Numbers and short lists in SI units; keys have the unit as a suffix.
    checks : tuple of Check
        Conditions of the finding.
    advice : str
        The remedy, in plain words.
    gain_s : (float, float) or None
        Interval of the predicted reduction of the run's span; None: not known. No end exceeds the time of the
        calls (``time_s`` of the evidence), or the waiting between them (``waiting_s``).
    title : str
        One sentence: what happens.
    share_s : float or None
        Part of the lost time when it is given to causes one after the other, the largest first. The parts of
        all findings add up to at most the loss.
    symptoms : tuple of str
        Ids of findings that would gain next to nothing once this cause is mended.
    saved_ns : ndarray of float64 or None
        Time that the remedy takes off each row of the shared evidence; None: not known.
    rows : ndarray of int64, shape (5, n), or None
        Rows of the shared evidence that it concerns (`ensembles.diagnosis.evidence.ROW`).
    not_inside : tuple of str
        Functions: the finding does not concern what happens inside them.
    trial : str
        Remedy of ``ensio try`` that changes the calls that it concerns; ``""``: none does.
    likely_s : float
        Best estimate of the gain, within which all is known to be.
    is_symptom : bool
        Whether another finding explains it.
    """

    id: str
    confidence: float
    where: Where
    evidence: Mapping[str, Any]
    checks: tuple[Check, ...]
    advice: str
    gain_s: tuple[float, float] | None
    title: str
    share_s: float | None = None
    symptoms: tuple[str, ...] = ()
    saved_ns: Any = field(default=None, repr=False, compare=False)
    rows: Any = field(default=None, repr=False, compare=False)
    not_inside: tuple[str, ...] = field(default=(), repr=False, compare=False)
    trial: str = ""
    likely_s: float = 0.0
    is_symptom: bool = False

    def __post_init__(self) -> None:
        if "time_s" in self.evidence:
            object.__setattr__(self, "gain_s", self.within(self.evidence["time_s"]))

    def within(self, time_s: float) -> tuple[float, float] | None:
        """Return the gain as far as it is within some time, or the waiting between its calls."""
        most_s = max(time_s, self.evidence.get("waiting_s", 0.0))
        return self.gain_s and (min(self.gain_s[0], most_s), min(self.gain_s[1], most_s))

    @property
    def severity(self) -> str:
        """One of `SEVERITIES`, by the larger of the least gain and a third of the likely one.

        For ``critical``, no more of it counts than `share_s`. A symptom is a note.

        Examples
        --------
        >>> from ensembles.diagnosis.finding import Finding, Where
        >>> wide = Finding("o-sync", 0.9, Where(), {"run_s": 1.0}, (), "", (0.0, 0.5), "", likely_s=0.2)
        >>> wide.severity
        'warning'
        """
        low_s, high_s = self.gain_s or (0.0, 0.0)
        cost_s = max(low_s, LIKELY_COUNTS * min(self.likely_s, high_s)) * (not self.is_symptom)
        run_s = max(self.evidence.get("run_s", 0.0), 1e-9)
        own_s = cost_s if self.share_s is None else min(cost_s, self.share_s)
        costs_s = {"warning": cost_s, "critical": own_s}  # a second is critical once
        return SEVERITIES[sum(costs_s[level] >= share * run_s for level, share in FROM_SHARE.items())]

    @property
    def kind(self) -> Cause:
        """What the id stands for."""
        return cause_of(self.id)

    @property
    def gain(self) -> Gain | None:
        """The gain with its best estimate, if that is known and within the interval; None: not known."""
        if self.gain_s is None:
            return None
        likely_s = min(self.likely_s if self.share_s is None else self.share_s, self.likely_s)
        is_known = likely_s > 0 and self.gain_s[0] <= likely_s <= self.gain_s[1]
        return Gain(*self.gain_s, likely_s if is_known else None)

    @property
    def proposed_trials(self) -> tuple[str, ...]:
        """Remedies of ``ensio try`` for its cause: that of the operation of its calls, or all of several."""
        trials = self.kind.trials or TRIALS.get(self.kind.principle, {})
        if self.where.op is None:
            return tuple(dict.fromkeys(trials.values()))
        return tuple(trials[op] for op in (self.where.op, "") if op in trials)[:1]

    @property
    def weight(self) -> tuple[int, float, float]:
        """Sort key of findings: severity, best estimate of the gain times confidence, confidence."""
        gain = sum(self.gain_s or ()) / 2 if self.share_s is None else self.share_s
        # That the time is spent elsewhere is said before whatever else there is.
        level = len(SEVERITIES) if self.id == "not-io" else SEVERITIES.index(self.severity)
        return level, gain * self.confidence, self.confidence

    def to_json(self) -> dict[str, Any]:
        """Return a dict as ``ensio diagnose --json`` prints it."""
        return {
            "id": self.id,
            "severity": self.severity,
            "confidence": round(self.confidence, 3),
            "title": self.title,
            "where": self.where.to_json(),
            "evidence": {**self.evidence, "checks": [vars(check) for check in self.checks]},
            "advice": self.advice,
            "gain_s": None if self.gain_s is None else list(self.gain_s),
            "share_s": self.share_s,
            "symptoms": list(self.symptoms),
            **({"try": self.trial} if self.trial else {}),
        }


class NotApplicable(Exception):
    """Raised by a rule if the run lacks data that it needs.

    The text is a sentence for users; the attributes are those of `NotExamined`.
    """

    def __init__(
        self,
        sentence: str,
        at_most_s: float | None = None,
        suspected: bool = True,
        record: str = "",
        applies: bool = True,
        is_cost: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.at_most_s, self.record, self.applies, self.is_cost = at_most_s, record, applies, is_cost
        self.suspected = suspected and at_most_s is not None


def is_open(gain_s: tuple[float, float]) -> bool:
    """Whether the lower end of a gain is little of the upper one, and not worth a word."""
    return gain_s[0] < A_TENTH * gain_s[1]


def matters(time_s: float, run_s: float) -> bool:
    """Whether a time is a notable part of a run: what a warning needs."""
    return time_s >= FROM_SHARE["warning"] * run_s


def refuse_if_it_matters(
    at_most_s: float, run_s: float, why: str, suspected: bool = True, record: str = ""
) -> None:
    """Refuse a run of which a cause could take a notable part; `why` ends the sentence."""
    if matters(at_most_s, run_s):
        raise NotApplicable(f"of this run{why}", at_most_s, suspected, record, is_cost=True)


@dataclass(frozen=True)
class NotExamined:
    """A rule that could not be applied.

    Attributes
    ----------
    id : str
        Id of its findings.
    reason : str
        The reason, in one sentence.
    at_most_s : float or None
        What the cause could cost, s; None: not known.
    suspected : bool
        The run has signs of the cause, which do not decide. Else it could have any cost up to ``at_most_s``.
    record : str
        What to record next, in a few words; ``""``: the reason says it.
    applies : bool
        False: this run cannot have the cause, as with one task none is slower than others.
    """

    id: str
    reason: str
    at_most_s: float | None = None
    suspected: bool = False
    record: str = ""
    applies: bool = True

    @classmethod
    def of(cls, name: str, reason: NotApplicable, whole_s: float | None) -> NotExamined:
        """Return why a rule was not applied; no cause costs more than the time that it is a part of."""
        most_s = reason.at_most_s
        most_s = most_s if most_s is None or whole_s is None else min(most_s, whole_s)
        said = f"it could cost up to {seconds_text(most_s or 0.0)} " * reason.is_cost + str(reason)
        return cls(name, said, most_s, reason.suspected, reason.record, reason.applies)


@dataclass(frozen=True)
class Diagnosis:
    """The results of all rules on a run.

    Attributes
    ----------
    run : str
        Path of the run.
    findings : tuple of Finding
        Findings, the strongest first.
    examined : tuple of str
        Ids of the rules that were applied, with a finding or without.
    not_examined : tuple of NotExamined
        Rules that could not be applied.
    unexplained_s : float or None
        Time in which all but the slowest task of each phase wait, and which no finding explains; None: not
        examined, or the run does not show which tasks wait for which.
    notes : tuple of str
        Data-quality notes of the run.
    hints : tuple of str
        How to see the lines of the program that findings concern, where they are not known; or what it cost
        to record them.
    run_s : float or None
        Length of the run, of which severities are shares; None: no call was examined.
    account : Account or None
        Where the time of the run goes; None: the calls are not known one by one.
    late_outside : LateOutside or None
        The task for which others wait, where findings do not explain it and its time outside of I/O calls
        does.
    late_entry : LateEntry or None
        The task that enters collective calls late, if others wait for it for a notable time.
    most_time : tuple of CallTime
        Functions whose I/O calls take `LEAST_CALL_SHARE` of the time of all or more, the largest
        first; empty: the calls are not known one by one.
    crowded : str
        Which tasks share processors, so that calls and tasks wait for one; ``""``: none, or not known.
    lost_data : str
        Which writes, syncs and closes failed, after which files may lack data; ``""``: none, or not known.
    not_ended : int
        Number of processes that were killed or are running, so that these are results up to then.
    lacks : str
        What the record lacks, if so much that these are results of a part of the run; ``""``: too little.
    """

    run: str
    findings: tuple[Finding, ...]
    examined: tuple[str, ...]
    not_examined: tuple[NotExamined, ...]
    unexplained_s: float | None = None
    notes: tuple[str, ...] = field(default=())
    hints: tuple[str, ...] = field(default=())
    run_s: float | None = None
    account: Account | None = None
    late_outside: LateOutside | None = None
    late_entry: LateEntry | None = None
    most_time: tuple[CallTime, ...] = ()
    crowded: str = ""
    lost_data: str = ""
    not_ended: int = 0
    lacks: str = ""
    SMALL_SHARE: ClassVar[float] = FROM_SHARE["warning"]
    UNDECIDED_SHARE: ClassVar[float] = FROM_SHARE["critical"]

    def is_small(self, finding: Finding) -> bool:
        """Whether a finding costs less than a warning needs, at the upper end of its gain too."""
        if self.run_s is None or finding.gain_s is None or finding.severity != "note":
            return False
        return finding.id != "not-io" and finding.gain_s[1] < self.SMALL_SHARE * self.run_s

    def cause_of(self, finding: Finding) -> str:
        """Return the id of the finding that explains another one; ``""``: none does."""
        return next((each.id for each in self.findings if finding.id in each.symptoms), "")

    @property
    def undecided(self) -> tuple[NotExamined, ...]:
        """Causes that could cost a tenth of the run, and more than any finding; suspected ones come first.

        None, if findings leave less than that of the time in I/O.
        """
        if not self.run_s:
            return ()
        named = {RECORDED, *(each.id for each in self.findings)}
        parts = () if self.account is None else self.account.entries
        left_s = sum(each.time_s for each in parts if each.is_in_io and each.id not in named)
        if parts and left_s < self.UNDECIDED_SHARE * self.run_s:
            return ()
        known_s = max((each.gain_s[1] for each in self.findings if each.gain_s is not None), default=0.0)
        least_s = max(self.UNDECIDED_SHARE * self.run_s, known_s)
        large = [each for each in self.not_examined if (each.at_most_s or 0.0) >= least_s]
        return tuple(sorted(large, key=lambda each: (not each.suspected, -(each.at_most_s or 0.0))))

    def to_json(self) -> dict[str, Any]:
        """Return a dict as ``ensio diagnose --json`` prints it."""
        return {
            "run": self.run,
            "findings": [finding.to_json() for finding in self.findings],
            "examined": list(self.examined),
            "unexplained_s": self.unexplained_s,
            "run_s": self.run_s,
            "account": None if self.account is None else self.account.to_json(),
            "crowded": self.crowded,
            "lost_data": self.lost_data,
            **({"not_ended": self.not_ended} if self.not_ended else {}),
            **({"lacks": self.lacks} if self.lacks else {}),
            **({} if self.late_outside is None else {"late_outside": self.late_outside.to_json()}),
            **({} if self.late_entry is None else {"late_entry": self.late_entry.to_json()}),
            "most_time": [each.to_json() for each in self.most_time],
            "not_examined": [vars(entry) for entry in self.not_examined],
            "complete": not self.notes,
            "notes": list(self.notes),
            "hints": list(self.hints),
        }


LEAST_CALL_SHARE = 0.2
"""Share of the time in I/O calls from which a function is named."""

MOST_FILES = 5
"""Files that a finding has."""


def rate_confidence(checks: tuple[Check, ...]) -> float:
    """Compute the confidence of a finding.

    It is `SURE`, times `DOUBT` for each check that the data could not decide; 0 if a check fails.

    Examples
    --------
    >>> from ensembles.diagnosis.finding import Check, rate_confidence
    >>> checks = Check("a", ""), Check("b", "", None)
    >>> round(rate_confidence(checks), 3)
    0.76
    """
    if any(check.holds is False for check in checks):
        return 0.0
    return SURE * DOUBT ** sum(check.holds is None for check in checks)


def divide(
    path: CriticalPath,
    findings: Sequence[Finding],
    inside: Sequence[Entry],
    outside: Iterable[Entry] = (),
    recorded: Entry | None = None,
) -> Account:
    """Divide the time of a run, of any kind of record; `recorded`: time of the recorder within calls."""
    left_s, found = path.io_s, []
    for each in findings:
        middle_s = sum(each.gain_s or (0.0, 0.0)) / 2 if cause_of(each.id).in_io else 0
        time_s = min(middle_s if each.share_s is None else each.share_s, left_s)
        left_s -= time_s
        found.append(Entry(each.id, time_s))
    others_s = min(path.io_s - path.low_s, left_s)  # not known to be on the path: nothing scales it
    recorded = recorded or Entry(RECORDED, 0.0)
    recorded = replace(recorded, time_s=min(recorded.time_s, left_s - others_s))
    left_s -= others_s + recorded.time_s
    # Of a task whose I/O findings remove, another one may be as late for something else: its calls are left.
    inside = inside if any(each.time_s for each in inside) else [Entry(CALLS, 1.0)]
    whole_s = sum(each.time_s for each in inside)
    rest = [replace(each, time_s=left_s * each.time_s / whole_s) for each in inside]
    rest += [recorded, Entry(OTHERS, others_s)]
    left_s = path.run_s - path.io_s
    for entry in outside:
        rest.append(replace(entry, time_s=min(max(entry.time_s, 0.0), left_s)))
        left_s -= rest[-1].time_s
    entries = [each for each in sorted(found, key=lambda each: -each.time_s) if each.time_s > 0]
    entries += [each for each in rest if each.time_s > 0]
    return Account(path.run_s, path.io_s, (*entries, Entry(OUTSIDE, max(left_s, 0.0))), path.is_of_run)
