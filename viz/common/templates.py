"""The templates of pages: numbers and their units stay on one line."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ensembles.viz.common.figures import keep_units


def page_part(name: str) -> str:
    """Return a part of the pages that this package has as a file."""
    return files("ensembles.viz").joinpath(name).read_text(encoding="utf-8")


def rendered(name: str, **values: Any) -> str:
    """Return a page from its template.

    No line of a text ends between a number and its unit. Paths and commands, which readers copy, are marked
    by ``|e`` in the templates and stay as they are.

    Examples
    --------
    >>> from ensembles.viz.common.templates import rendered
    >>> "<title>3 tasks, 2\\xa0s</title>" in rendered("common/page.html", title="3 tasks, 2 s", margin=0)
    True
    """
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_kept)
    return environment.from_string(page_part(name)).render(values)


def _kept(value: Any) -> Any:
    return value if isinstance(value, Markup) else keep_units(str(value))
