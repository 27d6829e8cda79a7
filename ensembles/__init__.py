"""ensio's analysis: from the I/O calls of thousands of tasks to ensembles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensembles.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.comparing import compare
    from ensembles.diagnosis.diagnose import diagnose
    from ensembles.ensemble import Ensemble
    from ensembles.events import OPS, Call, Events
    from ensembles.opening import open
    from ensembles.regions import phase, region
    from ensembles.run import Process, Run

__version__ = "0.1.0"

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

_HOMES = {
    "compare": "ensembles.comparing",
    "diagnose": "ensembles.diagnosis.diagnose",
    "OPS": "ensembles.events",
    "Call": "ensembles.events",
    "Ensemble": "ensembles.ensemble",
    "Events": "ensembles.events",
    "Process": "ensembles.run",
    "Run": "ensembles.run",
    "open": "ensembles.opening",
    "phase": "ensembles.regions",
    "region": "ensembles.regions",
}


def __getattr__(name: str) -> Any:
    """Import what stands on NumPy when it is first asked for, so that ``ensio --help`` need not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
