"""Pictures of runs, events and summaries.

Each function takes the data as its first argument and returns a Bokeh figure or layout, without showing it.
`moments` returns a table.

Examples
--------
>>> from bokeh.io import show
>>> from ensembles import viz
>>> run = en.open("ensio-ior")
>>> figure = viz.rate(run)
>>> show(figure)  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensembles.viz.access_map import access_map
    from ensembles.viz.cdf import cdf
    from ensembles.viz.comparison import comparison
    from ensembles.viz.experiment import experiment
    from ensembles.viz.explore import explore
    from ensembles.viz.files import files
    from ensembles.viz.findings import findings
    from ensembles.viz.histogram import histogram
    from ensembles.viz.layers import layers
    from ensembles.viz.metadata import metadata
    from ensembles.viz.modes import modes
    from ensembles.viz.moments import moments
    from ensembles.viz.order_statistic import order_statistic
    from ensembles.viz.phases import phases
    from ensembles.viz.progress import progress
    from ensembles.viz.ranks import ranks
    from ensembles.viz.rate import rate
    from ensembles.viz.report import write_report
    from ensembles.viz.save import save
    from ensembles.viz.scaling import scaling
    from ensembles.viz.size_duration import size_duration
    from ensembles.viz.sizer import sizer
    from ensembles.viz.splitting import splitting
    from ensembles.viz.surroundings import surroundings
    from ensembles.viz.tail import tail
    from ensembles.viz.tail_diagnostics import tail_diagnostics
    from ensembles.viz.targets import targets
    from ensembles.viz.theme import theme
    from ensembles.viz.trace_diagram import trace_diagram

__all__ = [
    "access_map",
    "cdf",
    "comparison",
    "experiment",
    "explore",
    "files",
    "findings",
    "histogram",
    "layers",
    "metadata",
    "modes",
    "moments",
    "order_statistic",
    "phases",
    "progress",
    "ranks",
    "rate",
    "save",
    "scaling",
    "size_duration",
    "sizer",
    "splitting",
    "surroundings",
    "tail",
    "tail_diagnostics",
    "targets",
    "theme",
    "trace_diagram",
    "write_report",
]


class _Pictures(ModuleType):
    """A package that imports a picture when it is asked for, and gives its function.

    A function has the name of its module. When a module has been imported, Python sets it as an attribute of
    the package, where the function would be lost.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import_module(f"{__name__}.{'report' if name == 'write_report' else name}")
        return (
            getattr(sys.modules[f"{__name__}.report"], name) if name == "write_report" else vars(self)[name]
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in __all__ and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """List the pictures, without modules and imported names."""
        return sorted({*__all__, *(name for name in vars(self) if name.startswith("__"))})


sys.modules[__name__].__class__ = _Pictures
