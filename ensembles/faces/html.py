"""Answers as HTML, for reports and notebooks: every text is escaped, nothing is loaded."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ensembles.faces.words import cell, sentence
from ensembles.model.notebook_html import bars_svg, facts_html
from ensembles.model.statement import Bars, Facts, Part, Table
from ensembles.model.units import count_text, seconds_text


def answer_html(parts: Iterable[Part], limit: int, more: str) -> str:
    """Format the parts of an answer, one below the other."""
    return "\n".join(_part(part, limit, more) for part in parts)


def _part(part: Part, limit: int, more: str) -> str:
    if isinstance(part, Table):
        return _table(part, limit, more)
    if isinstance(part, Bars):
        return _bars(part)
    if isinstance(part, Facts):
        title = "" if part.title is None else f'<p class="under">{html.escape(sentence(part.title))}</p>'
        return title + facts_html((label, cell(said, "")) for label, said in part.rows)
    return "\n".join(f'<p class="under">{html.escape(sentence(each))}</p>' for each in part)


def _bars(part: Bars) -> str:
    """Draw the histogram, without marks."""
    found = part.histogram(8)  # bins per octave
    low, high = (seconds_text(float(found.edges_s[end])) for end in (0, -1))
    return bars_svg(found.amounts.tolist(), low, high, sentence(part.caption))


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
