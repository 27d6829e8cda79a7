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

_LIGHTNESS = (0.72, 0.35, 0.58, 0.8, 0.28, 0.65, 0.43, 0.5)
"""Of shades, in the order in which they are used: neighbours differ well."""


def colour_of(op: str) -> str:
    """Colour of a kind of operation; of several together, that of metadata."""
    return COLOURS[CLASS_OF_OP.get(op, "metadata")]


def shade(colour: str, number: int) -> str:
    """The colour itself (0), or the `number`-th lighter or darker one of the same hue, never white."""
    if number == 0:
        return colour
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, own, saturation = colorsys.rgb_to_hls(red, green, blue)
    # The one nearest to the colour itself could not be told from it.
    others = [each for each in _LIGHTNESS if each != min(_LIGHTNESS, key=lambda light: abs(light - own))]
    parts = colorsys.hls_to_rgb(hue, others[(number - 1) % len(others)], saturation)
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)
