"""`Ensemble`, whose estimates show themselves as the commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ensembles.ensemble import ensemble
from ensembles.faces.answer import shown_as

if TYPE_CHECKING:
    from ensembles.answers.modes import ModesAnswer
    from ensembles.answers.split import SplitAnswer
    from ensembles.answers.tail import BacktestAnswer, TailAnswer


def _modes() -> type[ModesAnswer]:
    from ensembles.answers.modes import ModesAnswer

    return ModesAnswer


def _tail() -> type[TailAnswer]:
    from ensembles.answers.tail import TailAnswer

    return TailAnswer


def _backtest() -> type[BacktestAnswer]:
    from ensembles.answers.tail import BacktestAnswer

    return BacktestAnswer


def _split() -> type[SplitAnswer]:
    from ensembles.answers.split import SplitAnswer

    return SplitAnswer


class Ensemble(ensemble.Ensemble):
    __doc__ = ensemble.Ensemble.__doc__

    modes = shown_as(ensemble.Ensemble.modes, _modes)
    tail = shown_as(ensemble.Ensemble.tail, _tail)
    backtest = shown_as(ensemble.Ensemble.backtest, _backtest)
    split = shown_as(ensemble.Ensemble.split, _split)

    @classmethod
    def _of(cls, found: ensemble.Ensemble) -> Self:
        """Make this ensemble of one that a run has."""
        mine = cls.__new__(cls)
        vars(mine).update(vars(found))
        return mine
