"""Events as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError

try:
    import pandas as pd
except ImportError as error:
    raise EnsioError("DataFrames need pandas, which is not installed: pip install pandas") from error

__all__ = ["make_frame", "pd"]


def make_frame(events: Any, ops: Sequence[str]) -> pd.DataFrame:
    """Convert events to a DataFrame; see `ensembles.model.events.Events.to_pandas`."""
    frame = pd.DataFrame(events.columns)
    frame["op"] = pd.Categorical.from_codes(events.op, list(ops))
    layers = sorted({call.layer for call in events.calls})
    layer_of_call = np.array([layers.index(call.layer) for call in events.calls], dtype="i2")
    frame["layer"] = pd.Categorical.from_codes(layer_of_call[events.call], layers)
    frame["call"] = _categories(events.call, [call.name for call in events.calls])
    frame["file"] = _categories(events.file, events.files)
    frame["site"] = _categories(events.site, events.sites)
    return frame


def _categories(codes: np.ndarray, names: Sequence[str]) -> Any:
    """Make a pandas categorical of ``names[codes]``; names may occur more than once."""
    unique = list(dict.fromkeys(names))
    position = {name: number for number, name in enumerate(unique)}
    return pd.Categorical.from_codes(np.array([position[name] for name in names], dtype="i8")[codes], unique)
