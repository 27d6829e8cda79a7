"""The pictures of a report as data, which the page draws when they come into view."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.embed.util import OutputDocumentFor

from ensembles.viz.theme import spoken_title, theme_script


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
        HTML of the script elements: the data of the pictures as JSON, and the programs that draw them and
        give them the colours that the reader prefers.
    dict of str to str
        By name: HTML of the division into which the picture is drawn, with its titles for screen readers.

    Raises
    ------
    RuntimeError
        Two pictures that are not in `linked` share a model.

    Examples
    --------
    >>> from bokeh.plotting import figure
    >>> script, divisions = embed_pictures({"rate": figure()}, linked=())
    >>> divisions["rate"]
    '<div id="picture-rate" role="figure" aria-label="rate" class="undrawn" style="min-height: 600px"></div>'
    """
    together = [name for name in pictures if name in linked]
    groups = [together] if together else []
    groups += [[name] for name in pictures if name not in linked]
    _check_apart([[pictures[name] for name in names] for names in groups])
    data = [_data({name: pictures[name] for name in names}) for names in groups]
    divisions = {
        name: f'<div id="picture-{name}" role="figure" aria-label="{escape(spoken_title(picture) or name)}" '
        f'class="undrawn" style="min-height: {_height(picture)}px"></div>'
        for name, picture in pictures.items()
    }
    program = files("ensembles.viz").joinpath("report_drawing.js").read_text(encoding="utf-8")
    return "\n".join([*data, theme_script(), f"<script>\n{program}</script>"]), divisions


def _check_apart(groups: Sequence[Sequence[Any]]) -> None:
    seen: set[str] = set()
    for group in groups:
        mine = {model.id for picture in group for model in picture.references()}
        if seen & mine:
            raise RuntimeError(
                "two pictures share a model: name them as linked, so that they are drawn together"
            )
        seen |= mine


def _height(picture: Any) -> int:
    """Height in pixels that is kept free for a picture."""
    return getattr(picture, "height", None) or 300


def _data(pictures: Mapping[str, Any]) -> str:
    places = {picture.id: f"picture-{name}" for name, picture in pictures.items()}
    # A document for the time of writing: the pictures may be part of another one, and be saved again.
    with OutputDocumentFor(list(pictures.values()), always_new=True) as document:
        text = serialize_json({"document": document.to_json(deferred=False), "places": places})
    # No text in the data can end the script element.
    text = text.replace("<", "\\u003c")
    ids = " ".join(places.values())
    return f'<script type="application/json" class="pictures" data-places="{ids}">{text}</script>'
