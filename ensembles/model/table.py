"""Tables of the commands: as narrow as their contents, for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ensembles.model.wrapped import WIDTH


def table_text(
    headers: Sequence[str], rows: Sequence[Sequence[object]], left: int | Collection[int] = 1
) -> str:
    """Format a table.

    Parameters
    ----------
    headers : sequence of str
    rows : sequence of sequences
    left : int or collection of int
        Columns that are aligned to the left: the first ones, or those with these indices. The others are
        aligned to the right.

    Returns
    -------
    str
        Lines without an end of line after the last.
    """
    import tabulate

    columns = range(left) if isinstance(left, int) else left
    align = ["left" if column in columns else "right" for column in range(len(headers))]
    padding, tabulate.MIN_PADDING = tabulate.MIN_PADDING, 0
    try:
        text: str = tabulate.tabulate(rows, headers, "simple", disable_numparse=True, colalign=align)
    finally:
        tabulate.MIN_PADDING = padding
    return text


def folded_table_text(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    left: int | Collection[int] = 1,
    together: Sequence[int] = (),
) -> str:
    """Format a table that is as wide as a terminal at most, if need be as several, one below the other.

    Parameters
    ----------
    headers : sequence of str
    rows : sequence of sequences
    left : int or collection of int
        As for `table_text`.
    together : sequence of int
        Numbers of columns, after the first, that are in one table if they fit into it; empty: one each.

    Returns
    -------
    str
        Each table begins with the first column. A table that has only one further column may be wider.

    Examples
    --------
    >>> from ensembles.model.table import folded_table_text
    >>> print(folded_table_text(["run", "x" * 50, "y" * 50], [["a", 1, 2]]).count("run"))
    2
    """
    left = range(left) if isinstance(left, int) else left
    whole = table_text(headers, rows, left)
    if text_width(whole) <= WIDTH:
        return whole

    def part(columns: Sequence[int]) -> str:
        chosen = [0, *columns]
        return table_text(
            [headers[at] for at in chosen],
            [[row[at] for at in chosen] for row in rows],
            [place for place, at in enumerate(chosen) if at in left],
        )

    tables: list[list[int]] = []
    at = 1
    for count in together or [1] * (len(headers) - 1):
        block = list(range(at, at + count))
        at += count
        fits = text_width(part(block)) <= WIDTH
        for columns in [block] if fits else [[column] for column in block]:
            if tables and text_width(part(tables[-1] + columns)) <= WIDTH:
                tables[-1] += columns
            else:
                tables.append(columns)
    return "\n\n".join(part(columns) for columns in tables)


def text_width(text: str) -> int:
    """Return the number of characters of the longest line of a text."""
    return max(map(len, text.split("\n")))
