"""What a remedy gains, before it is tried: by the account of a run, or by measured costs of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ensembles.answers.diagnose import statement_of
from ensembles.faces.answer import Answer
from ensembles.faces.words import sentence
from ensembles.model.statement import Part, Statement

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Diagnosis, Finding, Gain

LEVEL = 0.9
"""Level of the interval of a prediction, and least coverage of that of a measured gain."""


@dataclass(frozen=True, kw_only=True)
class PredictionAnswer(Answer):
    """By how much a run would be shorter.

    Attributes
    ----------
    run, remedy : str
    gain : Gain or None
        None: refused.
    finding : str
        Id of the finding whose gain it is or, where it is refused, whose calls the remedy does not change;
        ``""``: it is computed from the times of calls.
    calibration : str
        Path of the run whose calls have the costs; ``""``: none.
    unknown : str
        Call whose cost is not known, where it is refused.
    """

    question: str = field(default="predict", init=False)

    run: str
    remedy: str
    gain: Gain | None
    finding: str = ""
    calibration: str = ""
    unknown: str = ""
    notes: tuple[str, ...] = ()

    @property
    def assumption(self) -> Statement:
        """What the interval depends on."""
        if self.finding:
            return Statement("predict.account", {"finding": self.finding})
        if self.calibration:
            return Statement("predict.calibration", {"calibration": self.calibration})
        return Statement("predict.run")

    @property
    def parts(self) -> tuple[Part, ...]:
        """The interval and the assumption in one line, or what would tell."""
        values: dict[str, Any] = {"remedy": self.remedy, "call": self.unknown, "finding": self.finding}
        if self.gain is None:
            return ((Statement("predict.unchanged" if self.finding else "predict.refused", values),),)
        values |= {"gain": statement_of(self.gain), "assumption": self.assumption}
        return ((Statement("predict.result", values, max(self.gain.low_s, 0.0)),),)

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``ensio predict --json``."""
        gain = self.gain
        return {
            "run": self.run,
            "remedy": self.remedy,
            "gain_s": None if gain is None else [gain.low_s, gain.high_s],
            "median_s": None if gain is None else gain.likely_s,
            "level": LEVEL,
            "finding": self.finding or None,
            "assumptions": "" if gain is None else sentence(self.assumption),
            "refused": str(self).strip() if gain is None else None,
        }


def predict(
    found: Diagnosis,
    remedy: str,
    by_calls: Gain | str,
    changed_share: Callable[[Finding], float],
    calibration: str = "",
) -> PredictionAnswer:
    """Predict what a remedy gains: by the finding of a diagnosis that it mends, else by the times of calls.

    `by_calls`: the gain by these times, or the call whose time is not known. `changed_share`: the part of the
    functions of a finding whose calls the remedy changes; below 1, the gain of the finding is that of more;
    0: the remedy is refused. `calibration`: path of the run that the times are of; ``""``: the run itself.
    """
    kind = remedy.partition("=")[0]
    mine = [
        each
        for each in found.findings
        if each.gain_s
        and kind in [name.partition("=")[0] for name in each.trial.split() or each.proposed_trials]
    ]
    if mine and not calibration:
        share, finding = max(((changed_share(each), each) for each in mine), key=lambda pair: pair[0])
        if share in (0, 1):
            gain = finding.gain if share else None
            return PredictionAnswer(run=found.run, remedy=remedy, gain=gain, finding=finding.id)
    gain, unknown = (None, by_calls) if isinstance(by_calls, str) else (by_calls, "")
    return PredictionAnswer(run=found.run, remedy=remedy, gain=gain, calibration=calibration, unknown=unknown)
