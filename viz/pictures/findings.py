"""Bars of findings: the predicted gain of mending each cause, with its interval."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from ensembles.answers.diagnose import gain_of
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import SEVERITIES, Diagnosis, Finding
from ensembles.faces.words import cell
from ensembles.model.units import share_text
from ensembles.run.run import Run
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.figures import annotate_empty, horizontal_legend, legend_item, new_figure, plain
from ensembles.viz.common.style import NEUTRAL, SEVERITY, scaled_ticks, time_hover, time_unit

_MOST = 20
_MOST_TEXT = 78


@of_several
def findings(data: Any, *, title: str | None = None) -> figure:
    """Draw by how much the run would be shorter without each cause, as an interval.

    Parameters
    ----------
    data : Run or Diagnosis
        A run is diagnosed.
    title : str, optional

    Returns
    -------
    figure
        The strongest finding comes first. The colour is the severity. A finding whose gain is not known has
        its name only.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        A file of the run cannot be read any more.

    Examples
    --------
    >>> from ensembles import viz
    >>> viz.findings(en.open("ensio-ior")).title.text
    'Findings: none'
    """
    diagnosis = _diagnosis(data)
    shown = diagnosis.findings[:_MOST]
    rows = max(len(shown), 1)
    top_s = max([finding.gain_s[1] for finding in shown if finding.gain_s], default=0.0)
    unit_s, unit = time_unit(top_s)
    many = f" ({len(shown)} of {len(diagnosis.findings)})" if len(diagnosis.findings) > len(shown) else ""
    fig = new_figure(
        title or ("Findings: predicted gain" + many if shown else "Findings: none"),
        126 + 40 * rows,
        x_range=Range1d(start=0, end=1.04 * top_s or 1.0),
        y_range=Range1d(start=rows - 0.45, end=-0.62),
        name="findings",
    )
    fig.min_border_left = 24
    fig.yaxis.visible = False
    fig.ygrid.visible = False
    fig.xaxis.axis_label = f"reduction of the run's time ({unit})"
    fig.xaxis.formatter = scaled_ticks(unit_s)
    if not shown:
        annotate_empty(fig, f"{len(diagnosis.examined)} causes were examined, and none was found")
        fig.xaxis.visible = False
        return fig
    _draw(fig, shown)
    return fig


def _diagnosis(data: Any) -> Diagnosis:
    if isinstance(data, Diagnosis):
        return data
    if isinstance(data, Run):
        return diagnose(data)
    raise TypeError(f"a run or a diagnosis is needed, not {type(data).__name__}")


def _draw(fig: figure, shown: tuple[Finding, ...]) -> None:
    fig.text(
        x=0,
        y=[number - 0.08 for number in range(len(shown))],
        text=[_label(finding) for finding in shown],
        text_font_size="9.5pt",
        text_baseline="bottom",
        text_color=NEUTRAL["text"],
        name="labels",
    )
    items = []
    for severity in reversed(SEVERITIES):
        mine = [(number, finding) for number, finding in enumerate(shown) if finding.severity == severity]
        if not mine:
            continue
        gains = [finding.gain_s or (0.0, 0.0) for _, finding in mine]
        source = ColumnDataSource(
            {
                "y": [number + 0.12 for number, _ in mine],
                "id": [finding.id for _, finding in mine],
                "title": [plain(finding.title) for _, finding in mine],
                "confidence": [share_text(finding.confidence) for _, finding in mine],
                "advice": [plain(finding.advice) for _, finding in mine],
                "low": [gain[0] for gain in gains],
                "high": [gain[1] for gain in gains],
            }
        )
        colour = SEVERITY[severity]
        least = fig.hbar(y="y", height=0.34, left=0, right="low", source=source, color=colour)
        range_ = fig.hbar(
            y="y", height=0.34, left="low", right="high", source=source, color=colour, fill_alpha=0.35
        )
        items.append(legend_item(severity, least, range_))
        fig.add_tools(
            HoverTool(
                renderers=[least, range_],
                tooltips=[
                    ("cause", "@id"),
                    ("what happens", "@title"),
                    ("gain", "@low{0} – @high{0}"),
                    ("confidence", "@confidence"),
                    ("advice", "@advice"),
                ],
                formatters={"@low": time_hover(), "@high": time_hover()},
            )
        )
    horizontal_legend(fig, items)


def _label(finding: Finding) -> str:
    text = f"{finding.id}: {cell(gain_of(finding, is_whole=False), '')}"
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
