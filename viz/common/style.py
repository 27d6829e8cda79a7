"""Colours of operations, and number formats of axes and hover boxes."""

from __future__ import annotations

import colorsys
import math

from bokeh.models import CustomJSHover, CustomJSTickFormatter

from ensembles.model.events import Call
from ensembles.model.units import BINARY_UNITS
from ensembles.summaries.raster import CLASSES, class_of_calls

COLOURS = {
    "write": "#1f77b4",
    "read": "#d62728",
    "metadata": "#ff7f0e",
    "sync": "#a68678",
    "io wait": "#22bbff",
    "wait": "#bdbdbd",
}
"""Colour of each class of operations (`ensembles.summaries.raster.CLASSES`).

They differ in lightness as well, so that eyes that see no red, green or blue distinguish them: CIEDE2000 is
at least 14, also from the grey of waiting on dark pages."""

READS_AND_WRITES = "#dd99ff"
"""Colour of what reads as much as it writes, such as a phase. It differs from those of `COLOURS`
but for that of waiting for I/O, which no picture shows beside it."""

NEUTRAL = {"text": "#222222", "weak": "#666666", "line": "#777777", "grid": "#e6e6e6", "frame": "#999999"}
"""Colours without a meaning: of marks, texts and lines. `ensembles.viz.common.theme` replaces them."""

SERIES = ("#e69f00", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#56b4e9")
"""Colours of curves that differ in a number or a name, distinguishable with colour-blind eyes.

References
----------
M. Okabe and K. Ito, "Color Universal Design", 2008.
"""

OVERLAID = (SERIES[2], SERIES[3], SERIES[1], SERIES[0], SERIES[4], SERIES[5])
"""Colours of ensembles of one operation that share axes, such as before and after."""


def class_of_call(call: Call) -> str:
    """Return the class of a function."""
    return list(CLASSES)[int(class_of_calls((call,))[0])]


CLASS_OF_OP = {op: name for name, ops in CLASSES.items() for op in ops}
"""Class of each operation."""

LABELS = {
    "write": "write",
    "read": "read",
    "metadata": "metadata (open, close, seek, …)",
    "sync": "sync",
    "io wait": "waiting for I/O",
    "wait": "waiting in MPI",
}
"""Legend entry of each class."""

_LIGHTNESS = (0.72, 0.35, 0.58, 0.8, 0.28, 0.65, 0.43, 0.5)
"""Lightness of successive shades, chosen so that neighbours differ clearly."""


def op_colour(op: str) -> str:
    """Return the colour of an operation; mixed operations have the colour of metadata."""
    return COLOURS[CLASS_OF_OP.get(op, "metadata")]


def shade(colour: str, number: int) -> str:
    """Return a colour (0), or its `number`-th lighter or darker shade, never white."""
    if number == 0:
        return colour
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, own, saturation = colorsys.rgb_to_hls(red, green, blue)
    # The lightness nearest to that of the colour would give an indistinguishable shade.
    others = [each for each in _LIGHTNESS if each != min(_LIGHTNESS, key=lambda light: abs(light - own))]
    parts = colorsys.hls_to_rgb(hue, others[(number - 1) % len(others)], saturation)
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)


def darker(colour: str) -> str:
    """Return a colour with half of its lightness, as for the border of an area."""
    return "#" + "".join(f"{round(int(colour[i : i + 2], 16) / 2):02x}" for i in (1, 3, 5))


SHORTEST_S = 0.5e-9
"""Where a logarithmic axis shows durations of 0, which are below the clock."""

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def byte_unit(value_bytes: float) -> tuple[float, str]:
    """Return size in bytes and name of the largest binary unit up to a number of bytes."""
    step = 0 if value_bytes < 1024 else min(int(math.log2(value_bytes) // 10), len(BINARY_UNITS) - 1)
    return 1024.0**step, BINARY_UNITS[step]


def time_unit(span_s: float) -> tuple[float, str]:
    """Return length in seconds and name of the unit that suits a time span."""
    return next((unit for unit in _TIME_UNITS if span_s >= unit[0]), _TIME_UNITS[-1])


NUMBERS_JS = """
    function whole(value) {
        return value.toLocaleString('en-US', {maximumFractionDigits: 0});
    }
    function three_digits(value) {
        const size = Math.abs(value);
        return size >= 999.5 ? whole(value) : value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
    }
    function unit_of_time(size) {
        return size >= 0.9995 ? [1, 's'] : size >= 0.9995e-3 ? [1e-3, 'ms'] : [1e-6, 'µs'];
    }
    function time_text(s) {
        const size = Math.abs(s), two = (number) => String(number).padStart(2, '0');
        const minutes = Math.round(s / 60), seconds = Math.round(s);
        if (size >= 3600) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
        if (size >= 120) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
        if (size < 0.9995e-6) return (s * 1e9).toFixed(0) + ' ns';
        const [unit, name] = unit_of_time(size);
        return three_digits(s / unit) + ' ' + name;
    }
    function moment_text(s) {
        const size = Math.abs(s);
        if (size < 0.9995e-6) return (s * 1e9).toFixed(0) + ' ns';
        const [unit, name] = unit_of_time(size);
        const digits = {minimumFractionDigits: 3, maximumFractionDigits: 3};
        return (s / unit).toLocaleString('en-US', digits) + ' ' + name;
    }
    function instant_text(s) {
        const digits = {minimumFractionDigits: 6, maximumFractionDigits: 6};
        return s.toLocaleString('en-US', digits) + ' s';
    }
    function bytes_text(count) {
        if (Math.abs(count) < 1024) return whole(count) + ' B';
        let power = 0;
        for (; Math.abs(count) >= 1023.5 && power < 6; power++) count /= 1024;
        return three_digits(count) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][power];
    }
"""
"""JavaScript functions that write numbers as `ensembles.model.units` does: ``time_text`` and ``bytes_text``
with three digits, also where the last are zeros. ``moment_text`` writes a moment, which needs more digits;
``instant_text`` those of a column, all in seconds, to a microsecond."""

_TICK_JS = """
    const size = Math.abs(tick);
    const [unit, name] = size >= 1 || size == 0 ? [1, 's'] : size >= 1e-3 ? [1e-3, 'ms']
        : size >= 1e-6 ? [1e-6, 'µs'] : [1e-9, 'ns'];
    const number = Number((tick / unit).toPrecision(4));
    return number.toLocaleString('en-US', {maximumFractionDigits: 12}) + ' ' + name;
"""


def scaled_ticks(unit: float) -> CustomJSTickFormatter:
    """Return a formatter for ticks in seconds that shows them in a unit of `unit` seconds."""
    return CustomJSTickFormatter(
        args={"unit": unit},
        code="""
            const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) / unit : 1;
            const digits = Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 12);
            const format = {minimumFractionDigits: digits, maximumFractionDigits: digits};
            return (tick / unit).toLocaleString('en-US', format);
        """,
    )


def time_ticks() -> CustomJSTickFormatter:
    """Return a formatter for ticks in seconds, each with a suitable unit, for logarithmic axes."""
    return CustomJSTickFormatter(code=_TICK_JS)


def time_hover() -> CustomJSHover:
    """Return a formatter for durations in seconds in a hover box, with a suitable unit."""
    return CustomJSHover(code=NUMBERS_JS + "return time_text(value);")


def moment_hover() -> CustomJSHover:
    """Return a formatter for moments of a run, in seconds, in a hover box."""
    return CustomJSHover(code=NUMBERS_JS + "return moment_text(value);")
