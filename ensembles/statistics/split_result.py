"""What splitting calls would do: the result of `ensembles.statistics.split`."""

from __future__ import annotations

from dataclasses import dataclass

from ensembles.statistics.dependence import Dependence
from ensembles.units import seconds_text


@dataclass(frozen=True)
class SplitTime:
    """The time of the slowest of N tasks that make `calls` calls each before the barrier.

    Attributes
    ----------
    calls : int
    median_s, low_s, high_s : float
        Median and central interval of the time until the last task is done, seconds.
    mean_s : float
        Its mean over many phases.
    speedup : float
        Mean of one call over this mean: how much less time many such phases take together.
    independent_speedup : float
        The same if calls had nothing in common: more than that is not to be expected.
    spread : float
        Coefficient of variation of a single task's sum.
    error_s : float
        What the grid may add to or take from the times, seconds.
    """

    calls: int
    median_s: float
    low_s: float
    high_s: float
    mean_s: float
    speedup: float
    independent_speedup: float
    spread: float
    error_s: float


@dataclass(frozen=True)
class Split:
    """What splitting calls would do.

    Attributes
    ----------
    tasks : int
        N.
    n : int
        Calls from which it is predicted.
    level : float
        Of the intervals.
    splits : tuple of SplitTime
    dependence : Dependence
    notes : tuple of str
        What the prediction does not know, in plain sentences.
    refused : str or None
        Why nothing can be said; then `splits` is empty.
    """

    tasks: int
    n: int
    level: float
    splits: tuple[SplitTime, ...]
    dependence: Dependence
    notes: tuple[str, ...]
    refused: str | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, per: str = "") -> str:
        """A table for people; `per` goes behind the units of time."""
        if self.refused:
            return f"cannot say: {self.refused}"
        from tabulate import tabulate

        def told(seconds: float) -> str:
            return seconds_text(seconds) + per

        rows = [
            (
                one.calls,
                told(one.median_s),
                told(one.low_s),
                told(one.high_s),
                told(one.mean_s),
                f"{one.speedup:.2f}",
                f"{one.independent_speedup:.2f}",
                f"{one.spread:.2f}",
            )
            for one in self.splits
        ]
        interval = f"{self.level * 100:g} % from"
        head = ("calls", "median", interval, "to", "mean", "speedup", "at most", "spread")
        lags = self.dependence.lags
        by_phase = self.dependence.of_phase
        alike = f"{by_phase:.2f} by their phase, {lags[0]:.2f} by their task" if len(lags) else "not known"
        return "\n".join(
            [
                f"The slowest of {self.tasks:,} tasks, each of {self.n:,} calls being split into smaller "
                "ones:",
                "",
                tabulate(rows, head, stralign="right", disable_numparse=True),
                "",
                '"at most" is the speedup if calls had nothing in common; spread is standard deviation over',
                f"mean of one task's time. Correlation of calls: {alike}.",
            ]
        )

    def to_json(self) -> dict[str, object]:
        """The object of ``ensio split --json``."""
        return {
            "tasks": self.tasks,
            "n": self.n,
            "level": self.level,
            "splits": [vars(split) for split in self.splits],
            "dependence": {
                "phase": self.dependence.phase,
                "task": float(self.dependence.lags[0]) if len(self.dependence.lags) else None,
            },
            "notes": list(self.notes),
            "refused": self.refused,
        }
