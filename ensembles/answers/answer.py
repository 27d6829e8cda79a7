"""What all answers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ensembles.faces.html import answer_html
from ensembles.faces.text import answer_text
from ensembles.model.statement import Paragraph, Statement, Table


@dataclass(frozen=True, kw_only=True)
class Answer(ABC):
    """The answer to a question about a run: immutable data in SI units, which every face shows.

    Attributes
    ----------
    question : str
        Name of the command that asks it.
    run : str
        Path of the run.
    notes : tuple of str
        What may be missing or wrong in what was recorded.
    parts : tuple of (Table or Paragraph)
        Tables and statements, in the order in which they are shown.
    """

    question: ClassVar[str]

    run: str = ""
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    @abstractmethod
    def parts(self) -> tuple[Table | Paragraph, ...]: ...

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Table))

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements among the parts, those about most lost time first."""
        said = (each for part in self.parts if not isinstance(part, Table) for each in part)
        return tuple(sorted(said, key=lambda each: -each.loss_s))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the keys of the command's JSON."""

    def __str__(self) -> str:
        return answer_text(self.parts)

    def _repr_html_(self) -> str:
        return answer_html(self.parts, 20, f"ensio {self.question}")
