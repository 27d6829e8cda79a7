"""Numbers as people read them on axes and in hover boxes."""

from __future__ import annotations

import math

from bokeh.models import CustomJSHover, CustomJSTickFormatter

from ensembles.units import BINARY_UNITS

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def byte_unit(value_bytes: float) -> tuple[float, str]:
    """Size in bytes and name of the largest binary unit that is not larger than a number of bytes."""
    step = 0 if value_bytes < 1024 else min(int(math.log2(value_bytes) // 10), len(BINARY_UNITS) - 1)
    return 1024.0**step, BINARY_UNITS[step]


def time_unit(span_s: float) -> tuple[float, str]:
    """Length in seconds and name of the unit in which a span of time is best told."""
    return next((unit for unit in _TIME_UNITS if span_s >= unit[0]), _TIME_UNITS[-1])


def percent_text(share: float) -> str:
    """A share of one in percent; small ones are not rounded to nothing."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


TIME_JS = """
    function time_text(s) {
        const size = Math.abs(s);
        const [unit, name] = size >= 1 || size == 0 ? [1, 's'] : size >= 1e-3 ? [1e-3, 'ms']
            : size >= 1e-6 ? [1e-6, 'µs'] : [1e-9, 'ns'];
        const number = Number((s / unit).toPrecision(4));
        return number.toLocaleString('en-US', {maximumFractionDigits: 12}) + ' ' + name;
    }
"""
"""A JavaScript function ``time_text``: seconds, with a unit that suits them and four digits."""


def scaled_ticks(unit: float) -> CustomJSTickFormatter:
    """Ticks of an axis in seconds, told in a unit of so many seconds."""
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
    """Ticks of an axis in seconds, each with its own unit: for logarithmic axes."""
    return CustomJSTickFormatter(code=TIME_JS + "return time_text(tick);")


def time_hover() -> CustomJSHover:
    """Values in seconds in a hover box, with a unit that suits them."""
    return CustomJSHover(code=TIME_JS + "return time_text(value);")
