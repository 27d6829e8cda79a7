"""Sums over calls (C), called by `callsums`, whose functions ``numpy_*`` name the arrays."""

import numpy as np

def sum_calls(*arrays: np.ndarray) -> None: ...
def sum_powers(
    call: np.ndarray, duration_ns: np.ndarray, mean_ns: np.ndarray, sums: np.ndarray, /
) -> None: ...
def count_sizes(
    call: np.ndarray,
    requested: np.ndarray,
    layer: np.ndarray,
    size: np.ndarray,
    count: np.ndarray,
    layer_of: np.ndarray,
    /,
) -> int: ...
def mark(numbers: np.ndarray, seen: np.ndarray, /) -> None: ...
