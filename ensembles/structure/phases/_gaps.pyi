"""Gaps between calls (C), called by `gap_occupancy.GapOccupancy`; `numpy_mark` names the arrays."""

import numpy as np

def mark(*arrays: np.ndarray) -> None: ...
