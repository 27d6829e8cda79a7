"""What a remedy gains, before it is tried: by the account of a run, or by measured costs of calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import Answer
from ensembles.faces.words import sentence
from ensembles.model.statement import Part, Statement

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Diagnosis

LEVEL = 0.9
"""Level of the interval of a prediction, and least coverage of that of a measured gain."""


@dataclass(frozen=True, kw_only=True)
class PredictionAnswer(Answer):
    """By how much a run would be shorter.

    Attributes
    ----------
    run, remedy : str
    gain_s : (float, float) or None
        Its interval, s; None: refused.
    finding : str
        Id of the finding whose gain it is; ``""``: it is computed from the times of calls.
    calibration : str
        Path of the run whose calls have the costs; ``""``: none.
    unknown : str
        Call whose cost is not known, where it is refused.
    """

    question: str = field(default="predict", init=False)

    run: str
    remedy: str
    gain_s: tuple[float, float] | None
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
        values: dict[str, Any] = {"remedy": self.remedy, "assumption": self.assumption, "call": self.unknown}
        if self.gain_s is None:
            return ((Statement("predict.refused", values),),)
        low, high = self.gain_s
        return ((Statement("predict.result", values | {"low": low, "high": high}, max(low, 0.0)),),)

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``ensio predict --json``."""
        refused = self.gain_s is None
        return {
            "run": self.run,
            "remedy": self.remedy,
            "gain_s": None if self.gain_s is None else list(self.gain_s),
            "median_s": None if self.gain_s is None else sum(self.gain_s) / 2,
            "level": LEVEL,
            "finding": self.finding or None,
            "assumptions": "" if refused else sentence(self.assumption),
            "refused": str(self).strip() if refused else None,
        }


def predict(
    found: Diagnosis, remedy: str, by_calls: tuple[float, float] | str, calibration: str = ""
) -> PredictionAnswer:
    """Predict what a remedy gains.

    Parameters
    ----------
    found : Diagnosis
        Of the run. Its gain of the finding that the remedy mends is the prediction, unless there is a
        calibration.
    by_calls : (float, float) or str
        The same by the times of calls, or the call whose time is not known.
    calibration : str
        Path of the run that these times are of; ``""``: the run itself.
    """
    kind = remedy.partition("=")[0]
    for finding in found.findings:
        if finding.gain_s is not None and finding.trial.partition("=")[0] == kind and not calibration:
            return PredictionAnswer(run=found.run, remedy=remedy, gain_s=finding.gain_s, finding=finding.id)
    known = None if isinstance(by_calls, str) else by_calls
    unknown = by_calls if isinstance(by_calls, str) else ""
    return PredictionAnswer(
        run=found.run, remedy=remedy, gain_s=known, calibration=calibration, unknown=unknown
    )
