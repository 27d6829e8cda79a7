"""Light and dark pictures: the colours without a meaning are exchanged, those of operations stay.

A picture is made for a light page. `theme` makes it dark for a notebook; a page that `embed_pictures` made
follows the reader's preference (``prefers-color-scheme``) by the same table, with one copy of the data.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib.resources import files
from typing import Any, Literal, TypeVar

from bokeh.model import Model
from bokeh.models import ColorMapper, InlineStyleSheet, Plot

from ensembles.viz.common.figures import titles_of

P = TypeVar("P", bound=Model)

DARK = {
    "#ffffff": "#1d1d21",
    "white": "#1d1d22",
    "black": "#e6e6ea",
    "#222222": "#e6e6eb",
    "#444444": "#d2d2d8",
    "#666666": "#b2b2b9",
    "#777777": "#a3a3ab",
    "#999999": "#74747c",
    "#e5e5e5": "#3b3b41",
    "#e6e6e6": "#3b3b42",
    "#207a20": "#6fcf6f",
    "#bdbdbd": "#64646c",
    "#5e5e5e": "#2c2c32",
}
"""Colour on a dark page of each colour of backgrounds, axes, texts and neutral marks, and of waiting,
which would be the brightest of all. All differ, so that a picture can be made light again."""

_WIDGETS = """
:host { --color: var(--ensio-widget-text, #18191d); --background-color: var(--ensio-widget, #fff); }
.bk-tab:hover { background-color: var(--ensio-widget-active, #f9f9f9); }
"""

_FILTERED = """
:host { filter: var(--ensio-widget-filter, none); }
:host { color: var(--ensio-filtered-text, inherit); color-scheme: light; }
"""

_LIGHT = {dark: light for light, dark in DARK.items()}

TURNED = "turned on a dark page"
"""Tag of a colour mapper whose palette is reversed on a dark page, so that high values stand out."""
_IS_TURNED = "turned"


def theme(picture: P, name: Literal["light", "dark"] = "dark") -> P:
    """Exchange the colours of backgrounds, axes and texts of a picture.

    Parameters
    ----------
    picture : Bokeh figure or layout
        Is changed.
    name : {"light", "dark"}

    Returns
    -------
    Bokeh figure or layout
        The same picture.

    Raises
    ------
    ValueError
        There is no theme of this name.

    Examples
    --------
    >>> from ensembles import viz
    >>> figure = viz.theme(viz.rate(en.open("ensio-ior")), "dark")
    >>> figure.background_fill_color
    '#1d1d21'
    """
    if name not in ("light", "dark"):
        raise ValueError(f'there is no theme "{name}": choose light or dark')
    table = DARK if name == "dark" else _LIGHT
    for model in picture.references():
        before, after = (TURNED, _IS_TURNED) if name == "dark" else (_IS_TURNED, TURNED)
        if isinstance(model, ColorMapper) and before in model.tags:
            model.update(palette=list(reversed(model.palette)), tags=[after])
        elif isinstance(model, ColorMapper) and any(each in table for each in model.palette):
            model.palette = [table.get(str(each), each) for each in model.palette]
        for prop, value in model.properties_with_values(include_defaults=True).items():
            if not prop.endswith("color"):
                continue
            own = getattr(value, "value", value)
            if isinstance(own, str) and own.lower() in table:
                setattr(model, prop, table[own.lower()])
    return picture


def theme_program() -> str:
    """Return the program by which a page follows the reader's preference."""
    program = files("ensembles.viz").joinpath("common/theme.js").read_text(encoding="utf-8")
    return f"const ensioDark = {json.dumps(DARK)}, ensioTurned = {json.dumps(TURNED)};\n{program}"


def legend_keys_program() -> str:
    """Return the program that gives the entries of legends to the keyboard."""
    return files("ensembles.viz").joinpath("common/legend_keys.js").read_text(encoding="utf-8")


def widget_colours() -> InlineStyleSheet:
    """Return a style sheet by which the tabs of a picture take the colours of a page.

    A dark page says so by the CSS variables ``--ensio-widget``, ``--ensio-widget-text`` and
    ``--ensio-widget-active``; elsewhere they have Bokeh's colours.
    """
    return InlineStyleSheet(css=_WIDGETS)


def widget_filter() -> InlineStyleSheet:
    """Return a style sheet by which inputs and tables are inverted on a page that is dark.

    A dark page says so by the CSS variable ``--ensio-widget-filter``. Pictures must not be inverted: their
    colours have a meaning.
    """
    return InlineStyleSheet(css=_FILTERED)


def spoken_title(picture: Any, models: Collection[Any] | None = None) -> str:
    """Return the titles of a picture as one text, for screen readers."""
    known = picture.references() if models is None else models
    figures = [model for model in known if isinstance(model, Plot)]
    texts: dict[str, None] = {}
    for fig in sorted(figures, key=lambda model: int(model.id[1:]) if model.id[1:].isdigit() else 0):
        texts |= dict.fromkeys(titles_of(fig))
    return ". ".join(texts)
