"""Tables of texts for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate


def simple_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table; the first column is aligned to the left, the others to the right.

    Parameters
    ----------
    headers : sequence of str
    rows : sequence of sequence of str

    Returns
    -------
    str

    Examples
    --------
    >>> from ensembles.cli.simple_table import simple_table
    >>> print(simple_table(("call", "count"), [("read", "12")]))
    call      count
    ------  -------
    read         12
    """
    align = ("left", *["right"] * (len(headers) - 1))
    text: str = tabulate(rows, headers, "simple", disable_numparse=True, colalign=align)
    return text
