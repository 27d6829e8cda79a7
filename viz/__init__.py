"""Pictures of runs, events and summaries.

Each function takes the data as its first argument and returns a Bokeh figure or layout, without showing it.

Examples
--------
>>> from bokeh.io import show
>>> from ensembles import viz
>>> run = en.open("ensio-ior")
>>> figure = viz.rate(run)
>>> show(figure)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensembles.viz.common.save import save
    from ensembles.viz.common.theme import theme
    from ensembles.viz.explorer.explore import explore
    from ensembles.viz.pictures.access_map import access_map
    from ensembles.viz.pictures.bars import files, layers
    from ensembles.viz.pictures.comparison import comparison
    from ensembles.viz.pictures.histogram import histogram
    from ensembles.viz.pictures.modes import modes
    from ensembles.viz.pictures.phases import phases
    from ensembles.viz.pictures.progress import progress
    from ensembles.viz.pictures.ranks import ranks
    from ensembles.viz.pictures.rate import rate
    from ensembles.viz.pictures.scaling import scaling
    from ensembles.viz.pictures.splitting import splitting
    from ensembles.viz.pictures.tail import tail
    from ensembles.viz.pictures.targets import targets
    from ensembles.viz.pictures.trace_diagram import trace_diagram
    from ensembles.viz.report.page import write_report

__all__ = [
    "access_map",
    "comparison",
    "explore",
    "files",
    "histogram",
    "layers",
    "modes",
    "phases",
    "progress",
    "ranks",
    "rate",
    "save",
    "scaling",
    "splitting",
    "tail",
    "targets",
    "theme",
    "trace_diagram",
    "write_report",
]

_ELSEWHERE = {
    "explore": "explorer.explore",
    "files": "pictures.bars",
    "layers": "pictures.bars",
    "save": "common.save",
    "theme": "common.theme",
    "write_report": "report.page",
}
"""Modules of the functions that have no module of their name."""


def __getattr__(name: str) -> Any:
    """Import a picture when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_ELSEWHERE.get(name, f'pictures.{name}')}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    """List the pictures, without modules and imported names."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
