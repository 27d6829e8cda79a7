"""Whether the rows of a trace file are in order (C); `trace_index.is_sorted` is its caller."""

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
