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
from ensembles.viz.common.figures import is_legend_button
from ensembles.viz.common.theme import legend_keys_program, spoken_title, theme_program

_WIDGETS, _TABLES = "bokeh.models.widgets.", "bokeh.models.widgets.tables"
"""Modules whose models are in separate parts of BokehJS."""


class PageSerializer(Serializer):
    """Serializes pictures for a page, and remembers their models.

    The page has buttons of legends and spoken titles itself. Bokeh would look at each text of a list alone.
    """

    def __init__(self, selects: bool = True) -> None:
        super().__init__(deferred=False)
        self.models: list[Model] = []
        self._selects = selects

    def _encode(self, obj: Any) -> Any:
        if not isinstance(obj, Model):
            return super()._encode(obj)
        self.models.append(obj)
        if isinstance(obj, GlyphRenderer) and not self._selects:
            obj.nonselection_glyph = obj.muted_glyph = "auto"
        encoded: Any = super()._encode(obj)
        if isinstance(obj, Plot):
            encoded["attributes"].pop("html_attributes", None)
        return encoded

    def _encode_list(self, obj: list[Any]) -> Any:
        if obj and set(map(type, obj)) == {str}:
            return list(obj)
        return [self.encode(each) for each in obj if not is_legend_button(each)]


def embed_pictures(
    pictures: Mapping[str, Any], linked: Collection[str], selects: bool = True
) -> tuple[str, dict[str, str]]:
    """Return what a page needs to draw pictures one after the other; without pictures, nothing."""
    if not pictures:
        return "", {}
    together = [name for name in pictures if name in linked]
    groups = [together] if together else []
    groups += [[name] for name in pictures if name not in linked]
    models: dict[str, list[Model]] = {}
    settings.compression_level.set_value(6)  # nine takes eight times as long for a sixteenth
    try:
        data = []
        with announced("writing", "report", len(pictures), "pictures"):
            for names in groups:
                data.append(_data({name: pictures[name] for name in names}, models, selects))
                advance(len(names))
    finally:
        settings.compression_level.unset_value()
    _check_apart([{model.id for name in names for model in models[name]} for names in groups])
    divisions = {
        name: f'<div id="picture-{name}" role="figure" '
        f'aria-label="{escape(spoken_title(picture, models[name]) or name)}" class="undrawn" '
        f'style="min-height: {_height(picture)}px"></div>'
        for name, picture in pictures.items()
    }
    library = _library(model for found in models.values() for model in found)
    # The data are a line each, and the programs all the rest.
    packed = gzip.compress(
        "\n".join([*data, library, theme_program(), legend_keys_program()]).encode(), 6, mtime=0
    )
    places = json.dumps([[f"picture-{name}" for name in names] for names in groups])
    drawing = files("ensembles.viz").joinpath("report/drawing.js").read_text(encoding="utf-8")
    return (
        f'<script type="application/gzip" id="pictures" data-places=\'{escape(places)}\'>'
        f"{b64encode(packed).decode()}</script>\n<script>\n{drawing}</script>"
    ), divisions


def _library(models: Iterable[Model]) -> str:
    """Return the parts of BokehJS that models need."""
    modules = {type(model).__module__ for model in models}
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
        return 34 + max((getattr(child, "height", None) or 0 for child in children), default=0)
    parts = [_height(part) for part in getattr(picture, "children", ())]
    return getattr(picture, "height", None) or sum(parts) or 300


def _data(pictures: Mapping[str, Any], models: dict[str, list[Model]], selects: bool) -> str:
    """Return pictures that are drawn together as text, and add their models by name."""
    places = {picture.id: f"picture-{name}" for name, picture in pictures.items()}
    # The roots are put into the text of an empty document. As roots of a real one the pictures would leave
    # the one that they may be part of, and their models would be searched for five times.
    document: dict[str, Any] = {**Document().to_json(deferred=False), "roots": []}
    serializer = PageSerializer(selects)
    for name, picture in pictures.items():
        before = len(serializer.models)
        document["roots"].append(serializer.encode(picture))
        models[name] = serializer.models[before:]
    return serialize_json({"document": document, "places": places})
