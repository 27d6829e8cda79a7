"""Images whose pixels mix the colours of operations by their shares, with swatches for the legend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSHover, ImageStack
from bokeh.models.annotations import LegendItem
from bokeh.models.mappers import LinearColorMapper, WeightedStackColorMapper
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from ensembles.viz.common.figures import legend_item
from ensembles.viz.common.style import COLOURS, NUMBERS_JS

EMPHASIS = 0.4
"""Power of a share that is the opacity of a pixel: small shares remain visible."""

MOVED = {"write": "written", "read": "read"}
"""What is said of the bytes of a direction."""


def opacities(most: float = 1.0, power: float = 1.0) -> list[str]:
    """Return the opacity of each share of 255."""
    return [f"#000000{round(255 * most * (share / 255) ** power):02x}" for share in range(256)]


def mixer(names: Iterable[str], palette: Sequence[str] = ()) -> WeightedStackColorMapper:
    """Mix the colours of classes by their shares; the opacity is that of the sum of the shares."""
    return WeightedStackColorMapper(
        palette=[COLOURS[name] for name in names],
        color_baseline=0,
        nan_color="#ffffff00",
        alpha_mapper=LinearColorMapper(palette=list(palette) or opacities(), low=0, high=255),
    )


def mixed_image(
    moved: Sequence[np.ndarray], x: float, y: float, width: float, height: float, most: float = 0.0
) -> tuple[dict[str, Any], float]:
    """Return the columns of an image of amounts by class, and the amount of a pixel of full colour.

    `moved`: of each class an amount by row and cell.
    `most`: amount of full colour. Default: that of the pixel with the most.
    """
    amounts = np.stack(moved, axis=2).astype(np.float64)
    whole = amounts.sum(axis=2, keepdims=True)
    top = most or float(whole.max(initial=0)) or 1.0
    strength = np.maximum(255 * np.minimum(whole / top, 1) ** EMPHASIS, whole > 0)
    shares = np.ceil(strength * amounts / np.where(whole > 0, whole, 1)).astype(np.uint8)
    return {"image": [shares], "x": [x], "y": [y], "dw": [width], "dh": [height]}, top


def add_mixed(
    fig: figure, data: ColumnDataSource | Mapping[str, Any], mapper: WeightedStackColorMapper
) -> GlyphRenderer[Any]:
    """Add an image of shares to a figure."""
    source = data if isinstance(data, ColumnDataSource) else ColumnDataSource(dict(data))
    glyph = ImageStack(image="image", x="x", y="y", dw="dw", dh="dh", color_mapper=mapper)
    return fig.add_glyph(source, glyph)


def amount_hover(top_bytes: float, per: str = "") -> CustomJSHover:
    """Return a formatter for the bytes of a class in a pixel, of which full colour has `top_bytes`."""
    return CustomJSHover(
        args={"top": top_bytes},
        code=NUMBERS_JS
        + f"""
            const sum = value.reduce((a, b) => a + b, 0);
            if (value[Number(format)] == 0) return 'none';
            const whole = top * (Math.min(sum, 255) / 255) ** {1 / EMPHASIS};
            const part = Number((whole * value[Number(format)] / sum).toPrecision(2));
            return 'about ' + bytes_text(part) + '{per}';
        """,
    )


def swatches(fig: figure, labels: Mapping[str, str]) -> list[LegendItem]:
    """Return entries of a legend by the name of an operation, or by a colour, for what an image mixes."""
    nowhere: dict[str, Any] = {side: [np.nan] for side in ("left", "right", "bottom", "top")}
    return [
        legend_item(label, fig.quad(**nowhere, color=COLOURS.get(name, name), line_color=None))
        for name, label in labels.items()
    ]
