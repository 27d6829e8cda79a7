"""Rules of HDF5: many small requests for its structures, bytes that it moves again, and filters.

``hdf5-metadata``: it reads and writes its structures in many small requests. ``hdf5-refill``: it writes fill
values that are overwritten, or moves chunks again and again. ``hdf5-filters``: calls spend their time in
filters. Only bytes that become fewer on the way show a filter, and only calls as short as copies exclude it.
A record does not say what other time inside HDF5 is: copies, conversion of types, page faults, waiting for a
processor. The account names it by its principle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import (
    CACHED,
    METADATA,
    READ_TO_WRITE,
    FileUses,
    chunks_from_cache,
    share_of_rows,
)
from ensembles.diagnosis.finding import Check, NotApplicable, matters, refuse_if_it_matters
from ensembles.diagnosis.limits import (
    LARGE_BYTES,
    LEAST_CALLS,
    LOW,
    MANY,
    SHARED_MEMORY_BYTES_PER_NS,
    fixed_costs_ns,
)
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.distinct import distinct_rows, extents
from ensembles.model.levels import A_TENTH, LONGER, MOST, NEARLY_ALL
from ensembles.model.units import DEFLATE_RATIO, bytes_text, seconds_text, share_text

FILTER_NS_PER_BYTE = 5.0
"""From this time on, the work is that of filters: copies of elements take less, compression takes more."""

CALL_NS = 20_000
"""Time of a call of HDF5 whatever its bytes: selection, metadata, the interpreter around it."""

FILTERED = (LOW, NEARLY_ALL)
"""Least and likely part of the work of filters: they run each time that a chunk is moved."""

FILL = (
    "do not write fill values that are overwritten (H5Pset_fill_time(H5D_FILL_TIME_NEVER); netCDF: "
    "nc_set_fill with NC_NOFILL; h5py: create_dataset(..., fill_time='never'))"
)
CHUNKS = (
    "let the chunk cache hold all chunks that calls come back to (H5Pset_chunk_cache; h5py: "
    "File(..., rdcc_nbytes=...)), keep the dataset open, because its cache ends with it, choose chunks in "
    "the shape of the program's pieces, and move whole chunks in one call"
)

FLUSHES = "flush less often: each H5Fflush (h5py: flush()) writes chunks that are not yet full"


def parts_of_work(own_ns: float, moved_bytes: float) -> tuple[float, float]:
    """Estimate which part of HDF5's own work goes if it moves bytes once: at least, and likely.

    Examples
    --------
    >>> from ensembles.diagnosis.rules.hdf5 import parts_of_work
    >>> parts_of_work(1e9, 4e9), parts_of_work(1e9, 2e7)
    ((0.0, 0.5), (0.5, 0.9))
    """
    return FILTERED if own_ns >= FILTER_NS_PER_BYTE * moved_bytes else (0.0, LOW)


@dataclass(frozen=True)
class Moves:
    """What calls of one operation move, file by file: arrays of shape (files,), and of rows of the table.

    Attributes
    ----------
    asked, moved, needed : numpy.ndarray
        Bytes that the program asks for, that storage calls move, and that they need at most.
    filtered, may_be : numpy.ndarray
        bool. Bytes become fewer, and the work on them is as that of filters; the work alone is.
    unpacked : numpy.ndarray
        Bytes that filters make of a byte in the file, of chunks that need to pass them once.
    data, disk, works : numpy.ndarray
        bool. Rows of the calls of the program, of the storage calls, and where filters would run.
    """

    asked: np.ndarray
    moved: np.ndarray
    needed: np.ndarray
    filtered: np.ndarray
    may_be: np.ndarray
    unpacked: np.ndarray
    data: np.ndarray
    disk: np.ndarray
    works: np.ndarray


def moves_of_files(case: Case, table: Mapping[str, np.ndarray], op: str) -> Moves:
    """Add up the bytes of each file. A chunk whose filters run needs to pass them once in each task."""
    if (found := case.shared.get((moves_of_files, op))) is not None:
        known: Moves = found
        return known
    file, width = table["file"], len(case.run.files)
    layer, ops = case.layers[table["call"]], case.ops[table["call"]]
    of_data, back = np.char.startswith(case.names, "H5D")[table["call"]], table["kind"] == READ_TO_WRITE
    data, disk = of_data & (ops == op), (layer == "posix") & (ops == op) & ~back
    if op == "read":
        disk &= table["kind"] != METADATA  # its structures are read again as its cache of them is small
    asked, moved = (np.bincount(file[rows], table["bytes"][rows], width) for rows in (data, disk))
    low, high = extents(file[disk], table["low"][disk], table["high"][disk], width)
    # A close of an object that flushes no chunk has nothing to filter.
    cached = np.bincount(file[chunks_from_cache(dict(table), case.run.calls)], minlength=width) > 0
    works = data | ((layer == "hdf5") & np.isin(ops, _FLUSHES) & cached[file] & (op == "write"))
    work_ns = np.maximum(table["time_ns"] - CALL_NS * table["n"], 0.0)
    may_be = (asked > 0) & (
        np.bincount(file[works], work_ns[works], width) >= FILTER_NS_PER_BYTE * np.maximum(asked, moved)
    )
    # Only contiguous data have a place in the file.
    chunked = np.bincount(file[data], table["high"][data] >= 0, width) == 0
    tasks, of_task = distinct_rows(file[disk], table["rank"][disk])
    first, last = extents(of_task, table["low"][disk], table["high"][disk], len(tasks[0]))
    once = np.bincount(tasks[0], np.maximum(last - first, 0), width)
    # With still fewer bytes, the storage calls were not recorded.
    filtered = may_be & (np.where(chunked, once, moved) < asked) & (moved * DEFLATE_RATIO >= asked)
    # Whole chunks that the program writes again are in its calls; parts of chunks are read back.
    again = chunked & filtered & ((op == "read") | (np.bincount(file[back], minlength=width) > 0))
    needed = np.where(again, once, np.maximum(asked, np.maximum(high - low, 0)))
    unpacked = np.where(again, asked / np.maximum(once, 1), 1.0)
    moves = Moves(asked, moved, needed, filtered, may_be, unpacked, data, disk, works)
    case.shared[moves_of_files, op] = moves
    return moves


def bytes_again_text(op: str, moved: int, needed: int, asked: int) -> str:
    """Say how many bytes were moved for how many, in numbers that a reader can compute again.

    Examples
    --------
    >>> from ensembles.diagnosis.rules.hdf5 import bytes_again_text
    >>> bytes_again_text("write", 4 << 20, 2 << 20, 2 << 20)
    '4.00 MiB written for 2.00 MiB'
    >>> bytes_again_text("read", 4 << 20, 2 << 20, 1 << 20)
    '4.00 MiB read for 2.00 MiB (from the first byte to the last; the program asked for 1.00 MiB)'
    """
    verb, program = {"write": ("written", "wrote"), "read": ("read", "asked for")}[op]
    text = f"{bytes_text(moved)} {verb} for {bytes_text(needed)}"
    if bytes_text(needed) != bytes_text(asked):
        text += f" (from the first byte to the last; the program {program} {bytes_text(asked)})"
    return text


def other_data_calls(
    case: Case, mine: Sequence[int] | np.ndarray = (), layer: str = "hdf5", prefix: str = "H5D"
) -> tuple[str, ...]:
    """Return the reads and writes of a library that a run made, without some of them."""
    others = np.setdiff1d(case.rows["call"], np.asarray(mine, np.int64))
    calls = [case.run.calls[number] for number in others.tolist()]
    data = [call.name for call in calls if call.layer == layer and call.op in ("read", "write")]
    return tuple(sorted(name for name in data if name.startswith(prefix)))


def refill_advice(case: Case, writes: bool, reads_back: bool) -> str:
    """Return what lets HDF5 move bytes once, the cause that the run shows first."""
    flushes = int(case.rows["n"][(case.op == "sync") & (case.layer == "hdf5")].sum())
    flush = [FLUSHES] * (writes and flushes >= LEAST_CALLS)
    advice = [CHUNKS, *flush, *[FILL] * writes] if reads_back else [*[FILL] * writes, CHUNKS, *flush]
    return "; ".join(advice)


def with_waits_in_hdf5(case: Case, saved_ns: np.ndarray) -> np.ndarray:
    """Add what other tasks save in collective calls of HDF5 that move no data: they wait there.

    Where at most half of the tasks of a window make the requests inside such calls, the others save the part
    of their time in the calls that the requests are of those of the busiest of these tasks.
    """
    moves = np.char.startswith(case.name, "H5D") & np.isin(case.op, ("read", "write"))
    own_ns = np.where((case.layer == "hdf5") & ~moves, case.rows["time_ns"], 0.0)
    saved, own = case.by_cell(saved_ns), case.by_cell(own_ns)
    busiest = np.argmax(saved, axis=1)[:, None]
    most, waits = (np.take_along_axis(each, busiest, 1)[:, 0] for each in (saved, own))
    alone = 2 * (saved > 0).sum(axis=1) <= case.present.sum(axis=1)
    part = np.where(alone & (most > 0), most / np.maximum(most + waits, 1), 0.0)
    # A task waits no longer than the requests take.
    part = np.minimum(part[:, None], most[:, None] / np.maximum(own, 1)) * (saved <= 0)
    found: np.ndarray = saved_ns + own_ns * case.of_cells(part)
    return found


ADVICE = (
    "make fewer objects (one dataset with an index instead of many, attributes of a group instead of "
    "each dataset's), keep datasets open, and let HDF5 join its metadata: H5Pset_libver_bounds(latest), "
    "H5Pset_meta_block_size(1 MiB), H5Pset_page_buffer_size or H5Pset_file_space_strategy(paged)"
)
ADVICE_PARALLEL = (
    "; with several tasks, H5Pset_all_coll_metadata_ops and H5Pset_coll_metadata_write let one task make "
    "these requests for all"
)


def _find_metadata(case: Case, uses: FileUses) -> Remedy | None:
    table = uses.table.columns()
    calls = case.run.calls
    layer = case.layers[table["call"]]
    of_library = layer == "hdf5"
    if not of_library.any():
        if any(path.endswith((".h5", ".hdf5", ".nc")) for path in case.run.files):
            raise NotApplicable(
                "no call of HDF5 was recorded: record the layer hdf5 too, by preload or its library"
            )
        return None
    data = np.char.startswith(case.names, "H5D") & np.isin(case.ops, ("read", "write"))
    if not (layer == "posix").any():
        raise NotApplicable(
            "calls of HDF5 were recorded without the POSIX calls inside: record the layer posix too"
        )
    chosen = np.isin(table["kind"], (METADATA, CACHED)) & ~chunks_from_cache(table, calls)
    count, transfers = int(table["n"][chosen].sum()), int(table["n"][data[table["call"]]].sum())
    busiest_s = 1e-9 * np.bincount(table["rank"][chosen], table["time_ns"][chosen]).max(initial=0)
    are_few = count < MANY or count < MOST * transfers
    if are_few and (len(case.ranks) < 2 or not matters(busiest_s, case.run_s)):
        return None
    tasks = len(np.unique(table["rank"][chosen]))
    size = float(table["bytes"][chosen].sum()) / count
    small = case.rows["size"] <= 16
    share = share_of_rows(case, table, chosen) * small
    mean_bytes, mean_ns = (case.rows[name] / case.rows["n"] for name in ("bytes", "time_ns"))
    kept = np.minimum(size / LARGE_BYTES, 1.0)
    floors = [np.minimum(each, mean_ns) for each in (case.quartile_ns(0.25), case.usual_ns(), mean_ns)]
    low, saved, high = (
        with_waits_in_hdf5(case, share * case.rows["n"] * cost * (1 - kept))
        for cost in fixed_costs_ns(mean_bytes, floors)
    )
    each_s = float(table["time_ns"][chosen].sum()) / count * 1e-9
    names = case.paths(np.bincount(table["file"][chosen], table["time_ns"][chosen]))
    checks = (
        Check(
            "inside-hdf5", f"{count:,} transfers are inside calls of HDF5 that move no data of the program"
        ),
        Check(
            "small",
            f"they are of {bytes_text(round(size))} on average, against {transfers:,} calls that move data",
        ),
        Check("by-many-tasks", f"{tasks:,} of {len(case.ranks):,} tasks make them"),
    )
    return Remedy(
        share > 0,
        saved,
        f"HDF5 makes {count:,} requests of {bytes_text(round(size))} for metadata in {tasks} "
        f"task{'s' * (tasks != 1)}, {seconds_text(each_s)} each",
        checks,
        {"requests": count, "mean_bytes": size, "data_calls": transfers, "mean_s": each_s},
        low,
        high,
        names,
        not_inside=other_data_calls(case),
        advice=ADVICE + (ADVICE_PARALLEL if tasks > 1 else ""),
    )


metadata = EvidenceRule("hdf5-metadata", _find_metadata, FILE_USES)


CALLS = "the calls of the program (H5Dwrite, H5Dread)"


def _moved_again(
    case: Case, table: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str], dict[str, float]]:
    """Find what is done again: the part of each row of storage and of HDF5, the files, sentences, numbers."""
    file, width = table["file"], len(case.run.files)
    weight, work = np.zeros((2, len(file)))
    found = np.zeros(width, bool)
    said: list[str] = []
    evidence: dict[str, float] = {}
    back = table["kind"] == READ_TO_WRITE
    for op in ("read", "write"):
        of = moves_of_files(case, table, op)
        mine = (of.asked > 0) & (of.moved >= LONGER * of.needed) & (of.moved * of.unpacked >= LARGE_BYTES)
        if mine.any():
            excess = (mine * (1 - of.needed / np.maximum(of.moved, 1)))[file]
            weight = np.where(of.disk, excess, weight)
            work = np.where(of.data | (of.works & of.filtered[file]), excess, work)
            total, enough, program = (int(each[mine].sum()) for each in (of.moved, of.needed, of.asked))
            evidence |= {f"{op}_bytes": total, f"{op}_needed_bytes": enough, f"{op}_asked_bytes": program}
            passes = f": chunks pass filters {total / enough:.3g} times" * bool(of.filtered[mine].all())
            said.insert(0, bytes_again_text(op, total, enough, program) + passes)
            found |= mine
    files_back = np.bincount(file[back], table["bytes"][back], width)
    unpacked = files_back * of.unpacked
    mine = unpacked >= LARGE_BYTES
    if mine.any():
        weight = np.where(back & mine[file], 1.0, weight)
        # A chunk that is read back was complete before, or will be: it is worked on again.
        part = unpacked / np.maximum(unpacked + of.asked, 1)
        work = np.where(of.data & mine[file], part[file], work)
        evidence["read_back_bytes"] = float(files_back[mine].sum())
        said.append(f"{bytes_text(int(files_back[mine].sum()))} read back inside H5Dwrite")
        found |= mine
    return weight, work, found, said, evidence


def _find_refill(case: Case, uses: FileUses) -> Remedy | None:
    metadata.find(case, uses)  # refuses runs without the layers
    table = uses.table.columns()
    weight, work, found, said, evidence = _moved_again(case, table)
    if not said:
        return None
    chosen = weight > 0
    saved = share_of_rows(case, table, chosen, weight) * case.rows["time_ns"]
    again = share_of_rows(case, table, work > 0, work) * case.rows["time_ns"]
    least = likely = 0.0
    if work.any():
        own_ns = float(table["time_ns"][work > 0].sum())
        evidence["hdf5_time_s"] = own_ns * 1e-9
        least, likely = parts_of_work(own_ns, float(table["bytes"][chosen].sum()))
    cost = np.bincount(table["file"], table["time_ns"] * weight, len(case.run.files))
    return Remedy(
        share_of_rows(case, table, chosen | (work > 0)) > 0,
        saved + likely * again,
        f"HDF5 moves bytes several times: {'; '.join(said)}",
        (
            Check("more-than-the-file", "; ".join(said)),
            Check("not-the-program", f"{CALLS} and the extent of the file add up to less"),
        ),
        evidence,
        # The first write of a page takes longer than the next one.
        A_TENTH * saved + least * again,
        1.5 * saved + np.where(again > 0, case.rows["time_ns"] - saved, 0.0),
        case.paths(cost * found),
        not_inside=other_data_calls(case, table["call"][work > 0]),
        advice=refill_advice(case, "write_bytes" in evidence, "read_back_bytes" in evidence),
    )


refill = EvidenceRule("hdf5-refill", _find_refill, FILE_USES)


FASTER = (
    "look which filter the dataset has (h5dump -pH): instead of gzip, level 1 if it is higher "
    "(compression_opts=1; H5Pset_deflate(plist, 1)) or a faster filter (h5py: compression='lzf'; "
    "hdf5plugin has Zstd and Blosc); instead of a fast one, none; or let several tasks compress"
)

UNSEEN_FILTERS = (
    ": bytes that do not become fewer on the way show neither filters nor that there are none, as of small "
    "datasets, whose metadata are more than their data (h5dump -pH names the filters)"
)

_FLUSHES = ("sync", "close")
"""Operations besides writes in which HDF5 filters what its chunk cache holds."""


def _find_filters(case: Case, uses: FileUses) -> Remedy | None:
    metadata.find(case, uses)  # refuses runs without the layers
    table = uses.table.columns()
    layer, file = case.layers[table["call"]], table["file"]
    once = 1 - _moved_again(case, table)[1]  # work that is done again has its finding
    (chosen, possible), given_bytes, moved_bytes = np.zeros((2, len(file)), bool), 0, 0
    for op in ("write", "read"):
        of = moves_of_files(case, table, op)
        chosen |= of.works & of.filtered[file]
        possible |= of.works & of.may_be[file]
        given_bytes += int(of.asked[of.filtered].sum())
        moved_bytes += int(of.moved[of.filtered].sum())
    copied_ns = table["bytes"] / SHARED_MEMORY_BYTES_PER_NS[1]
    pure = once * np.maximum(1 - copied_ns / np.maximum(table["time_ns"], 1), 0)
    own_ns = share_of_rows(case, table, chosen, pure) * case.rows["time_ns"]
    if not matters(case.most_s(own_ns), case.run_s):
        most_s = case.most_s(share_of_rows(case, table, possible, once) * case.rows["time_ns"])
        refuse_if_it_matters(most_s, case.run_s, UNSEEN_FILTERS, False, "the same run without filters")
        return None
    own_s = 1e-9 * float(own_ns.sum())
    storage = case.layer == "posix"
    whole_s = 1e-9 * float(case.rows["time_ns"][storage].sum()) + own_s
    summed = " summed over tasks" if len(np.unique(table["rank"][chosen])) > 1 else ""
    in_parallel = bool(np.isin(file[layer == "mpiio"], file[chosen]).any())
    cost = np.bincount(file[chosen], table["time_ns"][chosen], len(case.run.files))
    checks = (
        Check(
            "inside-hdf5",
            f"{seconds_text(own_s)} are in these calls beyond copies, and in none that HDF5 makes, "
            f"{share_text(own_s / whole_s)} of this and all storage calls",
        ),
        Check(
            "more-than-copies",
            f"copies take less: the program moved {bytes_text(given_bytes)}, storage calls "
            f"{bytes_text(moved_bytes)}",
        ),
        Check(
            "no-waiting",
            "tasks may wait for each other in HDF5" if in_parallel else "no task waits for others in HDF5",
            None if in_parallel else True,
        ),
    )
    return Remedy(
        own_ns > 0,
        own_ns,
        f"HDF5 spends {seconds_text(own_s)}{summed} in compression and other filters, not in the file system",
        checks,
        {"hdf5_time_s": own_s, "asked_bytes": given_bytes, "moved_bytes": moved_bytes},
        np.zeros(len(own_ns)),
        share_of_rows(case, table, chosen, once) * case.rows["time_ns"],
        case.paths(cost),
        advice=f"no file system makes this shorter: {FASTER}",
    )


filters = EvidenceRule("hdf5-filters", _find_filters, FILE_USES)
