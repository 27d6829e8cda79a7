"""The tables of the explorer: rows of calls, ranks, findings, phases and call indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.widgets import DataTable, HTMLTemplateFormatter, NumberFormatter, TableColumn

from ensembles.answers.diagnose import gain_of
from ensembles.diagnosis.finding import Diagnosis
from ensembles.faces.words import cell
from ensembles.structure.phases.inner_waits import idle_cells
from ensembles.structure.phases.table import PhaseTotals
from ensembles.viz.common.style import NUMBERS_JS

TIME = f"<span><% {NUMBERS_JS} print(instant_text(value)); %></span>"
"""Format of a column of moments in seconds: of all rows with the same unit."""

LASTED = f"<span><% {NUMBERS_JS} print(time_text(value)); %></span>"
"""Format of a column of durations in seconds, as `ensembles.model.units.seconds_text` writes them."""

BYTES = f"<span><% {NUMBERS_JS} print(value < 0 ? 'none' : bytes_text(value)); %></span>"
"""Format of a column of bytes; -1: none."""

MOVED = f"<span><% {NUMBERS_JS} print(value < 0 ? error || 'none' : bytes_text(value)); %></span>"
"""The same, with the name of the error of a failed call: column ``error``."""

TEXT = """<span title="<%- value %>"><%- value %></span>"""
"""Format of a column of texts that may be longer than their cell: hovering shows them whole."""

PATH = """<span title="<%- value %>" style="display: block; overflow: hidden; text-overflow: ellipsis;
direction: rtl; text-align: left"><bdi dir="ltr"><%- value %></bdi></span>"""
"""Format of a column of paths: of those that are longer than their cell, the end is seen."""

Column = tuple[str, str, str | None, int]
"""Field, title, format and width in pixels; in a narrow page all columns shrink. Formats: None (numbers and
short texts), `TEXT`, `PATH`, `TIME`, `LASTED`, `BYTES`, `MOVED`, or a format of numbers."""

_SEVERAL_LINES = ".slick-cell { white-space: normal; line-height: 1.25; }"
_MOST_LINES = 4

LINES = "rows as high as their texts"
"""Tag of tables that ``rows.js`` fits, before the most rows that they show."""

_FOCUSED = ".slick-viewport:focus-visible { outline: 2px solid #0b5cad !important; outline-offset: -2px; }"
"""The one part of a table that takes the focus by the tabulator key (``keys.js``)."""

SLOWEST: Sequence[Column] = (
    ("rank", "rank", None, 55),
    ("thread", "thread", None, 55),
    ("call", "call", TEXT, 90),
    ("start_s", "start", TIME, 105),
    ("duration_s", "duration", LASTED, 85),
    ("moved_bytes", "moved", MOVED, 90),
    ("offset_bytes", "offset", BYTES, 95),
    ("file", "file", PATH, 230),
)
RANKS: Sequence[Column] = (
    ("rank", "rank", None, 60),
    ("calls", "calls", "0,0", 70),
    ("time_s", "time in calls", LASTED, 95),
    ("slowest_s", "slowest", LASTED, 85),
)
FINDINGS: Sequence[Column] = (
    ("id", "finding", TEXT, 125),
    ("severity", "severity", TEXT, 75),
    ("title", "what happens", TEXT, 370),
    ("gain", "without it", TEXT, 305),
)
PHASES: Sequence[Column] = (
    ("phase", "phase", TEXT, 75),
    ("start_s", "start", TIME, 85),
    ("time_s", "time", LASTED, 70),
    ("calls", "calls", "0,0", 65),
    ("idle", "idle", None, 75),
    ("share", "share", None, 50),
    ("last", "last: rank, call", TEXT, 125),
)
ORDINALS: Sequence[Column] = (
    ("ordinal", "call index", None, 80),
    ("calls", "calls", "0,0", 70),
    ("median_s", "median", LASTED, 90),
    ("slowest_s", "slowest", LASTED, 90),
)


class Table:
    """A table whose rows can be chosen."""

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        chosen: Callable[[int], None] | None = None,
        height: int = 250,
        *,
        several_lines: bool = False,
    ) -> None:
        self._columns, self._has_lines = columns, several_lines
        self.source = ColumnDataSource({field: [] for field, *_ in columns})
        self.widget = DataTable(
            source=self.source,
            columns=[_column(*each) for each in columns],
            index_position=None,
            reorderable=False,
            height=height,
            sizing_mode="stretch_width",
            name=name,
            row_height=_row_height(_MOST_LINES) if several_lines else 25,
            stylesheets=[_FOCUSED, *([_SEVERAL_LINES] if several_lines else [])],
        )
        # Bokeh draws other rows only if there are more or fewer of them.
        drawn = CustomJS(args={"view": self.widget.view}, code="view.change.emit()")
        self.source.js_on_change("data", drawn)
        self._chosen = chosen
        if chosen is not None:
            self.source.selected.on_change("indices", self._choose)

    def _choose(self, attribute: str, old: list[int], new: list[int]) -> None:
        # The rows may have changed since the page was told of them.
        rows = min((len(column) for column in self.source.data.values()), default=0)
        if new and new[0] < rows and self._chosen is not None:
            self._chosen(new[0])

    def fill(self, data: dict[str, Any]) -> None:
        """Show other rows. The one that was chosen would else be another one."""
        before, self.source.data = self.source.data, data
        if any(list(column) != list(before.get(name, ())) for name, column in data.items()):
            self.choose_none()

    def fit(self, most: int) -> None:
        """Make the table as high as its rows, of at most so many, and rows as high as their texts."""
        rows = max(1, min(most, *(len(column) for column in self.source.data.values())))
        if self._has_lines:
            self.widget.row_height = _row_height(self._lines())
            self.widget.tags = [LINES, most]
        self.widget.height = 30 + rows * self.widget.row_height

    def _lines(self) -> int:
        """Return the most lines of a cell in a page of 700 pixels."""
        whole = sum(width for *_, width in self._columns)
        most = 1
        # As in rows.js: pixels of the table, beside a text, of a character.
        for field, _, how, width in self._columns:
            characters = (660 * width / whole - 12) / 6.1
            texts = self.source.data[field] if how == TEXT else ()
            most = max([most, *(math.ceil(len(text) / characters) for text in texts)])
        return min(most, _MOST_LINES)

    def choose_none(self) -> None:
        """Let no row be chosen."""
        if self.source.selected.indices:
            self.source.selected.indices = []


def _row_height(lines: int) -> int:
    return max(25, 8 + 15 * lines)


def finding_columns(found: Diagnosis) -> dict[str, list[str]]:
    """Return the columns of the table of findings: of gains what fits into two lines."""
    return {
        "id": [finding.id for finding in found.findings],
        "severity": [
            "too small to matter" if found.is_small(finding) else finding.severity
            for finding in found.findings
        ],
        "title": [
            f"{finding.title} (explained by {cause})" if (cause := found.cause_of(finding)) else finding.title
            for finding in found.findings
        ],
        "gain": [cell(gain_of(finding, is_whole=False), "") for finding in found.findings],
    }


def phase_columns(phases: Sequence[PhaseTotals], tasks: int) -> dict[str, list[Any]]:
    """Return the columns of the table of phases of a run of so many tasks, as ``ensio phases`` has them.

    ``idle`` and ``share`` are empty if the run does not show that tasks wait for each other.
    """
    idle = [idle_cells((each,), tasks) for each in phases]
    return {
        "phase": [f"{each.phase} {each.name or ''}".strip() for each in phases],
        "start_s": [each.start_s for each in phases],
        "time_s": [each.time_s for each in phases],
        "calls": [each.calls for each in phases],
        "idle": [cell(time_s, "s") for time_s, _ in idle],
        "share": [cell(share, "share") for _, share in idle],
        "last": [f"{each.slowest_task} {each.reason}" for each in phases],
    }


def _column(field: str, title: str, how: str | None, width: int) -> TableColumn:
    given: dict[str, Any] = {"field": field, "title": title, "width": width}
    if how in (TIME, LASTED, BYTES, MOVED, TEXT, PATH):
        given["formatter"] = HTMLTemplateFormatter(template=how)
    elif how is not None:
        given["formatter"] = NumberFormatter(format=how)
    return TableColumn(**given)
