"""Lists of results that notebooks show as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

from ensembles.model.notebook_html import table_html

T = TypeVar("T")


class Rows(list[T]):
    """A list that notebooks show as a table.

    Parameters
    ----------
    rows : iterable
    headers : sequence of str
        Headers of the table.
    cells : callable
        Gives the texts of the cells of a row.

    Examples
    --------
    >>> from ensembles.model.shown_rows import Rows
    >>> rows = Rows([("a", 1), ("b", 2)], ("name", "calls"), lambda row: (row[0], str(row[1])))
    >>> rows[1:]._repr_html_().count("<td")
    2
    """

    def __init__(
        self, rows: Iterable[T], headers: Sequence[str], cells: Callable[[T], Sequence[str]]
    ) -> None:
        super().__init__(rows)
        self._headers, self._cells = headers, cells

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Rows[T]: ...
    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return Rows(found, self._headers, self._cells) if isinstance(at, slice) else found

    def _repr_html_(self) -> str:
        return table_html(self._headers, map(self._cells, self))
