"""Strided reads (C), called by `ensembles.structure.strides.detect.find_strides`."""

import numpy as np

def strided_reads(
    arrays: tuple[np.ndarray | None, ...],
    least_reads: int,
    most_positions: int,
    written_share: float,
    row_bytes: int,
    /,
) -> tuple[bytes, bytes]: ...
