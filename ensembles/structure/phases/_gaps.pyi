"""Gaps between calls (C); `gaps_of_all.GapsOfAll` is its caller, `numpy_mark` names the arrays."""

import numpy as np

def mark(*arrays: np.ndarray) -> None: ...
