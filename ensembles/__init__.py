"""Analyse recorded I/O: from the calls of thousands of tasks to ensembles.

`open` reads a run, `Run.ensemble` gives the durations of its calls, `diagnose` reports causes of slow
I/O and `compare` compares runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensembles.model import __version__ as __version__
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.answers.compare import compare
    from ensembles.answers.diagnose import diagnose
    from ensembles.api.ensemble import Ensemble
    from ensembles.api.run import Events, Run, open
    from ensembles.model.calls import OPS, Call
    from ensembles.model.metadata import Process
    from ensembles.recorder.annotate import phase, region

__all__ = [
    "OPS",
    "Call",
    "Ensemble",
    "EnsioError",
    "Events",
    "Process",
    "Run",
    "compare",
    "diagnose",
    "open",
    "phase",
    "region",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``ensio --help`` starts without NumPy."""
    home: Any
    match name:
        case "Events" | "Run" | "open":
            from ensembles.api import run as home
        case "Ensemble":
            from ensembles.api import ensemble as home
        case "compare":
            from ensembles.answers import compare as home
        case "diagnose":
            from ensembles.answers import diagnose as home
        case "OPS" | "Call":
            from ensembles.model import calls as home
        case "Process":
            from ensembles.model import metadata as home
        case "phase" | "region":
            from ensembles.recorder import annotate as home
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(home, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
