"""What a summary says: its public attributes, as arrays by name, so that two summaries can be compared."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import Summary
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.summaries.target_load import AMOUNTS

OF_ONE = {
    **dict.fromkeys(("by_time", "by_rank", "active_s", "open_to_close"), DIRECTIONS),
    **dict.fromkeys(("over_time",), AMOUNTS),
}
"""Methods that say something of a direction, or of an amount."""


def arrays_of(summary: Any) -> dict[str, np.ndarray]:
    """Arrays by name: those of ``to_arrays`` where the class that names the results has it."""
    if hasattr(summary, "to_arrays") and (
        "to_arrays" in vars(type(summary)) or not vars(type(summary)).get("results")
    ):
        return dict(summary.to_arrays())
    found: dict[str, np.ndarray] = {}
    _put(found, "", summary)
    return found


def _put(found: dict[str, np.ndarray], name: str, value: Any) -> None:
    if isinstance(value, Events):
        value = dict(value.columns)
    if value is None or isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        found[name] = np.atleast_1d("None" if value is None else value)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            _put(found, f"{name}/{key}", value[key])
    elif isinstance(value, (set, frozenset)):
        found[name] = np.array(sorted(map(str, value)))
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            _put(found, f"{name}/{place}", each)
    elif is_dataclass(value):
        for field in fields(value):
            _put(found, f"{name}.{field.name}", getattr(value, field.name))
    elif callable(getattr(value, "columns", None)):
        _put(found, name, value.columns())
    else:
        _put_public(found, name, value)


def _put_public(found: dict[str, np.ndarray], name: str, value: Any) -> None:
    known = {*dir(Summary), *dir(type(value))} - {*_properties(type(value))}
    for attribute in sorted({*vars(value), *_properties(type(value))}):
        if attribute[0] != "_" and attribute not in known and not callable(getattr(value, attribute)):
            _put(found, f"{name}.{attribute}", getattr(value, attribute))
    if hasattr(value, "frequent"):
        _put(found, f"{name}.frequent", {layer: value.frequent(layer, 1 << 20) for layer in value.layers})
    for method, arguments in OF_ONE.items():
        if hasattr(type(value), method):
            for each in arguments:
                _put(found, f"{name}.{method}({each})", getattr(value, method)(each))


def _properties(kind: type) -> list[str]:
    return [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
