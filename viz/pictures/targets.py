"""Load of storage targets: bytes and calls in progress over time, and the bytes of each target."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    BasicTicker,
    Column,
    ColumnDataSource,
    CustomJSHover,
    CustomJSTickFormatter,
    LinearColorMapper,
    LogColorMapper,
    LogTicker,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.models.annotations import ColorBar
from bokeh.palettes import Greys256
from bokeh.plotting import figure

from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.layouts import Layouts
from ensembles.model.units import bytes_text, number_text, seconds_text
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.run import Run
from ensembles.summaries.offset_map import transfer_layers
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.summaries.target_load import LAYERS, TargetLoad
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.mixed import MOVED, add_mixed, amount_hover, mixed_image, mixer, swatches
from ensembles.viz.common.style import COLOURS, NEUTRAL, byte_unit
from ensembles.viz.common.theme import TURNED
from ensembles.viz.pictures.access_map import layer_of_table, table_of_run

_UNKNOWN = (
    "the layout of no file is known: it is recorded on Lustre, and is in Darshan logs with the module LUSTRE"
)
_NO_BYTES = "no call of a layer with contiguous bytes reached a known target"
_TARGET_JS = """
    const row = Math.min(Math.max(Math.floor(place + 0.5), 0), rows - 1);
    const first = row * per_row, last = Math.min(first + per_row, targets.length) - 1;
    const name = first == last ? `OST ${targets[first]}` : `OSTs ${targets[first]} to ${targets[last]}`;
"""


@of_several
def targets(
    data: Any,
    *,
    layer: str | None = None,
    layouts: Run | Layouts | None = None,
    title: str | None = None,
    x_range: Range1d | None = None,
) -> Column:
    """Draw the load of the storage targets: bytes over time, calls in progress, and the bytes of each.

    Bytes count at the target on which they lie, spread over the time of their call. A call is in progress at
    each target that it reaches: a slow target has many calls in progress and few bytes. Bytes whose target
    does not follow from the layout of their file are left out, and a sentence says how many.

    Parameters
    ----------
    data : Run, Events or TargetLoad
    layer : {"posix", "stdio"}, optional
        Layer whose calls are drawn. Default: posix or, if it moved no bytes, stdio.
    layouts : Run or Layouts, optional
        Of events: the run that they are of, which has the layouts of the files. Default: those of the run.
    title : str, optional
        Title of the first figure.
    x_range : Range1d, optional
        Time axis in seconds, to share with another figure.

    Returns
    -------
    Column
        The names of its figures are ``targets_bytes``, ``targets_calls`` and ``targets_totals``.

    Raises
    ------
    TypeError
        `data` has another type.
    ValueError
        Calls of this layer need not have contiguous bytes in a file.
    EnsioError
        The run was recorded without events.

    Examples
    --------
    >>> from ensembles import viz
    >>> from ensembles.model.layouts import Layouts
    >>> from ensembles.model.lustre import Component, Striping
    >>> striping = Striping((Component(0, None, 1 << 20, 4, targets=(0, 1, 2, 3)),))
    >>> layout = viz.targets(en.open("ensio-ior").select(op="write"), layouts=Layouts({1: striping}))
    >>> layout.select_one({"name": "targets_totals"}).title.text.replace("\\n", " ")
    'Bytes of each target; all have the same, within 1\\xa0%'
    """
    load = load_of(data, layer, layouts)
    head = title or "Bytes by storage target and time"
    if load is None or not load.known_bytes:
        why = _UNKNOWN if load is None or not len(load.targets) else _NO_BYTES
        return draw.empty_picture(head, why, "targets", "targets_bytes")
    shared = x_range or draw.time_range(*load.extent_ns)
    rows = Range1d(start=load.rows - 0.5, end=-0.5, bounds=(-0.5, load.rows - 0.5))
    parts = [_bytes(load, head, shared, rows), _calls(load, shared, rows)]
    if len(load.targets) > 1:
        parts.append(_totals(load))
    if load.unknown_bytes:
        whole = bytes_text(load.unknown_bytes + load.known_bytes)
        sentence = f"{bytes_text(load.unknown_bytes)} of {whole} are on unknown targets, and are left out."
        draw.subtitle(parts[0], sentence)
    return column(parts, sizing_mode="stretch_width", name="targets")


def load_of(data: Any, layer: str | None = None, layouts: Run | Layouts | None = None) -> TargetLoad | None:
    """Compute the load of storage targets, in one pass over a run.

    None: no layout is known, or no layer with contiguous bytes moved any.
    """
    if isinstance(data, TargetLoad):
        return data
    if layer is not None and layer not in LAYERS:
        raise ValueError(f"targets follow from calls of {' and '.join(LAYERS)}, and not of {layer}")
    if isinstance(data, Run):
        data.reading.need(Holds.ALL_CALLS, "targets follow from the offsets of single calls")
        request = load_request(data, layer, layouts)
        found: TargetLoad | None = None if request is None else data.summarize({"": request})[""]
        return found
    if not isinstance(data, Events):
        raise TypeError(f"a run, events or a TargetLoad is needed, not {type(data).__name__}")
    known = _layouts(layouts, data.files)
    layer = layer or next((name for name in LAYERS if name in transfer_layers(data)), None)
    if not known or layer is None:
        return None
    load = TargetLoad(known, layer)
    load.add(data)
    return load


def load_request(
    run: Run,
    layer: str | None = None,
    layouts: Run | Layouts | None = None,
    most_pieces: float = np.inf,
) -> SummaryRequest | None:
    """Return the request for the load of the targets of a run.

    None: no target is known, or calls may have more pieces.
    """
    known = _layouts(layouts or run, run.files)
    if not known:
        return None
    table = table_of_run(run)
    layer = layer or layer_of_table(table)
    if layer not in LAYERS:
        return None
    mine = [each for call, each in table.totals.items() if call.layer == layer and call.op in DIRECTIONS]
    if known.most_pieces(sum(each.count for each in mine), sum(each.bytes for each in mine)) > most_pieces:
        return None
    return SummaryRequest(ignoring_run(partial(TargetLoad, known, layer)))


def _layouts(layouts: Run | Layouts | None, files: Any) -> Layouts:
    if isinstance(layouts, Layouts):
        return layouts
    return Layouts({}) if layouts is None else Layouts.of_files(layouts.info, files)


def _figure(load: TargetLoad, title: str, x_range: Range1d, rows: Range1d, name: str) -> figure:
    height = int(np.clip(150 + 16 * load.rows, 230, 420))
    fig = draw.new_figure(title, height, x_range=x_range, y_range=rows, name=name)
    draw.label_time_axis(fig)
    fig.grid.visible = False
    fig.yaxis.axis_label = "target (OST)"
    fig.yaxis.ticker = BasicTicker(
        min_interval=1, num_minor_ticks=0, desired_num_ticks=min(max(load.rows, 2), 8)
    )
    fig.yaxis.formatter = _target_ticks(load)
    return fig


def _target_ticks(load: TargetLoad) -> CustomJSTickFormatter:
    return CustomJSTickFormatter(
        args={"targets": load.targets[:: load.targets_per_row].tolist()},
        code="return targets[tick] === undefined ? '' : String(targets[tick]);",
    )


def _target_hover(load: TargetLoad) -> CustomJSHover:
    return CustomJSHover(
        args={"targets": load.targets.tolist(), "rows": load.rows, "per_row": load.targets_per_row},
        code=f"const place = value; {_TARGET_JS} return name;",
    )


def _cell_ns(load: TargetLoad) -> int:
    return int(load.edges_ns[1] - load.edges_ns[0])


def _place(load: TargetLoad) -> tuple[float, float, float, float]:
    edges_s = load.edges_ns * 1e-9
    return float(edges_s[0]), -0.5, float(edges_s[-1] - edges_s[0]), float(load.rows)


def _present(load: TargetLoad) -> list[str]:
    return [op for op in reversed(DIRECTIONS) if load.of_targets(f"{op}_bytes").any()]


def _bytes(load: TargetLoad, title: str, x_range: Range1d, rows: Range1d) -> figure:
    fig = _figure(load, title, x_range, rows, "targets_bytes")
    shown = _present(load)
    data, top = mixed_image([load.over_time(f"{op}_bytes") for op in shown], *_place(load))
    drawn = add_mixed(fig, data, mixer(shown))
    moved = {op: bytes_text(int(load.of_targets(f"{op}_bytes").sum())) for op in shown}
    draw.horizontal_legend(fig, swatches(fig, {op: f"{MOVED[op]}: {text}" for op, text in moved.items()}))
    rate = top / (_cell_ns(load) * 1e-9)
    draw.subtitle(fig, f"Strongest colour: {bytes_text(rate)}/s at a target; low rates are enhanced.")
    draw.add_hover(
        fig,
        drawn,
        [
            ("", "$y{0}"),
            ("time", "$x{at}"),
            *((op, f"@image{{{number}}}") for number, op in enumerate(shown)),
        ],
        formatters={"$y": _target_hover(load), "@image": amount_hover(rate, "/s")},
    )
    return fig


def _crowd_text(load: TargetLoad, inside: np.ndarray) -> str:
    """Name the target at which calls crowd, if there are few at most others at the same time."""
    row, cell = np.unravel_index(int(inside.argmax()), inside.shape)
    most = float(inside[row, cell])
    if load.rows < 2 or load.targets_per_row > 1 or most < 8.0:
        return ""
    if most < 3.0 * float(np.median(inside[:, cell])):
        return ""
    when = seconds_text(float(load.edges_ns[cell]) * 1e-9)
    return f"; most, {_number(most)}, at OST {load.targets[row]} after {when}"


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round to a relative error of 1/512, which makes an image in a page a third as long."""
    mantissa, exponent = np.frexp(values)
    rounded: np.ndarray = np.ldexp(np.round(mantissa * 256) / 256, exponent).astype(np.float32)
    return rounded


def _calls(load: TargetLoad, x_range: Range1d, rows: Range1d) -> figure:
    inside = (load.over_time("time_ns") / _cell_ns(load)).astype(np.float32)
    words = f"Calls in progress at each target{_crowd_text(load, inside)}"
    fig = _figure(load, words, x_range, rows, "targets_calls")
    some = inside[inside > 0]
    top = float(some.max(initial=0)) or 1.0
    # Few calls nearly have the colour of the page, light or dark.
    palette = list(reversed(Greys256[30:240]))
    mapper: LinearColorMapper | LogColorMapper
    if len(some) and float(np.median(some)) < 0.05 * top:  # most cells would have the colour of the page
        low = max(float(some.min()), top / 1e3)
        mapper = LogColorMapper(palette=palette, low=low, high=top, nan_color="#ffffff00", tags=[TURNED])
    else:
        mapper = LinearColorMapper(palette=palette, low=0, high=top, nan_color="#ffffff00", tags=[TURNED])
    image = np.where(inside > 0, _rounded(inside), np.float32(np.nan))
    x, y, width, height = _place(load)
    drawn = fig.image([image], x, y, width, height, color_mapper=mapper)  # type: ignore[call-arg]
    bar = ColorBar(
        color_mapper=mapper,
        ticker=LogTicker() if isinstance(mapper, LogColorMapper) else BasicTicker(desired_num_ticks=5),
        formatter=NumeralTickFormatter(format="0,0.[000]"),
        orientation="horizontal",
        width=300,
        height=10,
        padding=4,
        margin=0,
        title="calls in progress",
        title_text_font_style="normal",
    )
    fig.add_layout(bar, "above")
    fig.height = (fig.height or 0) + 24  # what the bar takes more than a legend
    draw.add_hover(
        fig,
        drawn,
        [("", "$y{0}"), ("time", "$x{at}"), ("calls in progress", "@image{0,0.00}")],
        formatters={"$y": _target_hover(load)},
    )
    return fig


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{number_text(value)}"


def busiest_text(load: TargetLoad) -> str:
    """Say by how much the bytes of the targets differ."""
    sums = _moved(load)
    if float(sums.max() - sums.min()) <= 0.01 * float(sums.mean()):
        return "all have the same, within 1 %"
    return f"the busiest has {_number(float(sums.max() / sums.mean()))} times the mean"


def _moved(load: TargetLoad) -> np.ndarray:
    """Return the bytes of each target: int64, shape (targets,)."""
    sums: np.ndarray = np.sum([load.of_targets(f"{op}_bytes") for op in DIRECTIONS], axis=0)
    return sums


def _totals(load: TargetLoad) -> figure:
    shown, sums = _present(load), _moved(load)
    count, mean = len(sums), float(sums.mean())
    unit, name = byte_unit(float(sums.max()))
    fig = draw.new_figure(
        f"Bytes of each target; {busiest_text(load)}",
        260,
        x_range=Range1d(start=-0.6, end=count - 0.4, bounds=(-0.6, count - 0.4)),
        y_range=Range1d(start=0, end=1.08 * float(sums.max()) / unit),
        name="targets_totals",
    )
    fig.xgrid.visible = False
    fig.xaxis.axis_label = "storage target (OST)"
    fig.xaxis.ticker = BasicTicker(
        min_interval=1, num_minor_ticks=0, desired_num_ticks=min(max(count, 2), 16)
    )
    fig.xaxis.formatter = CustomJSTickFormatter(
        args={"targets": load.targets.tolist()},
        code="return targets[tick] === undefined ? '' : String(targets[tick]);",
    )
    draw.name_axis(fig.yaxis, f"bytes ({name})", "0,0.[00]")
    columns: dict[str, Any] = {
        "x": np.arange(count),
        "target": load.targets,
        "calls": load.of_targets("calls"),
        "time_s": load.of_targets("time_ns") * 1e-9,
        **{f"{op}_text": [bytes_text(int(n)) for n in load.of_targets(f"{op}_bytes")] for op in shown},
    }
    parts = {op: (load.of_targets(f"{op}_bytes") / unit, COLOURS[op]) for op in shown}
    bars, _ = draw.stack(fig.vbar, ColumnDataSource(columns), parts, x="x", width=0.8)
    items = [draw.legend_item(MOVED[op], bar) for op, bar in zip(shown, bars, strict=True)]
    ends_of_mean = [-0.6, count - 0.4], [mean / unit] * 2
    line = fig.line(*ends_of_mean, line_color=NEUTRAL["text"], line_dash="dashed")
    items.append(draw.legend_item(f"mean: {bytes_text(mean)}", line))
    draw.horizontal_legend(fig, items)
    draw.add_hover(
        fig,
        bars,
        [
            ("target", "OST @target"),
            *((op, f"@{op}_text") for op in shown),
            ("calls", "@calls{0,0}"),
            ("time in calls", "@time_s{0,0.000} s"),
        ],
    )
    return fig
