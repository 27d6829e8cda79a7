"""The access map of a file: bytes by offset and time, and by offset and rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import AdaptiveTicker, Column, CustomJSHover, CustomJSTickFormatter, Range1d
from bokeh.plotting import figure

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.units import bytes_text, count_text, size_text
from ensembles.passes.summary import ignoring_run
from ensembles.run.run import Run
from ensembles.run.tables import totals_by_file
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.offset_map import OffsetMap, transfer_layers
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.viz.common import figures as draw
from ensembles.viz.common.data_for import of_several
from ensembles.viz.common.mixed import MOVED, add_mixed, amount_hover, mixed_image, mixer, swatches
from ensembles.viz.pictures.bars import plain_path

_LOWEST = "posix"
_BYTES_JS = """
    function bytes_text(n) {
        const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
        const power = n < 1024 ? 0 : Math.min(Math.floor(Math.log2(n) / 10), 6);
        return Number((n / 1024 ** power).toPrecision(5)).toLocaleString('en-US') + ' ' + names[power];
    }
"""
_BOTH = "#7a4f6e"
"""What the mapper mixes of as many bytes written as read: the mean of both colours."""


@of_several
def access_map(
    data: Any,
    file: str | None = None,
    *,
    layer: str | None = None,
    title: str | None = None,
    x_range: Range1d | None = None,
) -> Column:
    """Draw where in a file its bytes were read and written: offset against time, and against rank.

    The colour mixes reads and writes by their bytes; it is stronger where more bytes moved. Grid lines lie at
    multiples of the stripe size if the striping is known, and at powers of two otherwise.

    Parameters
    ----------
    data : Run, Events or OffsetMap
    file : str, optional
        Absolute path. Default: the file with the most bytes.
    layer : str, optional
        Layer whose calls are drawn. Default: posix or, if it moved no bytes, the layer with the most bytes.
    title : str, optional
        Title of the first figure.
    x_range : Range1d, optional
        Time axis in seconds of the first figure, to share with another one.

    Returns
    -------
    Column
        The names of its figures are ``access_by_time`` and ``access_by_rank``.

    Raises
    ------
    TypeError
        `data` has another type.
    EnsioError
        The run has no such file, or was recorded without events.

    Examples
    --------
    >>> from ensembles import viz
    >>> layout = viz.access_map(en.open("ensio-ior"))
    >>> layout.children[0].title.text.replace("\\n", " ")
    'Accesses of /scratch/synthetic/shared.dat: bytes by offset and time'
    """
    found, path = _found(data, file, layer)
    # The end of a path distinguishes files; its beginning may be as long as a title.
    name = plain_path(path if len(path) <= 60 else f"...{path[-57:]}") if path else "the file"
    head = title or f"Accesses of {name}: bytes by offset and time"
    shown = [op for op in reversed(DIRECTIONS) if found is not None and found.by_rank(op).any()]
    if found is None or not shown:
        why = "no bytes moved" if found is None or not found.without_offset else "the offsets are not known"
        return draw.empty_picture(head, why, "access_map", "access_by_time")
    striping = data.info.striping_of(path) if isinstance(data, Run) and path else None
    stripe_bytes = striping.stripe_bytes if striping is not None else 0
    edges = found.offset_edges
    shared = Range1d(start=float(edges[0]), end=float(edges[-1]))
    times = draw.time_range(*found.span_ns)
    parts = [
        _figure(found, "time", shown, shared, x_range or times, head, stripe_bytes),
        _figure(
            found,
            "rank",
            shown,
            shared,
            Range1d(start=-0.5, end=found.tasks - 0.5),
            "The same by offset and rank",
            stripe_bytes,
        ),
    ]
    draw.label_time_axis(parts[0])
    if found.without_offset:
        draw.subtitle(
            parts[0], f"{count_text(found.without_offset, 'call')} at unknown offsets are left out."
        )
    if striping is not None:
        targets = "all" if striping.stripe_count < 0 else f"{striping.stripe_count:,}"
        draw.subtitle(
            parts[0],
            f"Striping: {size_text(stripe_bytes)} on {targets} targets. Zoom in until the lines are a stripe "
            "apart.",
        )
    return column(parts, sizing_mode="stretch_width", name="access_map")


def _found(data: Any, file: str | None, layer: str | None) -> tuple[OffsetMap | None, str]:
    if isinstance(data, OffsetMap):
        return data, ""
    if isinstance(data, Events):
        return _of_events(data, file, layer)
    if not isinstance(data, Run):
        raise TypeError(f"a run, events or an OffsetMap is needed, not {type(data).__name__}")
    data.reading.need(Holds.ALL_CALLS, "offsets are of single calls")
    if file is None:
        moved = [row for row in totals_by_file(data, "bytes") if row.path and row.order("bytes")]
        if not moved:
            return None, ""
        file = moved[0].path
    number, table = _number(data.files, file, data.path), table_of_run(data)
    layer = layer or layer_of_table(table)
    if layer is None:
        return None, file
    make = partial(OffsetMap, number, layer, data.tasks, span_of_table(table))
    return data.summarize(ignoring_run(make)), file


def table_of_run(run: Run) -> CallTable:
    """Return the totals of the calls of a run by function."""
    return run.summarize(ignoring_run(CallTable))


def span_of_table(table: CallTable) -> tuple[int, int]:
    """Return the first moment of calls and the last, ns since the origin of their run."""
    return table.start_ns or 0, table.end_ns or 0


def _number(files: list[str] | Any, file: str, path: str) -> int:
    for number, name in enumerate(files):
        if name == file:
            return number
    raise EnsioError(
        f"{path} has no file {draw.plain(file)}: viz.files and ensio files name those that it has"
    )


def layer_of_table(table: CallTable) -> str | None:
    """Return the layer whose calls an access map shows: posix, or the one with the most bytes; None: none."""
    moved: dict[str, int] = {}
    for call, totals in table.totals.items():
        if totals.bytes:
            moved[call.layer] = moved.get(call.layer, 0) + totals.bytes
    return _LOWEST if _LOWEST in moved else max(moved, key=lambda name: moved[name], default=None)


def _of_events(events: Events, file: str | None, layer: str | None) -> tuple[OffsetMap | None, str]:
    layers = transfer_layers(events)
    layer = layer or (_LOWEST if _LOWEST in layers else next(iter(layers), None))
    if layer is None:
        return None, ""
    if file is None:
        of_layer = np.array([call.layer == layer and call.op in DIRECTIONS for call in events.calls], bool)
        weight = np.where(of_layer[events.call], np.maximum(events.moved, 0), 0)
        number = int(np.argmax(np.bincount(events.file, weight)))
        file = events.files[number]
    else:
        number = _number(events.files, file, "the selection")
    span = int(events.start.min()), int(events.end.max())
    found = OffsetMap(number, layer, int(events.rank.max()) + 1, span)
    found.add(events)
    return found, file


def _figure(
    found: OffsetMap,
    kind: str,
    shown: list[str],
    offsets: Range1d,
    x_range: Range1d,
    title: str,
    stripe_bytes: int,
) -> figure:
    fig = draw.new_figure(title, 390, x_range=x_range, y_range=offsets, name=f"access_by_{kind}")
    data, most = offset_image(found, kind, shown)
    drawn = add_mixed(fig, data, mixer(shown))
    label_offsets(fig, stripe_bytes)
    _legend(fig, found, shown, _is_mixed(data["image"][0]))
    place = CustomJSHover(code=_BYTES_JS + "return bytes_text(value);")
    shares = [(op, f"@image{{{number}}}") for number, op in enumerate(shown)]
    if kind == "rank":
        draw.count_along(fig.xaxis)
        where = ("rank", "$x{0}")
    else:
        where = ("time", "$x{0,0.000} s")
    formats = {"$y": place, "@image": amount_hover(most)}
    draw.add_hover(fig, drawn, [where, ("offset", "$y{0}"), *shares], formatters=formats)
    return fig


def offset_image(
    found: OffsetMap, kind: str, shown: Sequence[str], most: float = 0.0
) -> tuple[dict[str, Any], float]:
    """Return the image of an access map, as columns of a data source.

    `most`: bytes of a pixel of full colour. Default: those of the pixel with the most bytes.
    """
    edges = found.offset_edges
    by_cell = found.by_time if kind == "time" else found.by_rank
    if kind == "time":
        left, width = found.time_edges_s[0], found.time_edges_s[-1] - found.time_edges_s[0]
    else:
        left, width = -0.5, found.rank_rows * found.ranks_per_row
    place = left, float(edges[0]), width, float(edges[-1] - edges[0])
    return mixed_image([by_cell(op).T for op in shown], *place, most=most)


def label_offsets(fig: figure, stripe_bytes: int) -> None:
    """Put ticks and grid lines at powers of two; at multiples of the stripes if they are known."""
    base = float(stripe_bytes or 1)
    fig.yaxis.ticker = AdaptiveTicker(
        base=2, mantissas=[base / 2 ** np.floor(np.log2(base))], min_interval=base, num_minor_ticks=0
    )
    fig.ygrid.ticker = fig.yaxis.ticker
    fig.yaxis.axis_label = "offset in the file"
    fig.yaxis.formatter = CustomJSTickFormatter(code=_BYTES_JS + "return bytes_text(tick);")


def _legend(fig: figure, found: OffsetMap, shown: list[str], mixed: bool) -> None:
    moved = {op: bytes_text(int(found.by_rank(op).sum())) for op in shown}
    labels = {op: f"{MOVED[op]} by {found.layer}: {text}" for op, text in moved.items()}
    draw.horizontal_legend(fig, swatches(fig, labels | ({_BOTH: "both"} if mixed else {})))


def _is_mixed(image: np.ndarray) -> bool:
    """Return whether a part of the picture that can be seen has the mixed colour."""
    whole = image.sum(axis=2, dtype=np.int64)
    # Share of the smaller direction in a pixel, and of such pixels.
    both = (image.min(axis=2) >= 0.2 * whole) & (whole > 0)
    return image.shape[2] > 1 and bool(both.sum() >= 0.01 * (whole > 0).sum())
