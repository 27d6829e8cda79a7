"""The JSON of results: what their fields hold, by name."""

from __future__ import annotations

import math
from dataclasses import is_dataclass
from typing import Any

import numpy as np


class Fields:
    """A result whose JSON is the object of its fields."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name: results as objects, tuples and arrays as lists, NaN and ∞ as None."""
        return {name: plain(value) for name, value in vars(self).items()}


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if is_dataclass(value):
        return plain(vars(value))
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
