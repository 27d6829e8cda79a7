"""Functions of higher layers that methods of the model call.

`Events.ensemble` returns an `Ensemble`, a class that is built on events: the model cannot import it. The
package ``ensembles`` sets the function when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.model.events import Events

ensemble_from_events: Callable[[Events, Literal["call", "MiB"]], Ensemble]
