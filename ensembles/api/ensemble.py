"""`Ensemble`, whose estimates show themselves as the commands print them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from ensembles.ensemble import ensemble

if TYPE_CHECKING:
    from ensembles.answers.modes import ModesAnswer
    from ensembles.answers.split import SplitAnswer
    from ensembles.answers.tail import BacktestAnswer, TailAnswer

Arguments = ParamSpec("Arguments")
Shown = TypeVar("Shown")


def _shown(
    estimate: Callable[Concatenate[ensemble.Ensemble, Arguments], Any], answer: Callable[[], type[Shown]]
) -> Callable[Concatenate[ensemble.Ensemble, Arguments], Shown]:
    """Let a method return its estimate as the answer that shows it."""

    @wraps(estimate)
    def shown(self: ensemble.Ensemble, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Shown:
        return answer()(**vars(estimate(self, *args, **kwargs)))

    return shown


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

    modes = _shown(ensemble.Ensemble.modes, _modes)
    tail = _shown(ensemble.Ensemble.tail, _tail)
    backtest = _shown(ensemble.Ensemble.backtest, _backtest)
    split = _shown(ensemble.Ensemble.split, _split)

    @classmethod
    def _of(cls, found: ensemble.Ensemble) -> Self:
        """Make this ensemble of one that a run has."""
        mine = cls.__new__(cls)
        vars(mine).update(vars(found))
        return mine
