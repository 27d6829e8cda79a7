"""Decoding of events into columns in C, called by `window_decoder`."""

import numpy as np

_Columns = tuple[np.ndarray | None, ...]
_Scalars = tuple[int | float, ...]

def compact(raw: np.ndarray, /) -> int: ...
def decode(
    raw: np.ndarray,
    call_numbers: np.ndarray,
    file_numbers: np.ndarray,
    out: _Columns,
    scalars: _Scalars,
    /,
) -> tuple[int, int] | None: ...
def read_window(
    descriptor: int,
    position: int,
    slots: int,
    first: int,
    events: int,
    raw: np.ndarray,
    call_numbers: np.ndarray,
    file_numbers: np.ndarray,
    out: _Columns,
    scalars: _Scalars,
    /,
) -> tuple[int, int, int, int, int]: ...
