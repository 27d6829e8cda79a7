"""The slowest of N tasks: predicted, and how often such predictions held."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ensembles.faces.answer import Answer
from ensembles.model.statement import Interval, LowerBound, Part, Statement, Table
from ensembles.model.units import share_text
from ensembles.statistics.extremes.backtest import Backtest
from ensembles.statistics.extremes.order_statistics import Equation1
from ensembles.statistics.extremes.tail import METHODS, UNSEEN_LEVEL, Tail

_OF_EXCHANGEABLE = ("within-reach", "beyond")


@dataclass(frozen=True)
class TailAnswer(Tail, Answer):
    """A prediction as text, table and HTML."""

    question = "tail"

    @property
    def parts(self) -> tuple[Part, ...]:
        """A title, a table with Equation 1 of the paper, and what the prediction is based on."""
        values = {"tasks": self.tasks, "calls": self.n, "phases": self.phases}
        head = Statement("tail.what", values | {"is_one": self.tasks == 1, "is_several": self.tasks > 1})
        unit = "s/MiB" if self.per == "MiB" else "s"
        units = {"": "", "median": unit, f"{100 * self.level:g} % interval": unit, "width": "ratio"}
        rows = [self._row("prediction", self)]
        if self.equation1 is not None:
            rows.append(self._row("Equation 1", self.equation1))
        table = Table.of_rows("row", {**units, "mean": unit}, rows)
        return ((head,), table, tuple(self._said(unit)))

    def _row(self, name: str, found: Tail | Equation1) -> tuple[Any, ...]:
        if found.low_s is None or found.median_s is None:
            return name, *"----"
        if found.high_s is None:
            # The median of the slowest of N lies among n calls if N < n log 2.
            reaches = self.tasks < self.n * math.log(2)
            median = found.median_s if reaches else LowerBound(found.median_s)
            return name, median, LowerBound(found.low_s), "-", LowerBound(found.mean_s or 0.0)
        mean = "-" if found.mean_s is None else found.mean_s
        width = found.high_s / found.low_s if found.low_s > 0 else "-"
        return name, found.median_s, Interval(found.low_s, found.high_s), width, mean

    def _said(self, unit: str) -> Iterator[Statement]:
        """Say what the prediction is based on, what it assumes, and how far it reaches."""
        if self.tasks == 1:
            yield Statement("tail.one_task")
        if self.refused is not None:
            yield Statement("tail.refused", {"why": self.refused})
        else:
            yield Statement("tail.method", {"method": METHODS[self.method]})
            if self.mean_s is None:
                yield Statement("tail.no_mean")
        if self.unsettled is not None:
            yield Statement("tail.unsettled", {"why": self.unsettled})
        following = self.next_phase
        if following is not None:
            interval = following.refused or Interval(following.low_s or 0.0, following.high_s or 0.0)
            known = {"coverage": following.coverage, "trials": following.trials, "width": following.width}
            yield Statement("tail.next", {**known, "interval": interval, "unit": unit})
        most = "-" if self.observed_max_s is None else self.observed_max_s
        yield Statement("tail.observed", {"max_s": most, "unit": unit})
        yield self._exchangeability()
        if 0.5 < self.unseen_share < 1:
            yield Statement("tail.few")
        elif 0 < self.unseen_share < 1:
            yield Statement("tail.unseen", {"one_in": round(1 / self.unseen_share), "level": UNSEEN_LEVEL})
        if self.equation1 is not None:
            is_bound, made = self.equation1.is_bound, self.equation1.phases
            some = made if made is not None and made < (self.phases or 0) and not is_bound else None
            values = {"is_bound": is_bound, "calls": self.n, "tasks": self.tasks, "phases": self.phases}
            yield Statement("tail.equation", values | {"made": some})

    def _exchangeability(self) -> Statement:
        if self.exchangeable is None:
            return Statement("tail.untested")
        if self.exchangeable:
            return Statement("tail.exchangeable")
        based_on_all = self.method in _OF_EXCHANGEABLE
        few, phases = self.effective_n < 0.9 * self.n, self.effective_phases
        alike = phases is not None and self.phases and phases < 0.9 * self.phases
        values = {
            "causes": ", ".join(f"{one.name} ({share_text(one.share)})" for one in self.broken_by),
            "is_based_on_all": based_on_all,
            "is_not": not based_on_all,
            "effective": round(self.effective_n) if few else None,
            "effective_phases": round(phases) if phases is not None and alike else None,
        }
        return Statement("tail.dependent", values)


@dataclass(frozen=True)
class BacktestAnswer(Backtest, Answer):
    """The coverage of predictions as text, table and HTML."""

    question = "tail"

    @property
    def parts(self) -> tuple[Part, ...]:
        """A title, a table of the kinds, and why there is no trial of some."""
        units = {"predicted": "", **dict.fromkeys(("coverage", "below", "above"), "share")}
        units |= {"width": "ratio", "trials": "count", "refused": "count"}
        rows = []
        for one in self.kinds:
            found = (one.coverage, one.below, one.above, one.width)
            shown = found if None not in found else "----"
            rows.append((one.kind, *shown, one.trials if shown is found else 0, one.refused))
        reasons = (Statement("backtest.reason", {"kind": one.kind, "why": one.reason}) for one in self.kinds)
        head = Statement("backtest.what", {"level": self.level})
        table = Table.of_rows("kind", units, rows)
        return ((head,), table, tuple(each for each in reasons if each.values["why"]))
