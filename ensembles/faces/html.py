"""Answers as HTML, for reports and notebooks: every text is escaped, nothing is loaded."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ensembles.faces.words import cell, sentence
from ensembles.model.notebook_html import bars_svg, facts_html
from ensembles.model.statement import Bars, Facts, Part, Table
from ensembles.model.units import count_text, seconds_text


def answer_html(
    parts: Iterable[Part], limit: int | None, more: str, colours: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Format the parts of an answer, one below the other.

    `colours`: of the swatches of rows, by the text of their first cell.
    """
    return "\n".join(_part(part, limit, more, colours) for part in parts)


def _part(part: Part, limit: int | None, more: str, colours: Mapping[str, str]) -> str:
    if isinstance(part, Table):
        return _table(part, limit, more, colours)
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


def _table(table: Table, limit: int | None, more: str, colours: Mapping[str, str]) -> str:
    """Format the rows that are shown, and count the others."""
    shown, left_out = table.shown(limit)
    if not shown:
        return ""
    head = "".join(f"<th>{html.escape(column.header)}</th>" for column in table.columns)
    rows = []
    for row in shown:
        title = f' title="{html.escape(sentence(table.hover[row]))}"' if table.hover else ""
        texts = [html.escape(cell(column.values[row], column.unit)) for column in table.columns]
        cells = [f'<td class="wrapped">{text}' if len(text) > 48 else f"<td>{text}" for text in texts]
        if colour := colours.get(texts[0]):
            cells[0] = f'<td><span class="swatch" style="background:{colour}"></span>{texts[0]}'
        rows.append(f"<tr{title}>{'</td>'.join(cells)}</td></tr>")
    parts = [f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"]
    if left_out:
        parts.append(f'<p class="under">{count_text(left_out, f"more {table.noun}")}: {more} lists all.</p>')
    return f'<div class="scroll">{"".join(parts)}</div>'
