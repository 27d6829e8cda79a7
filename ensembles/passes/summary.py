"""The protocol of everything that is computed from the events of a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from ensembles.model.events import Events
    from ensembles.passes.memory import Budget


class Requirement(IntEnum):
    """What a summary requires of the chunks that it is given; each level includes those before it."""

    ANY_ORDER = 0
    """Nothing: several summaries, merged later, may hold the calls of one rank."""
    RANK_ORDER = 1
    """One summary is given all calls of a rank. Ranks come in order, and the calls of a thread in order of
    completion."""
    BY_RANK = 2
    """A chunk holds all calls of each of its ranks."""


ANY_ORDER, RANK_ORDER, BY_RANK = Requirement


class Summary(Protocol):
    """A mergeable summary of events: it is filled from parts of a run, and the parts are merged.

    Classes derive from this protocol, and so take over the methods that they do not need to change.

    Attributes
    ----------
    columns : tuple of str or None
        Columns of events that the summary needs; None, the default: all.
    requires : Requirement
        What the chunks must be like; default: `RANK_ORDER`.
    """

    columns: tuple[str, ...] | None = None
    requires: Requirement = RANK_ORDER

    @abstractmethod
    def add(self, chunk: Events) -> None:
        """Add events. A summary that keeps a column copies it, for its memory is used again."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add what a summary of higher ranks holds."""

    @abstractmethod
    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """The contents by name."""

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        """Turn the chunks of a part of the run into those that are added; default: the same ones.

        Parameters
        ----------
        chunks : iterator of Events
            To be read lazily.
        budget : Budget
            Memory that the pass may take.
        path : str
            Path of the run, for messages.
        """
        return chunks

    def finalize(self) -> None:
        """Complete the summary, when all events of a part were added; default: nothing to do."""
        return


S = TypeVar("S", bound=Summary)


def ignoring_run(make: Callable[[], S]) -> Callable[[Any], S]:
    """A factory for `Run.summarize` of a summary that needs no information about the run.

    Parameters
    ----------
    make : callable
        Makes an empty summary: a class or function of a module, or a partial of one.
    """
    return partial(_make_ignoring_run, make)


def _make_ignoring_run(make: Callable[[], S], _: object) -> S:
    return make()
