"""The loops in C. Each function is documented where it is called: see the comment over its group."""

import numpy as np

_Columns = tuple[np.ndarray | None, ...]
_Scalars = tuple[int | float, ...]

# ensembles.summaries.bins
def bin_indices(value: np.ndarray, out: np.ndarray, /) -> None: ...
def bit_lengths(value: np.ndarray, out: np.ndarray, /) -> None: ...

# ensembles.summaries.kernels, ensembles.summaries.kernels
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
    flight_ns: np.ndarray | None,
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
    begun: np.ndarray | None,
    /,
) -> tuple[int, int] | None: ...
def time_bounds(
    start_ns: np.ndarray, duration_ns: np.ndarray, flight_ns: np.ndarray | None, /
) -> tuple[int, int, int, int, int]: ...
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

# ensembles.cli.run, ensembles.summaries.keyed_sums
def read_counter() -> int: ...
def sum_by_keys(
    keys: tuple[np.ndarray, ...],
    values: tuple[np.ndarray, ...],
    ways: str,
    taken: np.ndarray | None,
    row_of: np.ndarray | None,
    /,
) -> bytes: ...

# ensembles.summaries.calltable; sum_calls takes columns of events, then ``bits``, ``sums`` and ``ends``
def sum_calls(*arrays: np.ndarray) -> None: ...
def sum_powers(
    call: np.ndarray, duration_ns: np.ndarray, mean_ns: np.ndarray, sums: np.ndarray, /
) -> None: ...

# ensembles.summaries.open_time; columns of events, then ``bits``, directions and edges by call
def join_uses(*arrays: np.ndarray) -> bytes: ...

# ensembles.readers.native.job_file_codec
def decode_block(block: object, out: np.ndarray, /) -> int: ...
def unshuffle(shuffled: object, first: int, itemsize: int, out: np.ndarray, /) -> None: ...
def shuffle(items: object, itemsize: int, out: np.ndarray, /) -> bool: ...

# ensembles.readers.native.window_decoder
def compact_events(raw: np.ndarray, /) -> int: ...
def decode_events(
    raw: np.ndarray,
    call_numbers: np.ndarray,
    file_numbers: np.ndarray,
    site_numbers: np.ndarray,
    out: _Columns,
    scalars: _Scalars,
    /,
) -> tuple[int, int] | None: ...
def read_window(
    descriptor: int,
    position: int,
    slots: tuple[int, int, int],
    first: int,
    events: int,
    raw: np.ndarray,
    call_numbers: np.ndarray,
    file_numbers: np.ndarray,
    site_numbers: np.ndarray,
    out: _Columns,
    scalars: _Scalars,
    /,
) -> tuple[int, int, int, int, int, int, int]: ...

# ensembles.readers.tracefile.index
def are_chunks_sorted(
    rank: np.ndarray | None,
    start: np.ndarray | None,
    duration: np.ndarray | None,
    chunks: np.ndarray,
    rows: int,
    first_row: np.ndarray,
    ranks: np.ndarray,
    first_start: np.ndarray,
    last_start: np.ndarray,
    max_end: np.ndarray,
    /,
) -> bool: ...
def describe_rows(
    start: np.ndarray,
    duration: np.ndarray,
    call: np.ndarray,
    file: np.ndarray,
    requested: np.ndarray,
    /,
) -> tuple[int, int, int, int, int]: ...

# ensembles.structure.phases.gap_occupancy: columns of events, cells of gaps, then `GapOccupancy.arrays`
def mark_gaps(*arrays: np.ndarray) -> None: ...

# ensembles.structure.phases.sampled_ranks: columns of events, kinds of functions, edges, and cells by kind
def mark_starts(*arrays: np.ndarray) -> None: ...

# ensembles.structure.phases.result
def numbers_between(time: np.ndarray, out: np.ndarray, cuts: np.ndarray, number: np.ndarray, /) -> None: ...

# ensembles.structure.strides
def strided_reads(
    arrays: tuple[np.ndarray | None, ...],
    least_reads: int,
    most_positions: int,
    written_share: float,
    row_bytes: int,
    /,
) -> tuple[bytes, bytes]: ...

# ensembles.structure.ordinals.ensembles: ordinals, durations, rows, logarithms, then what is filled
def count_ordinals(*arrays: np.ndarray) -> None: ...

# ensembles.structure.ordinals.numbering: False if calls are not in the order of rank, start and depth
def number_calls(
    rank: np.ndarray, start: np.ndarray, depth: np.ndarray, group: np.ndarray, ordinal: np.ndarray, /
) -> bool: ...
