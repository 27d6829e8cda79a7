"""Numbers as people read them: in text, on axes, and in hover boxes."""

from __future__ import annotations

import math

from bokeh.models import CustomJSTickFormatter

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def significant(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, without exponents for 0.001 to 1e9, thousands set apart."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(digits - 1 - magnitude, 0)}f}"


def byte_unit(value_bytes: float) -> tuple[float, str]:
    """Size in bytes and name of the largest binary unit that is not larger than a number of bytes."""
    step = 0 if value_bytes < 1024 else min(int(math.log2(value_bytes) // 10), len(_BYTE_UNITS) - 1)
    return 1024.0**step, _BYTE_UNITS[step]


def bytes_text(value_bytes: float) -> str:
    """For example ``20.0 GiB``; whole numbers of a unit without decimals."""
    size, unit = byte_unit(abs(value_bytes))
    value = value_bytes / size
    return f"{value:,.0f} {unit}" if value == int(value) else f"{significant(value)} {unit}"


def time_unit(span_s: float) -> tuple[float, str]:
    """Length in seconds and name of the unit in which a span of time is best told."""
    return next((unit for unit in _TIME_UNITS if span_s >= unit[0]), _TIME_UNITS[-1])


def time_text(value_s: float) -> str:
    """For example ``1.23 ms``."""
    if not math.isfinite(value_s):
        return "–"
    size, unit = time_unit(abs(value_s)) if value_s else _TIME_UNITS[0]
    return f"{significant(value_s / size)} {unit}"


def duration_text(value_s: float) -> str:
    """A long time as a person says it: ``3 h 25 min``, ``2 min 5 s``, ``4.21 s``."""
    if value_s < 120:
        return time_text(value_s)
    minutes, seconds = divmod(round(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def percent_text(share: float) -> str:
    """A share of one in percent, small ones not rounded to nothing."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


TIME_JS = """
    function time_text(s) {
        const size = Math.abs(s);
        const [unit, name] = size >= 1 || size == 0 ? [1, 's'] : size >= 1e-3 ? [1e-3, 'ms']
            : size >= 1e-6 ? [1e-6, 'µs'] : [1e-9, 'ns'];
        return Number((s / unit).toPrecision(4)).toLocaleString('en-US', {maximumFractionDigits: 12}) + ' ' + name;
    }
"""
"""A JavaScript function that does what `time_text` does, with four digits."""


def scaled_ticks(unit: float) -> CustomJSTickFormatter:
    """Ticks of an axis in seconds, told in a unit of so many seconds."""
    return CustomJSTickFormatter(
        args={"unit": unit},
        code="""
            const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) / unit : 1;
            const digits = Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 12);
            return (tick / unit).toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
        """,
    )


def time_ticks() -> CustomJSTickFormatter:
    """Ticks of an axis in seconds, each with its own unit: for logarithmic axes."""
    return CustomJSTickFormatter(code=TIME_JS + "return time_text(tick);")
