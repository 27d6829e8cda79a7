"""The pictures of a report as data, which the page draws when they come into view."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document


def embed_pictures(pictures: Mapping[str, Any], linked: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return what a page needs to draw pictures one after the other.

    Parameters
    ----------
    pictures : mapping of str to Bokeh model
    linked : collection of str
        Names of the pictures that share a range or a selection: they are drawn together.

    Returns
    -------
    str
        HTML of the script elements: the data of the pictures as JSON, and the program that draws them.
    dict of str to str
        By name: HTML of the division into which the picture is drawn.

    Raises
    ------
    RuntimeError
        Two pictures that are not in `linked` share a model.

    Examples
    --------
    >>> from bokeh.plotting import figure
    >>> script, divisions = embed_pictures({"rate": figure()}, linked=())
    >>> divisions["rate"]
    '<div id="picture-rate" class="undrawn" style="min-height: 600px"></div>'
    """
    together = [name for name in pictures if name in linked]
    groups = [together] if together else []
    groups += [[name] for name in pictures if name not in linked]
    data = [_data({name: pictures[name] for name in names}) for names in groups]
    divisions = {
        name: f'<div id="picture-{name}" class="undrawn" style="min-height: {_height(picture)}px"></div>'
        for name, picture in pictures.items()
    }
    program = files("ensembles.viz").joinpath("report_drawing.js").read_text(encoding="utf-8")
    return "\n".join([*data, f"<script>\n{program}</script>"]), divisions


def _height(picture: Any) -> int:
    """Height in pixels that is kept free for a picture."""
    return getattr(picture, "height", None) or 300


def _data(pictures: Mapping[str, Any]) -> str:
    document = Document()
    # Without freezing, Bokeh would search the models of all figures again for each figure.
    with document.models.freeze():
        for picture in pictures.values():
            document.add_root(picture)
    places = {picture.id: f"picture-{name}" for name, picture in pictures.items()}
    text = serialize_json({"document": document.to_json(deferred=False), "places": places})
    # No text in the data can end the script element.
    text = text.replace("<", "\\u003c")
    ids = " ".join(places.values())
    return f'<script type="application/json" class="pictures" data-places="{ids}">{text}</script>'
