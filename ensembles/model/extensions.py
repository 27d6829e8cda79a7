"""Functions of higher layers that methods of the model call.

`SiteTable` looks up places in programs, by tools of the system. `Events.ensemble` returns an `Ensemble`, a
class that is built on events. `Run.report` draws pictures. Lower layers cannot import these. The package
``ensembles`` sets the functions when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import os

    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.model.events import Events
    from ensembles.model.sites import Frame
    from ensembles.run.run import Run

ensemble_from_events: Callable[[Events, Literal["call", "MiB"]], Ensemble]
resolve_sites: Callable[[Sequence[tuple[Frame, ...]]], list[tuple[Frame, ...]]]
write_report: Callable[[Run, str | os.PathLike[str]], int]
