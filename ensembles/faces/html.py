"""Answers as HTML, for reports and notebooks: every text is escaped, nothing is loaded."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ensembles.faces.words import cell, sentence
from ensembles.model.statement import Paragraph, Table
from ensembles.model.units import count_text


def answer_html(parts: Iterable[Table | Paragraph], limit: int, more: str) -> str:
    """Format the parts of an answer, one below the other.

    Parameters
    ----------
    parts : iterable of Table or Paragraph
    limit : int
        Most rows of a table.
    more : str
        What shows all rows.
    """
    return "\n".join(
        _table(part, limit, more)
        if isinstance(part, Table)
        else "\n".join(f'<p class="under">{html.escape(sentence(each))}</p>' for each in part)
        for part in parts
    )


def _table(table: Table, limit: int, more: str) -> str:
    """Format the rows that are shown, and count the others."""
    shown, left_out = table.shown(limit)
    if not shown:
        return ""
    head = "".join(f"<th>{html.escape(column.header)}</th>" for column in table.columns)
    rows = []
    for row in shown:
        title = f' title="{html.escape(sentence(table.hover[row]))}"' if table.hover else ""
        cells = (html.escape(cell(column.values[row], column.unit)) for column in table.columns)
        rows.append(f"<tr{title}><td>{'</td><td>'.join(cells)}</td></tr>")
    parts = [f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"]
    if left_out:
        parts.append(f'<p class="under">{count_text(left_out, f"more {table.noun}")}: {more} lists all.</p>')
    return f'<div class="scroll">{"".join(parts)}</div>'
