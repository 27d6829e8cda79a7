"""Phases as a Gantt chart: when each began and ended, its I/O, and the wait for its last task."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from ensembles.answers.phases import PhasesAnswer, answer_phases, last_of
from ensembles.faces.words import sentence
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.run.run import Run
from ensembles.structure.phases.table import PhaseTotals
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.style import COLOURS, NEUTRAL, READS_AND_WRITES

_KINDS = {
    "write": ("writes", COLOURS["write"]),
    "read": ("reads", COLOURS["read"]),
    "both": ("reads and writes", READS_AND_WRITES),
    "sync": ("mostly syncs", COLOURS["sync"]),
    "none": ("no data moved", COLOURS["metadata"]),
}
"""Legend entry and colour of the kinds of phases, by the data that moved unless syncs take most I/O time."""


@of_several
def phases(data: Any, *, title: str | None = None, x_range: Range1d | None = None) -> figure:
    """Draw the phases of a run as a Gantt chart, one row each.

    The colour is that of the data that moved, or that of syncs if these took more than half of the time in
    I/O. The coloured part of a bar is the mean time until a task's last I/O call of the phase returned. The
    grey part is the mean time from there to the end of the phase, in which a task waits for the slowest one.

    Parameters
    ----------
    data : Run, or PhasesAnswer
        A run that keeps all calls. Of more than 40 phases, those with the most waiting are drawn.
    title : str, optional
    x_range : Range1d, optional
        Time axis in seconds, to share with another figure.

    Returns
    -------
    figure

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        The phases of the run are not known, because not every call is an event.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.phases(en.open("ensio-ior"))
    >>> figure.title.text
    '12 phases'
    """
    if isinstance(data, Run):
        data = answer_phases(data)
    if not isinstance(data, PhasesAnswer):
        raise TypeError(f"a run or a PhasesAnswer is needed, not {type(data).__name__}")
    totals = [row for row in data.phases if row.calls]
    is_known = data.why_no_idle is None
    shown = sorted(totals, key=lambda row: -row.lost_s if is_known else -row.time_s)[:40]
    shown.sort(key=lambda row: row.phase)
    rows = max(len(shown), 1)
    ends_ns = [
        round(1e9 * end)
        for end in (
            min([row.start_s for row in totals], default=0),
            max([row.end_s for row in totals], default=0),
        )
    ]
    head = count_text(len(totals), "phase")
    if len(totals) > len(shown):
        head = f"{len(shown)} of {head}: those with the most waiting for the slowest task"
        if not is_known:
            head = f"{len(shown)} of {count_text(len(totals), 'phase')}: the longest ones"
    fig = draw.new_figure(
        title or head,
        130 + max(18, 30 - rows // 4) * rows,
        x_range=x_range or draw.time_range(*ends_ns),
        y_range=Range1d(start=rows - 0.5, end=-0.5),
        name="phases",
    )
    draw.label_time_axis(fig)
    fig.ygrid.visible = False
    if not shown:
        fig.yaxis.visible = False
        draw.annotate_empty(fig, "no phase: the run has no I/O")
        return fig
    fig.yaxis.ticker = list(range(rows))
    fig.yaxis.major_label_overrides = {number: _name(row) for number, row in enumerate(shown)}
    line, title_line = draw.characters_beside(map(_name, shown))
    draw.retitle(fig, title or head, title_line)
    lost_s = sum(row.lost_s for row in totals)
    draw.subtitle(fig, f"Evidence: {data.found.sentence}.", line)
    waited = f"Tasks waited {seconds_text(lost_s)} in all for the slowest task of each phase."
    # The sentence that is added last is the highest.
    inside = data.waiting
    if inside is not None and inside.time_s is not None:
        draw.subtitle(
            fig,
            f"They waited {seconds_text(inside.time_s)} in collective calls of MPI before their last I/O "
            "call of a phase; this time is in the coloured parts.",
            line,
        )
    draw.subtitle(fig, sentence(data.why_no_idle) if data.why_no_idle else waited, line)
    _draw(fig, shown, data.syncs)
    return fig


def _name(row: PhaseTotals) -> str:
    name = draw.plain(row.name or "")
    name = name if len(name) <= 20 else name[:19] + "…"
    return f"{row.phase} {name}" if row.name else str(row.phase)


def _kind(row: PhaseTotals, syncs: Collection[int]) -> str:
    if row.phase in syncs:
        return "sync"
    if row.bytes_read and row.bytes_written:
        return "both"
    return "write" if row.bytes_written else "read" if row.bytes_read else "none"


def _draw(fig: figure, shown: list[PhaseTotals], syncs: Collection[int]) -> None:
    items = []
    for kind, (label, colour) in _KINDS.items():
        mine = [(number, row) for number, row in enumerate(shown) if _kind(row, syncs) == kind]
        if not mine:
            continue
        busy_end_s = [row.end_s - _known(row.lost_s) / row.tasks for _, row in mine]
        source = ColumnDataSource(
            {
                "y": [number for number, _ in mine],
                "start": [row.start_s for _, row in mine],
                "busy_end": busy_end_s,
                "end": [row.end_s for _, row in mine],
                "phase": [_name(row) for _, row in mine],
                "time": [seconds_text(row.time_s) for _, row in mine],
                "work": [_work(row) for _, row in mine],
                "waited": [
                    "not known"
                    if math.isnan(row.lost_s)
                    else f"{seconds_text(row.lost_s / row.tasks)} a task, {share_text(row.lost_share)}"
                    for _, row in mine
                ],
                "slowest": [sentence(last_of(row)) for _, row in mine],
            }
        )
        bar = fig.hbar(y="y", height=0.7, left="start", right="busy_end", source=source, color=colour)
        wait = fig.hbar(y="y", height=0.7, left="busy_end", right="end", source=source, color=COLOURS["wait"])
        # A phase that is shorter than a pixel stays visible.
        fig.scatter(x="start", y="y", source=source, marker="dash", angle=1.5708, size=12, line_color=colour)
        items.append(draw.legend_item(label, bar))
        draw.add_hover(
            fig,
            [bar, wait],
            [
                ("phase", "@phase"),
                ("from", "@start{at}"),
                ("time", "@time"),
                ("I/O", "@work"),
                ("waiting", "@waited"),
                ("slowest", "@slowest"),
            ],
        )
    grey = fig.quad(left=[0], right=[0], bottom=[0], top=[0], color=COLOURS["wait"], line_color=None)
    items.append(draw.legend_item("mean wait for the slowest task", grey))
    draw.horizontal_legend(fig, items)
    fig.yaxis.axis_label = "phase"
    fig.yaxis.major_label_text_color = NEUTRAL["text"]


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _work(row: PhaseTotals) -> str:
    parts = [f"{count_text(row.calls, 'call')} of {count_text(row.tasks, 'task')}"]
    parts += [f"{bytes_text(row.bytes_read)} read"] if row.bytes_read else []
    parts += [f"{bytes_text(row.bytes_written)} written"] if row.bytes_written else []
    return ", ".join(parts)
