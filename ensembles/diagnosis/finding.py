"""What a diagnosis says: findings with their evidence, and what could not be examined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import count_text, seconds_text

SEVERITIES = ("note", "warning", "critical")
"""From the least on."""

FROM_SHARE = {"warning": 0.02, "critical": 0.10}
"""A finding is that severe if it costs this share of the run's span, or of the time that all tasks together
spent in I/O."""

SURE = 0.95
"""The confidence where all evidence is there: nobody has looked at the machine."""

DOUBT = 0.8
"""What a check that the data could not decide leaves of the confidence."""


@dataclass(frozen=True)
class Check:
    """One thing that has to be so if a finding is right.

    Attributes
    ----------
    name : str
    holds : bool or None
        None: the data cannot say.
    sentence : str
        What was seen, with its numbers.
    """

    name: str
    holds: bool | None
    sentence: str


@dataclass(frozen=True)
class Where:
    """The calls that a finding is about. What is None was not told apart.

    Attributes
    ----------
    op, layer : str or None
    calls : tuple of str or None
        Functions.
    files : tuple of str
        Up to `MOST_FILES` of them, those that cost most first.
    file_count, tasks : int
        How many there are.
    ranks : tuple of (int, int)
        Spans of ranks, both ends included; no more than `MOST_SPANS`, which then hold ranks besides.
    phases : tuple of int or None
        As ``ensio phases`` numbers them.
    phase_names : tuple of str or None
        Where the program named them.
    ordinals : tuple of (int, int)
        Spans of how many-th calls of a task on a file, both ends included.
    times_s : (float, float) or None
        From the first to the end of the last.
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

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return {
            **vars(self),
            "files": list(self.files),
            "calls": None if self.calls is None else list(self.calls),
            "ranks": spans_text(self.ranks),
            "phases": None if self.phases is None else list(self.phases),
            "phase_names": None if self.phase_names is None else list(self.phase_names),
            "ordinals": [list(span) for span in self.ordinals],
            "times_s": None if self.times_s is None else list(self.times_s),
        }

    def __str__(self) -> str:
        what = f"{self.op or 'call'}s" + (f" ({', '.join(self.calls)})" if self.calls else "")
        parts = [what + (f" {spans_text(self.ordinals)} of a task on a file" if self.ordinals else "")]
        if self.files:
            more = self.file_count - len(self.files)
            names = ", ".join(sanitize_text(name) for name in self.files)
            parts.append(f"on {names}" + (f" and {count_text(more, 'more file')}" if more > 0 else ""))
        parts.append(f"in {count_text(self.tasks, 'task')} ({spans_text(self.ranks)})")
        if self.phases:
            names = ", ".join(map(sanitize_text, dict.fromkeys(self.phase_names or ())))
            many = "s" * (len(self.phases) != 1)
            parts.append(f"phase{many} {_few(self.phases)}" + (f" ({names})" if names else ""))
        if self.times_s:
            parts.append(f"from {self.times_s[0]:.3f} to {self.times_s[1]:.3f} s")
        return ", ".join(parts)


@dataclass(frozen=True)
class Finding:
    """One cause of slow I/O.

    Attributes
    ----------
    id : str
        One of the names that the design lists, for example ``strided-readahead``.
    severity : str
        One of `SEVERITIES`.
    confidence : float
        From 0 to 1: how much of the evidence that there could be was there, see `rate_confidence`. No
        probability.
    where : Where
    evidence : mapping of str to value
        Numbers and short lists, SI units, keys with a suffix for the unit.
    checks : tuple of Check
        What had to be so.
    advice : str
        What to do, in plain words.
    gain_s : (float, float) or None
        By how much the run would be shorter, from and to; None: cannot be said.
    title : str
        One sentence: what happens.
    """

    id: str
    severity: str
    confidence: float
    where: Where
    evidence: Mapping[str, Any]
    checks: tuple[Check, ...]
    advice: str
    gain_s: tuple[float, float] | None
    title: str

    @property
    def weight(self) -> tuple[int, float, float]:
        """What findings are ordered by: severity, gain, confidence."""
        gain = sum(self.gain_s) / 2 if self.gain_s else 0.0
        return SEVERITIES.index(self.severity), gain * self.confidence, self.confidence

    @property
    def gain_text(self) -> str:
        """The gain in words, or ``""``."""
        if self.gain_s is None:
            return ""
        low, high = (seconds_text(value) for value in self.gain_s)
        return (
            f"The run would be {low} to {high} shorter" if low != high else f"The run would be {low} shorter"
        )

    def to_json(self) -> dict[str, Any]:
        """A dict as ``ensio diagnose --json`` prints it."""
        return {
            "id": self.id,
            "severity": self.severity,
            "confidence": round(self.confidence, 3),
            "title": self.title,
            "where": self.where.to_json(),
            "evidence": {**self.evidence, "checks": [vars(check) for check in self.checks]},
            "advice": self.advice,
            "gain_s": None if self.gain_s is None else list(self.gain_s),
        }

    def __str__(self) -> str:
        lines = [f"{self.severity}: {self.id} (confidence {self.confidence:.0%})", f"  {self.title}"]
        lines.append(f"  where     {self.where}")
        mark = {True: "yes", False: "no", None: "?"}
        for number, check in enumerate(self.checks):
            lines.append(f"  {'evidence' if not number else '':<8}  {mark[check.holds]:<3} {check.sentence}")
        if self.gain_s is not None:
            lines.append(f"  gain      {self.gain_text}")
        lines.append(f"  advice    {self.advice}")
        return "\n".join(lines)


@dataclass(frozen=True)
class NotExamined:
    """A rule that could not be judged by.

    Attributes
    ----------
    id : str
        The finding that there might be.
    reason : str
        Why, in one sentence.
    """

    id: str
    reason: str


@dataclass(frozen=True)
class Diagnosis:
    """What all rules say of a run.

    Attributes
    ----------
    run : str
        Its path.
    findings : tuple of Finding
        The strongest first.
    examined : tuple of str
        Ids of the rules that were judged by, with a finding or without.
    not_examined : tuple of NotExamined
    notes : tuple of str
        What is partial or doubtful about the run.
    """

    run: str
    findings: tuple[Finding, ...]
    examined: tuple[str, ...]
    not_examined: tuple[NotExamined, ...]
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """A dict as ``ensio diagnose --json`` prints it."""
        return {
            "run": self.run,
            "findings": [finding.to_json() for finding in self.findings],
            "examined": list(self.examined),
            "not_examined": [vars(entry) for entry in self.not_examined],
            "complete": not self.notes,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = [str(finding) for finding in self.findings]
        if not parts:
            looked = (
                f"looked for: {', '.join(self.examined)}" if self.examined else "nothing could be examined"
            )
            parts = [f"no finding ({looked})"]
        elif len(self.examined) > len(self.findings):
            found = {finding.id for finding in self.findings}
            others = ", ".join(name for name in self.examined if name not in found)
            parts += [f"looked for and not found: {others}"] if others else []
        parts += [f"not examined: {entry.id}: {entry.reason}" for entry in self.not_examined]
        return "\n\n".join(parts)


MOST_FILES = 5
MOST_SPANS = 16


def rate_confidence(checks: tuple[Check, ...]) -> float:
    """`SURE` if all checks hold, times `DOUBT` for each that the data could not decide; 0 if one fails."""
    if any(check.holds is False for check in checks):
        return 0.0
    return SURE * DOUBT ** sum(check.holds is None for check in checks)


def rate_severity(share: float) -> str:
    """How severe a finding is that costs this share of the run (`FROM_SHARE`)."""
    reached = [name for name in SEVERITIES[1:] if share >= FROM_SHARE[name]]
    return reached[-1] if reached else SEVERITIES[0]


def find_spans(numbers: Any, most: int = MOST_SPANS) -> tuple[tuple[int, int], ...]:
    """Numbers as spans, both ends included; where there are more than `most`, the nearest ones are joined.

    Parameters
    ----------
    numbers : array_like of int, shape (n,)
    """
    import numpy as np

    numbers = np.unique(np.asarray(numbers, np.int64))
    if not len(numbers):
        return ()
    gap = np.diff(numbers)
    cuts = np.flatnonzero(gap > 1)
    if len(cuts) >= most:
        cuts = np.sort(cuts[np.argsort(-gap[cuts], kind="stable")[: most - 1]])
    low = numbers[np.concatenate([[0], cuts + 1])]
    high = numbers[np.concatenate([cuts, [len(numbers) - 1]])]
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def spans_text(spans: tuple[tuple[int, int], ...]) -> str:
    """Spans as filters take them: ``0-63,70``."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _few(numbers: tuple[int, ...]) -> str:
    return spans_text(find_spans(numbers)).replace(",", ", ")
