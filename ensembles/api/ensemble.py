"""`Ensemble`, whose estimates show themselves as the commands print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from ensembles.ensemble import ensemble

if TYPE_CHECKING:
    from ensembles.answers.modes import ModesAnswer
    from ensembles.answers.split import SplitAnswer
    from ensembles.answers.tail import BacktestAnswer, TailAnswer


class Ensemble(ensemble.Ensemble):
    __doc__ = ensemble.Ensemble.__doc__

    @classmethod
    def _of(cls, found: ensemble.Ensemble) -> Self:
        """Make this ensemble of one that a run has."""
        mine = cls.__new__(cls)
        vars(mine).update(vars(found))
        return mine

    def modes(
        self,
        *,
        limit_bytes_per_s: float | None = None,
        tasks: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        resolution_s: float | None = None,
        size: int = 200,
    ) -> ModesAnswer:
        from ensembles.answers.modes import ModesAnswer

        found = super().modes(
            limit_bytes_per_s=limit_bytes_per_s,
            tasks=tasks,
            level=level,
            seed=seed,
            resolution_s=resolution_s,
            size=size,
        )
        return ModesAnswer(**vars(found))

    def tail(self, tasks: int, level: float = 0.9, *, seed: int = 0) -> TailAnswer:
        from ensembles.answers.tail import TailAnswer

        return TailAnswer(**vars(super().tail(tasks, level, seed=seed)))

    def backtest(self, tasks: int | None = None, level: float = 0.9, *, seed: int = 0) -> BacktestAnswer:
        from ensembles.answers.tail import BacktestAnswer

        return BacktestAnswer(**vars(super().backtest(tasks, level, seed=seed)))

    def split(
        self, calls: Sequence[int] = (1, 2, 4, 8), tasks: int | None = None, level: float = 0.9
    ) -> SplitAnswer:
        from ensembles.answers.split import SplitAnswer

        return SplitAnswer(**vars(super().split(calls, tasks, level)))

    for each in (modes, tail, backtest, split):
        each.__doc__ = getattr(ensemble.Ensemble, each.__name__).__doc__
    del each
