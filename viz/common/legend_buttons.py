"""Buttons for the entries of legends in notebooks, where no page makes them (viz/common/legend_keys.js)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from bokeh.models import CustomJS, InlineStyleSheet, Model, Plot
from bokeh.models.annotations import LegendItem
from bokeh.models.widgets import Button
from bokeh.plotting import figure

_TAG = "entry of a legend"

_SEEN_WITH_FOCUS = """
:host { position: absolute; left: 0; top: 0; z-index: 10; }
:host(:not(:focus-within)) { width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""

_CLICK_JS = """
    const visible = !renderers.some((each) => each.visible);
    for (const each of renderers) each.visible = visible;
"""


def add_legend_buttons(fig: figure) -> None:
    """Give the entries of a figure's legends to the keyboard: each has a button, seen while it has the focus.

    Bokeh draws legends on a canvas, which no key reaches.

    Examples
    --------
    >>> from ensembles import viz
    >>> fig = viz.rate(en.open("ensio-ior").select(op="write"))
    >>> [button.label for button in fig.elements]
    ['show or hide write']
    """
    items = [item for legend in fig.legend if legend.click_policy == "hide" for item in legend.items]
    fig.elements = [*fig.elements, *(_button(item) for item in items if isinstance(item, LegendItem))]


def _button(item: LegendItem) -> Button:
    # Numbers that follow the name may change with what is in view.
    name = str(getattr(item.label, "value", item.label)).partition(":")[0]
    button = Button(
        label=f"show or hide {name}", tags=[_TAG], stylesheets=[InlineStyleSheet(css=_SEEN_WITH_FOCUS)]
    )
    button.js_on_event("button_click", CustomJS(args={"renderers": item.renderers}, code=_CLICK_JS))
    return button


@contextmanager
def legend_buttons_aside(models: Collection[Model]) -> Iterator[None]:
    """Take the buttons out of figures for a page that has its own, and needs no widgets of Bokeh."""
    whole = {model: model.elements for model in models if isinstance(model, Plot) and model.elements}
    for fig, elements in whole.items():
        fig.elements = [each for each in elements if _TAG not in getattr(each, "tags", ())]
    try:
        yield
    finally:
        for fig, elements in whole.items():
            fig.elements = elements


def is_legend_button(model: Model) -> bool:
    """Whether a model is a button of a legend."""
    return _TAG in model.tags
