"""Counting and spreading (C), called by `kernels` and `spreading`."""

import numpy as np

def spread(
    start_ns: np.ndarray,
    duration_ns: np.ndarray,
    row: np.ndarray,
    amount: np.ndarray | None,
    level: int,
    first: int,
    out: np.ndarray,
    cells: int,
    /,
) -> None: ...
def spread_calls(
    start_ns: np.ndarray,
    duration_ns: np.ndarray,
    call: np.ndarray,
    row_of: np.ndarray,
    rank: np.ndarray | None,
    in_row: int,
    depth: np.ndarray | None,
    moved: np.ndarray | None,
    carried: np.ndarray | None,
    bits: np.ndarray | None,
    shift: int,
    level: int,
    first: int,
    out: np.ndarray | None,
    cells: int,
    /,
) -> tuple[int, int] | None: ...
def count_bins(group: np.ndarray, duration_ns: np.ndarray, counts: np.ndarray, /) -> None: ...
def count_groups(
    key: np.ndarray,
    duration_ns: np.ndarray,
    taken: np.ndarray | None,
    cuts: np.ndarray,
    counts: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    sums: np.ndarray,
    place: np.ndarray | None,
    /,
) -> int: ...
def count_seconds(seconds: np.ndarray, limit_s: float, counts: np.ndarray, stats: np.ndarray, /) -> int: ...
