"""Decompression of chunks of trace files in C, called by `chunks`."""

import numpy as np

class _Workspace: ...

def workspace() -> _Workspace: ...
def read_chunks(
    workspace: _Workspace,
    descriptor: int,
    chunks: np.ndarray,
    rows: int,
    columns: tuple[tuple[object, ...], ...],
    /,
) -> None: ...
