"""Colours, the same in every picture: what a kind of operation looks like, and shades for several calls of
one kind."""

from __future__ import annotations

import colorsys

from ensembles.summaries.raster import CLASSES

COLOURS = {
    "write": "#1f77b4",
    "read": "#d62728",
    "metadata": "#ff7f0e",
    "sync": "#9467bd",
    "wait": "#bdbdbd",
}
"""Colour of each class of operations (`ensembles.summaries.raster.CLASSES`)."""

CLASS_OF_OP = {op: name for name, ops in CLASSES.items() for op in ops}
"""Class of each operation."""

LABELS = {
    "write": "write",
    "read": "read",
    "metadata": "metadata (open, close, seek, …)",
    "sync": "sync",
    "wait": "waiting in MPI",
}
"""What a legend calls each class."""

_SHADE_LIGHTNESS = (0.0, 0.18, -0.14, 0.3, -0.22, 0.1, -0.07, 0.24)


def shade(colour: str, number: int) -> str:
    """The colour itself (0), or the `number`-th lighter or darker one of the same hue, never white."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    step = _SHADE_LIGHTNESS[number % len(_SHADE_LIGHTNESS)]
    lightness = min(max(lightness + step, 0.2), 0.82)
    parts = colorsys.hls_to_rgb(hue, lightness, saturation) if number else (red, green, blue)
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)
