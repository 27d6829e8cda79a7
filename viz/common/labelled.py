"""Several ensembles in one picture, and their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensembles.ensemble.ensemble import Ensemble
from ensembles.viz.common.figures import ensemble_from


def labelled_ensembles(data: Any) -> dict[str, Ensemble]:
    """Return the ensembles of a picture by label."""
    if isinstance(data, Mapping):
        found = {str(label): ensemble_from(each) for label, each in data.items()}
    elif isinstance(data, list | tuple):
        each = [ensemble_from(one) for one in data]
        found = {f"{number}: {one.name or 'calls'}": one for number, one in enumerate(each, 1)}
    else:
        one = ensemble_from(data)
        found = {one.name or "calls": one}
    if len({ensemble.per for ensemble in found.values()}) > 1:
        raise ValueError("durations per call and per MiB cannot share an axis: draw two figures")
    return found
