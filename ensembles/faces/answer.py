"""What all answers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ensembles.faces.text import answer_text
from ensembles.model.statement import Part, Statement, Table

MOST_LISTED, MOST_ROWS = 5, 8
"""Entries of a list, and rows of a table or picture, that a screen has."""

SMALL_PART, NOTABLE_PART = 0.01, 0.1
"""Parts of a whole: below the first, a text leaves a number out; from the second on, it changes an answer."""

Arguments = ParamSpec("Arguments")
Shown = TypeVar("Shown")


def shown_as(
    computed: Callable[Arguments, Any], answer: Callable[[], Callable[..., Shown]]
) -> Callable[Arguments, Shown]:
    """Let a function return its result as the answer that shows it."""

    @wraps(computed)
    def shown(*args: Arguments.args, **options: Arguments.kwargs) -> Shown:
        return answer()(**vars(computed(*args, **options)))

    return shown


class Answer(ABC):
    """The answer to a question about runs: immutable data in SI units, which every face shows.

    Attributes
    ----------
    question : str
        Name of the command that asks it.
    notes : tuple of str
        What may be missing or wrong in what was recorded, and what was chosen or left out.
    """

    question: str
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Tables and statements, in the order in which they are shown."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the keys of the command's JSON."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Table))

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements among the parts, those about most lost time first."""
        said = (each for part in self.parts if isinstance(part, tuple) for each in part)
        return tuple(sorted(said, key=lambda each: -each.loss_s))

    def __str__(self) -> str:
        return answer_text(self.parts)

    def _repr_html_(self) -> str:
        from ensembles.faces.html import answer_html

        return answer_html(self.parts, 20, f"ensio {self.question}")


@dataclass(frozen=True)
class PlainAnswer(Answer):
    """An answer whose parts are made at once.

    Attributes
    ----------
    made : tuple of Part
        The parts.
    values : mapping of str to object
        The keys of the command's JSON.
    """

    question: str
    made: tuple[Part, ...] = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """Tables and statements, in the order in which they are shown."""
        return self.made

    def to_json(self) -> dict[str, Any]:
        """Return the keys of the command's JSON."""
        return dict(self.values)
