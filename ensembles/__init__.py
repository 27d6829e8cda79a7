"""Analyse recorded I/O: from the calls of thousands of tasks to ensembles.

`open` reads a run, `Run.ensemble` gives the durations of its calls, `diagnose` reports causes of slow
I/O and `compare` compares runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ensembles.model import extensions
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    import os

    from ensembles.comparison.compare import compare
    from ensembles.diagnosis.diagnose import diagnose
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.model.events import OPS, Call, Events
    from ensembles.model.sites import Frame
    from ensembles.recorder.annotate import phase, region
    from ensembles.run.open import open
    from ensembles.run.run import Process, Run

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
    "compare": "ensembles.comparison.compare",
    "diagnose": "ensembles.diagnosis.diagnose",
    "OPS": "ensembles.model.events",
    "Call": "ensembles.model.events",
    "Ensemble": "ensembles.ensemble.ensemble",
    "Events": "ensembles.model.events",
    "Process": "ensembles.run.run",
    "Run": "ensembles.run.run",
    "open": "ensembles.run.open",
    "phase": "ensembles.recorder.annotate",
    "region": "ensembles.recorder.annotate",
}


def _ensemble_from_events(events: Events, per: Literal["call", "MiB"]) -> Ensemble:
    from ensembles.ensemble.ensemble import Ensemble

    return Ensemble.from_events(events, per)


def _resolve_sites(sites: Sequence[tuple[Frame, ...]]) -> list[tuple[Frame, ...]]:
    from ensembles.recorder.site_places import resolve_sites

    return resolve_sites(sites)


def _write_report(run: Run, path: str | os.PathLike[str]) -> int:
    from importlib import import_module

    # By its name, as the pictures lie above this module.
    written: int = import_module("ensembles.viz.report.page").write_report(run, path)
    return written


extensions.ensemble_from_events = _ensemble_from_events
extensions.resolve_sites = _resolve_sites
extensions.write_report = _write_report


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``ensio --help`` starts without NumPy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
