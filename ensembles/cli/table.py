"""Tables of the commands: as narrow as their contents, for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


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
