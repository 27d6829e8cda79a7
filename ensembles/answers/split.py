"""The time of the slowest task if its calls are split into smaller ones."""

from __future__ import annotations

from dataclasses import dataclass

from ensembles.faces.answer import Answer
from ensembles.model.statement import Interval, Part, Statement, Table
from ensembles.statistics.sums.split import Split


@dataclass(frozen=True)
class SplitAnswer(Split, Answer):
    """The predicted gain by splitting calls as text, table and HTML."""

    question = "split"

    @property
    def parts(self) -> tuple[Part, ...]:
        """A title, a table with a row for each k, and what was assumed."""
        if self.refused:
            return ((Statement("tail.refused", {"why": self.refused}),),)
        unit = "s/MiB" if self.per == "MiB" else "s"
        units = {"calls": "count", "median": unit, f"{self.level * 100:g} % interval": unit, "mean": unit}
        units |= dict.fromkeys(("speedup", "at most", "spread"), "to 0.01")
        rows = [
            (
                one.calls,
                "-" if one.median_s is None else one.median_s,
                "-" if one.low_s is None or one.high_s is None else Interval(one.low_s, one.high_s),
                "-" if one.mean_s is None else one.mean_s,
                "-" if one.speedup is None else one.speedup,
                one.most_speedup,
                one.spread,
            )
            for one in self.splits
        ]
        said = [Statement("split.legend"), Statement("split.assumes", {"assumed": self.assumes})]
        refused = (one for one in self.splits if one.refused)
        said += (Statement("split.refused", {"calls": one.calls, "why": one.refused}) for one in refused)
        head = Statement("split.what", {"tasks": self.tasks, "calls": self.n})
        return ((head,), Table.of_rows("row", units, rows, together=(3,)), tuple(said))
