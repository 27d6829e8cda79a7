"""Detection of strided runs, in NumPy: what `ensembles.structure.strides.find_strides` gives."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.model.levels import AGAIN, MOST_KINDS
from ensembles.structure.strides import BYTES, LAYERS, ROW, StrideRuns

_STREAM = ("rank", "layer", "file", "lane")
_WRITTEN_SHARE = 1 / 16

Columns = dict[str, np.ndarray]


def find_strides(events: Events) -> StrideRuns:
    """Compute `detect.find_strides`."""
    if int(events.call.max()) >= len(events.calls):
        raise IndexError("the call of an event is out of range")
    op = events.op
    outer = (events.depth == 0) & (op != OPS.index("wait"))
    is_read = (op == OPS.index("read")) & (events.moved > 0)
    alone = is_read & ((events.carried & 1) == 0)
    reads = select_reads(events)
    rows = find_strided_runs(reads, AGAIN)
    return StrideRuns(
        _table_of(rows) if len(rows["rank"]) else np.empty(0, ROW),
        _bytes_of(reads),
        int(np.count_nonzero(alone)),
        int(np.count_nonzero(alone & (events.offset >= 0))),
        int(events.duration[outer].sum()),
        int(events.duration[outer & is_read].sum()),
    )


def _bytes_of(reads: dict[str, np.ndarray]) -> np.ndarray:
    code = reads["file"].astype(np.int64) * len(LAYERS) + reads["layer"]
    codes, where = np.unique(code, return_inverse=True)
    found = np.zeros(len(codes), BYTES)
    np.add.at(found["bytes"], where.reshape(-1), reads["bytes"])
    found["file"], found["layer"] = np.divmod(codes, len(LAYERS))
    return found


def _table_of(reads: dict[str, np.ndarray]) -> np.ndarray:
    """Make the rows of the reads of strided runs, up to `MOST_KINDS` and a sum."""
    new = reads["position_in_run"] == 0
    run = np.cumsum(new) - 1
    count = np.bincount(run)
    late = reads["position_in_run"] >= 3
    mixed = reads["written_bytes"] >= _WRITTEN_SHARE * reads["bytes"]
    of_run = np.bincount(run, late & mixed) >= 0.5 * np.maximum(np.bincount(run, late), 1)
    place = np.minimum(reads["position_in_run"], MOST_KINDS)
    first = np.flatnonzero(np.diff(run * (MOST_KINDS + 1) + place, prepend=-1))
    rows = np.empty(len(first), ROW)
    for name in ("rank", "file", "layer", "call", "run", "ordinal", "start_ns", "stride_bytes"):
        rows[name] = reads[name][first]
    for name in ("calls", "duration_ns", "bytes", "written_bytes", "writing_ns"):
        rows[name] = np.add.reduceat(reads[name], first)
    rows["end_ns"] = np.maximum.reduceat(reads["end_ns"], first)
    rows["reads"] = count[run[first]]
    rows["position"] = place[first] + 1 + reads["begun_before"][first]
    rows["interleaved"] = of_run[run[first]]
    return rows


def select_reads(events: Events) -> Columns:
    """Select the reads whose file offset is known.

    Parameters
    ----------
    events : Events
        All calls of some tasks.

    Returns
    -------
    dict of str to ndarray, shape (n,)
        Columns, sorted by rank, layer, file, thread and start: ``rank``, ``file``, ``layer``, ``call``,
        ``lane`` (thread), ``start_ns``, ``end_ns``, ``duration_ns``, ``offset``, ``bytes``, ``calls``,
        ``ordinal``, and ``written_before_bytes`` and ``writing_before_ns``: bytes and time of all writes of
        the task up to the start.
    """
    order = np.lexsort((events.start, events.rank))
    op, moved = events.op[order], events.moved[order]
    is_write = (op == OPS.index("write")) & (moved > 0) & ((events.carried[order] & 2) == 0)
    written = np.cumsum(np.where(is_write, moved, 0))
    writing = np.cumsum(np.where(is_write, events.duration[order], 0))
    mine = np.flatnonzero((op == OPS.index("read")) & (moved > 0) & (events.offset[order] >= 0))
    at = order[mine]
    last = len(LAYERS) - 1
    layers = (call.layer for call in events.calls)
    layer_of_call = np.array([LAYERS.index(layer) if layer in LAYERS else last for layer in layers], np.uint8)
    reads: Columns = {
        "rank": events.rank[at],
        "file": events.file[at],
        "layer": layer_of_call[events.call[at]],
        "call": events.call[at],
        "lane": events.thread[at].astype(np.int64),
        "start_ns": events.start[at],
        "end_ns": events.start[at] + events.duration[at],
        "duration_ns": events.duration[at],
        "offset": events.offset[at],
        "bytes": moved[mine],
        "calls": np.ones(len(at), np.int64),
        "written_before_bytes": written[mine],
        "writing_before_ns": writing[mine],
    }
    reads = _sorted(reads, ("start_ns", "file", "layer", "rank"))
    first = _first_of(reads, ("rank", "layer", "file"))
    number = np.arange(len(at))
    reads["ordinal"] = number - np.repeat(first, np.diff(np.append(first, len(at)))) + 1
    return _sorted(reads, ("start_ns", "lane", "file", "layer", "rank"))


def find_strided_runs(reads: Columns, least_reads: int) -> Columns:
    """Find the reads of strided runs.

    Threads of a task that read one file may share one stream, or have separate ones. Both are tried; the
    shared stream is used if it explains as many reads.

    Parameters
    ----------
    reads : dict of str to ndarray
        Result of `select_reads`.
    least_reads : int
        Least number of reads of a run, 3 or more.

    Returns
    -------
    dict of str to ndarray
        Columns of `reads` without the sums of writes, and: ``run``, index of the run of its rank, layer and
        file, from 0; ``position_in_run``, from 0; ``begun_before``, 1 if the first read of the stride is the
        last read of the run before, and not here; ``stride_bytes``; and ``written_bytes`` and ``writing_ns``
        of the writes since the read before.
    """
    found = _runs(reads, least_reads)
    first = _first_of(reads, ("rank", "layer", "file"))
    if len(reads["rank"]):
        several = np.maximum.reduceat(reads["lane"], first) != np.minimum.reduceat(reads["lane"], first)
        if several.any():
            group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(reads["rank"]))))
            found = _better(found, reads, several, group, least_reads)
    return _numbered(found)


def _better(found: Columns, reads: Columns, several: np.ndarray, group: np.ndarray, least: int) -> Columns:
    """Use the runs of all threads together, for files where these have as many reads."""
    group_of = np.full(len(group), -1)
    group_of[:] = group
    found["group"] = group_of[found["row"]]
    chosen = np.flatnonzero(several[group])
    some = {name: values[chosen] for name, values in reads.items()}
    some["lane"] = np.zeros(len(chosen), np.int64)
    back = np.lexsort((some["ordinal"], group[chosen]))
    together = _runs({name: values[back] for name, values in some.items()}, least)
    together["group"] = group[chosen][back][together["row"]]
    apart_reads = np.bincount(found["group"], minlength=len(several))
    all_reads = np.bincount(together["group"], minlength=len(several))
    wins = several & (all_reads >= apart_reads)
    parts = [
        {name: values[~wins[found["group"]]] for name, values in found.items()},
        {name: values[wins[together["group"]]] for name, values in together.items()},
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in found}


def _runs(reads: Columns, least_reads: int) -> Columns:
    """Find strided runs in separate streams.

    ``row`` is the position in `reads`, and ``begin`` the start of the run.
    """
    reads = _without_cuts(reads)
    n = len(reads["rank"])
    new = _is_first(reads, _STREAM)
    stride = np.diff(reads["offset"], prepend=0)
    hole = ~new & (stride > np.concatenate([[0], reads["bytes"][:-1]])[:n])
    stride = np.where(hole, stride, 0)
    begins = np.flatnonzero(new | (stride != np.concatenate([[-1], stride[:-1]])[:n]))
    length = np.diff(np.append(begins, n))  # equal strides
    is_run = (length >= least_reads - 1) & (stride[begins] > 0)
    length, begins = length[is_run], begins[is_run]
    # The first read of a run is the one before its first stride, unless that ends the run before.
    taken = np.concatenate([[False], begins[1:] == begins[:-1] + length[:-1]])[: len(begins)]
    low = begins - ~taken
    size = length + ~taken
    run = np.repeat(np.arange(len(low)), size)
    place = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    at = np.repeat(low, size) + place
    before = np.maximum(at - 1, 0)
    known = ~new[at]
    found = {
        name: values[at] for name, values in reads.items() if not name.endswith(("before_bytes", "before_ns"))
    }
    for short, long in (("written_bytes", "written_before_bytes"), ("writing_ns", "writing_before_ns")):
        found[short] = np.where(known, reads[long][at] - reads[long][before], 0)
    found["stride_bytes"] = stride[begins][run]
    found["position_in_run"] = place
    found["begun_before"] = taken[run].astype(np.int64)
    found["begin"] = reads["start_ns"][low][run]
    found["number"] = run
    return found


def _without_cuts(reads: Columns) -> Columns:
    """Join successive reads of a stream that have no hole between them."""
    n = len(reads["rank"])
    reads = {**reads, "row": np.arange(n)}
    if not n:
        return reads
    end = reads["offset"] + reads["bytes"]
    goes_on = ~_is_first(reads, _STREAM) & (reads["offset"] == np.concatenate([[-1], end[:-1]]))
    if not goes_on.any():
        return reads
    first = np.flatnonzero(~goes_on)
    whole = {name: values[first] for name, values in reads.items()}
    for name in ("duration_ns", "bytes", "calls"):
        whole[name] = np.add.reduceat(reads[name], first)
    whole["end_ns"] = np.maximum.reduceat(reads["end_ns"], first)
    return whole


def _numbered(found: Columns) -> Columns:
    """Number the runs by time within their rank, layer and file."""
    found = _sorted(found, ("position_in_run", "number", "lane", "begin", "file", "layer", "rank"))
    first = _is_first(found, ("rank", "layer", "file"))
    number = np.cumsum(_is_first(found, ("rank", "layer", "file", "begin", "lane", "number"))) - 1
    begin = np.flatnonzero(first)
    found["run"] = number - np.repeat(number[begin], np.diff(np.append(begin, len(number))))
    return found


def _sorted(columns: Columns, keys: tuple[str, ...]) -> Columns:
    order = np.lexsort([columns[name] for name in keys])
    return {name: values[order] for name, values in columns.items()}


def _is_first(columns: Columns, keys: tuple[str, ...]) -> np.ndarray:
    """Compute whether each row is the first with its keys; equal keys are adjacent."""
    n = len(columns[keys[0]])
    first = np.zeros(n, bool)
    first[:1] = True
    for name in keys:
        first[1:] |= columns[name][1:] != columns[name][:-1]
    return first


def _first_of(columns: Columns, keys: tuple[str, ...]) -> np.ndarray:
    return np.flatnonzero(_is_first(columns, keys))
