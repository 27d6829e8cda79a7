"""The pictures of a report as data, which the page draws when they come into view.

A page carries the data and BokehJS together, compressed: a fourth of their size.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.model import Model
from bokeh.models import Plot, TabPanel, Tabs
from bokeh.models.renderers import GlyphRenderer
from bokeh.resources import Component, Resources
from bokeh.settings import settings

from ensembles.passes.progress import advance, announced
from ensembles.viz.common.figures import is_legend_button, legend_buttons_aside
from ensembles.viz.common.theme import legend_keys_program, spoken_title, theme_program

_COMPRESSION = 9
"""gzip level of arrays: with level 6, images take a tenth more, with Bokeh's level 2 a third."""

_TABS_HEIGHT = 34
"""Height of the titles of tabs, in pixels."""

_WIDGETS, _TABLES = "bokeh.models.widgets.", "bokeh.models.widgets.tables"
"""Modules whose models are in separate parts of BokehJS."""


def embed_pictures(
    pictures: Mapping[str, Any], linked: Collection[str], selects: bool = True
) -> tuple[str, dict[str, str]]:
    """Return what a page needs to draw pictures one after the other; without pictures, nothing."""
    if not pictures:
        return "", {}
    together = [name for name in pictures if name in linked]
    groups = [together] if together else []
    groups += [[name] for name in pictures if name not in linked]
    # Bokeh takes long to find the models of a picture: it does so once for each.
    models = {name: picture.references() for name, picture in pictures.items()}
    spoken = {
        model: model.html_attributes
        for found in models.values()
        for model in found
        if isinstance(model, Plot)
    }
    if not selects:
        for model in (model for found in models.values() for model in found):
            if isinstance(model, GlyphRenderer):
                model.nonselection_glyph = model.muted_glyph = "auto"
    _check_apart([{model.id for name in names for model in models[name]} for names in groups])
    settings.compression_level.set_value(_COMPRESSION)
    try:
        for fig in spoken:  # its division has the title
            fig.html_attributes = {}
        data = []
        with (
            legend_buttons_aside([model for found in models.values() for model in found]),
            announced("writing", "report", len(pictures), "pictures"),
        ):
            for names in groups:
                data.append(_data({name: pictures[name] for name in names}))
                advance(len(names))
    finally:
        settings.compression_level.unset_value()
        for fig, attributes in spoken.items():
            fig.html_attributes = attributes
    divisions = {
        name: f'<div id="picture-{name}" role="figure" '
        f'aria-label="{escape(spoken_title(picture, models[name]) or name)}" class="undrawn" '
        f'style="min-height: {_height(picture)}px"></div>'
        for name, picture in pictures.items()
    }
    every = [model for found in models.values() for model in found]
    programs = [_library(every), theme_program(), legend_keys_program()]
    # The data are a line each, and the programs all the rest.
    packed = gzip.compress("\n".join([*data, *programs]).encode(), mtime=0)
    places = json.dumps([[f"picture-{name}" for name in names] for names in groups])
    drawing = files("ensembles.viz").joinpath("report/drawing.js").read_text(encoding="utf-8")
    return (
        f'<script type="application/gzip" id="pictures" data-places=\'{escape(places)}\'>'
        f"{b64encode(packed).decode()}</script>\n<script>\n{drawing}</script>"
    ), divisions


def _library(models: Iterable[Model]) -> str:
    """Return the parts of BokehJS that models need."""
    modules = {type(model).__module__ for model in models if not is_legend_button(model)}
    parts: list[Component] = ["bokeh"]
    if any(name.startswith(_WIDGETS) for name in modules):
        parts.append("bokeh-widgets")
    if _TABLES in modules:
        parts.append("bokeh-tables")
    return "\n".join(Resources(mode="inline", components=parts).js_raw)


def _check_apart(groups: Sequence[set[str]]) -> None:
    seen: set[str] = set()
    for mine in groups:
        if seen & mine:
            raise RuntimeError(
                "two pictures share a model: name them as linked, so that they are drawn together"
            )
        seen |= mine


def _height(picture: Any) -> int:
    """Height in pixels that is kept free for a picture."""
    if isinstance(picture, Tabs):
        children = [tab.child for tab in picture.tabs if isinstance(tab, TabPanel)]
        return _TABS_HEIGHT + max((getattr(child, "height", None) or 0 for child in children), default=0)
    parts = [_height(part) for part in getattr(picture, "children", ())]
    return getattr(picture, "height", None) or sum(parts) or 300


def _data(pictures: Mapping[str, Any]) -> str:
    places = {picture.id: f"picture-{name}" for name, picture in pictures.items()}
    # The roots are put into the text of an empty document. As roots of a real one the pictures would leave
    # the one that they may be part of, and their models would be searched for five times.
    document = dict(Document().to_json(deferred=False))
    document["roots"] = Serializer(deferred=False).encode(list(pictures.values()))
    return serialize_json({"document": document, "places": places})
