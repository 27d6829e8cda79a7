"""What a remedy gains: a recorded run, made again with the remedy and without it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ensembles.answers.diagnose import statement_of
from ensembles.answers.predict import LEVEL
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import FROM_SHARE
from ensembles.faces.answer import Answer
from ensembles.faces.words import sentence
from ensembles.model.statement import Part, Statement, Table

if TYPE_CHECKING:
    from ensembles.diagnosis.finding import Diagnosis, Gain
    from ensembles.run.run import Run

_LEAST_PAIRS = 5

_ACCOUNT = {"time": "", "recorded": "s", "made again": "s", "with the remedy": "s"}


@dataclass(frozen=True, kw_only=True)
class TrialAnswer(Answer):
    """A remedy, predicted and measured.

    Attributes
    ----------
    run, remedy : str
    recorded_s : (float, float)
        Time of the calls of the recorded run and between them, and what those that the remedy changes add.
    recorded_range_s : ((float, float), (float, float))
        What both could have been, by the spread of its parts.
    control_s : tuple of (float, float)
        The same of each replay without the remedy, in their order.
    pairs_s : tuple of (float, float)
        Replays without the remedy and with it, which followed each other.
    predicted : Gain or None
        That of the finding of ``ensio diagnose`` whose remedy it is; None: there is no such finding.
    finding : str
        Its id.
    same_contents : bool or None
        Whether both leave the same files; None: not compared.
    calls : (int, int)
        Of the recorded run that are made again, and with the remedy.
    entries : tuple of (str, float, float, float)
        Entries of the account in I/O: recorded, made again, and with the remedy, s.
    lost_s : float
        Time of calls on files of the recorded run that are not made again.
    conditions : mapping of str to str
        State of the cache and time between calls.
    """

    question: str = field(default="try", init=False)

    run: str
    remedy: str
    recorded_s: tuple[float, float]
    recorded_range_s: tuple[tuple[float, float], ...]
    control_s: tuple[tuple[float, float], ...]
    pairs_s: tuple[tuple[float, float], ...] = ()
    predicted: Gain | None = None
    finding: str = ""
    same_contents: bool | None = None
    calls: tuple[int, int] = (0, 0)
    entries: tuple[tuple[str, float, float, float], ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    lost_s: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def gain_s(self) -> float:
        """Median of the differences of pairs, s."""
        return statistics.median(without - with_it for without, with_it in self.pairs_s)

    @property
    def interval_s(self) -> tuple[float, float]:
        """Its interval, s (`median_interval`); no run is shortened by more than it takes."""
        low, high = median_interval([without - with_it for without, with_it in self.pairs_s])
        return low, min(high, statistics.median(without for without, _ in self.pairs_s))

    @property
    def refused(self) -> Statement | None:
        """Why nothing is said of the remedy; None: it is."""
        pairs_s: list[tuple[float, ...]] = [(without_s,) for without_s, _ in self.pairs_s]
        whole_s = self.recorded_range_s[:1]
        by_pairs = bool(pairs_s) and not stands_for(whole_s, pairs_s)
        if stands_for(self.recorded_range_s, self.control_s) and not by_pairs:
            return None
        which = int(not by_pairs and stands_for(whole_s, self.control_s))
        seen = [each[which] for each in (pairs_s if by_pairs else self.control_s)]
        recorded_s = self.recorded_s[which]
        values = {"recorded": recorded_s, "low": min(seen), "high": max(seen), "is_part": which > 0}
        is_other = self.lost_s < min(abs(recorded_s - each) for each in seen)
        lost_s = None if is_other else self.lost_s
        return Statement("try.refused", values | {"lost": lost_s, "is_other": is_other})

    @property
    def result(self) -> Statement:
        """What was predicted and measured."""
        (low, high), gain_s = self.interval_s, self.gain_s
        values = {
            "remedy": self.remedy,
            "predicted": None if self.predicted is None else statement_of(self.predicted),
            "gain": abs(gain_s),
            "how": "shorter" if gain_s >= 0 else "longer",
            "low": math.copysign(1, gain_s) * (low if gain_s >= 0 else high),
            "high": math.copysign(1, gain_s) * (high if gain_s >= 0 else low),
            "of": statistics.median(without for without, _ in self.pairs_s),
            "pairs": len(self.pairs_s),
            "is_seen": low > 0 or high < 0,
            "is_unseen": not (low > 0 or high < 0),
            "contents": "same contents" if self.same_contents else "OTHER CONTENTS",
        }
        return Statement("try.result", values, loss_s=max(gain_s, 0.0))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The result, how it was measured, and both accounts."""
        how = {"before": self.calls[0], "after": self.calls[1], "pairs": len(self.pairs_s)} | dict(
            self.conditions
        )
        head = (self.result,) if self.refused is None else (self.refused,)
        if not self.entries:
            return (head, (Statement("try.how", how),))
        number = middle_pair(self.pairs_s)
        without_s, with_s = self.pairs_s[number]
        said = Statement("try.account", {"number": number + 1, "without": without_s, "with": with_s})
        return (head, (Statement("try.how", how), said), Table.of_rows("entry", _ACCOUNT, list(self.entries)))

    def to_json(self) -> dict[str, Any]:
        """Return the keys of ``ensio try --json``."""
        is_known = self.refused is None
        return {
            "run": self.run,
            "with": self.remedy,
            "refused": None if self.refused is None else sentence(self.refused),
            "predicted_s": None if self.predicted is None else list(self.predicted[:2]),
            "finding": self.finding or None,
            "gain_s": list(self.interval_s) if is_known else None,
            "median_s": self.gain_s if is_known else None,
            "level": LEVEL,
            "recorded_s": self.recorded_s[0],
            "control_s": [whole_s for whole_s, _ in self.control_s],
            "pairs_s": [list(pair) for pair in self.pairs_s],
            "same_contents": self.same_contents,
            "calls": list(self.calls),
            "account": [
                {"id": name, "recorded_s": one, "replayed_s": two, "remedied_s": three}
                for name, one, two, three in self.entries
            ],
            **self.conditions,
            "notes": list(self.notes),
        }


def stands_for(recorded_s: Sequence[tuple[float, float]], control_s: Sequence[tuple[float, ...]]) -> bool:
    """Check whether replays, and their calls, take as long as in the run, by the spread of its parts.

    Differences that do not matter to the run do not count.
    """
    small_s = FROM_SHARE["warning"] * recorded_s[0][0]
    beside = zip(recorded_s, zip(*control_s, strict=True), strict=False)
    return all(low - small_s <= max(seen) and min(seen) <= high + small_s for (low, high), seen in beside)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Compute an interval of the median of a coverage of at least `LEVEL`.

    It lies between two order statistics. Fewer than five values have none: these are the ends.
    """
    from scipy.stats import quantile_test

    low, high = map(float, quantile_test(values, p=0.5).confidence_interval(LEVEL))
    return (min(values), max(values)) if math.isnan(low) or math.isnan(high) else (low, high)


def middle_pair(pairs: Sequence[tuple[float, float]]) -> int:
    """Return the index of the pair of median gain; of two, that of the lower gain."""
    gains = [without - with_it for without, with_it in pairs]
    return gains.index(statistics.median_low(gains))


def decides(values: Sequence[float]) -> bool:
    """Whether enough pairs show that the gain is not zero."""
    low, high = median_interval(values)
    return len(values) >= _LEAST_PAIRS and (low > 0 or high < 0)


def accounts_beside(
    recorded: Diagnosis, replayed: Run, remedied: Run
) -> tuple[tuple[str, float, float, float], ...]:
    """Put the entries in I/O of three accounts into rows, the longest first."""
    tables = []
    for found in (recorded, diagnose(replayed), diagnose(remedied)):
        entries = found.account.entries if found.account is not None else ()
        tables.append({each.id: (each.words, each.time_s) for each in entries if each.is_in_io})
    words = {name: said for table in reversed(tables) for name, (said, _) in table.items()}
    one, two, three = ({name: time_s for name, (_, time_s) in table.items()} for table in tables)
    rows = [
        (said, one.get(name, 0.0), two.get(name, 0.0), three.get(name, 0.0)) for name, said in words.items()
    ]
    return tuple(sorted(rows, key=lambda row: -max(row[1:])))
