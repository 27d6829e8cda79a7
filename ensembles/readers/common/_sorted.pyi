"""Check of the order of rows in C, called by `readers.tracefile.index.is_sorted`."""

import numpy as np

def is_sorted(
    rank: np.ndarray | None,
    start: np.ndarray | None,
    duration: np.ndarray | None,
    begins: np.ndarray,
    ranks: np.ndarray,
    max_end: int,
    /,
) -> bool: ...
