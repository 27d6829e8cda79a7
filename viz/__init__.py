"""Pictures of runs, events and summaries. Each takes the data first, returns the figure, and does not show
it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensembles.viz.histogram import histogram
    from ensembles.viz.moments import moments
    from ensembles.viz.rate import rate
    from ensembles.viz.report import write_report
    from ensembles.viz.trace_diagram import trace_diagram

__all__ = ["histogram", "moments", "rate", "trace_diagram", "write_report"]

_HOMES = {"write_report": "report"}


def __getattr__(name: str) -> Any:
    """Import a picture when it is first asked for; its function takes the place of the module of the same
    name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, name)}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
