"""Rules of HDF5: many small requests for its structures, bytes that it moves again, and filters.

``hdf5-metadata``: it reads and writes its structures in many small requests. ``hdf5-refill``: it writes fill
values that are overwritten, or moves chunks again and again. ``hdf5-filters``: calls spend their time in
filters. Only bytes that become fewer on the way show a filter, and only calls as short as copies exclude it.
A record does not say what other time inside HDF5 is: copies, conversion of types, page faults, waiting for a
processor. The account names it by its principle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from ensembles.diagnosis.limits import LARGE_BYTES, LEAST_CALLS, LOW, MANY, fixed_costs_ns
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.distinct import extents
from ensembles.model.levels import A_TENTH, LONGER, MOST, NEARLY_ALL
from ensembles.model.units import bytes_text, seconds_text, share_text
from ensembles.structure.libraries import MOST_COMPRESSED

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


def bytes_of_files(
    table: Mapping[str, np.ndarray], data: np.ndarray, disk: np.ndarray, files: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add up bytes of each file: asked for by the program, moved by storage calls, and needed at most."""
    asked, moved = (np.bincount(table["file"][rows], table["bytes"][rows], files) for rows in (data, disk))
    low, high = extents(table["file"][disk], table["low"][disk], table["high"][disk], files)
    return asked, moved, np.maximum(asked, np.maximum(high - low, 0))


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


def _find_refill(case: Case, uses: FileUses) -> Remedy | None:
    metadata.find(case, uses)  # refuses runs without the layers
    table = uses.table.columns()
    width = len(case.run.files)
    posix, of_data = (
        case.layers[table["call"]] == "posix",
        np.char.startswith(case.names, "H5D")[table["call"]],
    )
    weight, work = np.zeros(len(posix)), np.zeros(len(posix))
    found, said = np.zeros(width, bool), []
    evidence: dict[str, float] = {}
    back = table["kind"] == READ_TO_WRITE
    for op in ("write", "read"):
        of_op = case.ops[table["call"]] == op
        data, disk = of_data & of_op, posix & of_op & ~back
        if op == "read":
            disk &= table["kind"] != METADATA  # its structures are read again as its cache of them is small
        asked, moved, needed = bytes_of_files(table, data, disk, width)
        mine = (asked > 0) & (moved >= LONGER * needed) & (moved >= LARGE_BYTES)
        if mine.any():
            excess = np.divide(needed, moved, out=np.ones(width), where=moved > 0)
            weight = np.where(disk & mine[table["file"]], 1 - excess[table["file"]], weight)
            work = np.where(data & mine[table["file"]], 1 - excess[table["file"]], work)
            total, enough = int(moved[mine].sum()), int(needed[mine].sum())
            program = int(asked[mine].sum())
            evidence |= {f"{op}_bytes": total, f"{op}_needed_bytes": enough, f"{op}_asked_bytes": program}
            said.append(bytes_again_text(op, total, enough, program))
            found |= mine
    files_back = np.bincount(table["file"][back], table["bytes"][back], width)
    mine = files_back >= LARGE_BYTES
    if mine.any():
        weight = np.where(back & mine[table["file"]], 1.0, weight)
        # A chunk that is read back was complete before, or will be: it is worked on again.
        writes = of_data & (case.ops[table["call"]] == "write") & mine[table["file"]]
        asked = np.bincount(table["file"][writes], table["bytes"][writes], width)
        work = np.where(writes, (files_back / np.maximum(files_back + asked, 1))[table["file"]], work)
        evidence["read_back_bytes"] = float(files_back[mine].sum())
        said.append(f"{bytes_text(int(files_back[mine].sum()))} read back inside H5Dwrite")
        found |= mine
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
    cost = np.bincount(table["file"], table["time_ns"] * weight, width)
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
    "look which filter the dataset has (h5dump -pH): instead of gzip, a lower level (compression_opts=1; "
    "H5Pset_deflate(plist, 1)) or a faster filter (h5py: compression='lzf'; hdf5plugin has Zstd and Blosc); "
    "instead of a fast one, none; or let several tasks compress"
)

UNSEEN_FILTERS = (
    ": bytes that do not become fewer on the way show neither filters nor that there are none, as of small "
    "datasets, whose metadata are more than their data (h5dump -pH names the filters)"
)

_FLUSHES = ("sync", "close")
"""Operations besides writes in which HDF5 filters what its chunk cache holds."""


def _find_filters(case: Case, uses: FileUses) -> Remedy | None:
    again = refill.find(case, uses)  # refuses runs without the layers
    table = uses.table.columns()
    calls, width = case.run.calls, len(case.run.files)
    op, layer, data = (
        np.array(column)[table["call"]]
        for column in zip(*((c.op, c.layer, c.name.startswith("H5D")) for c in calls), strict=True)
    )
    own = layer == "hdf5"
    if again is not None:  # work that is done again has its finding
        files = np.array([path in again.files for path in case.run.files])[table["file"]]
        own &= ~(files & np.isin(table["call"], case.rows["call"][again.rows]))
    work_ns = np.maximum(table["time_ns"] - CALL_NS * table["n"], 0.0)
    # A close of an object that flushes no chunk has nothing to filter.
    cached = np.bincount(table["file"][chunks_from_cache(table, calls)], minlength=width) > 0
    (chosen, possible), given_bytes, moved_bytes = np.zeros((2, len(op)), bool), 0, 0
    for direction in ("write", "read"):
        asked = (layer == "hdf5") & data & (op == direction)
        disk = (layer == "posix") & (op == direction)
        given, moved = (
            np.bincount(table["file"][rows], table["bytes"][rows], width) for rows in (asked, disk)
        )
        flushes = np.isin(op, _FLUSHES) & cached[table["file"]] & (direction == "write")
        mine = own & ((data & (op == direction)) | flushes)
        took_ns = np.bincount(table["file"][mine], work_ns[mine], width)
        # With still fewer bytes, the storage calls were not recorded.
        filtered = (moved < given) & (moved * MOST_COMPRESSED >= given)
        may_be = (given > 0) & (took_ns >= FILTER_NS_PER_BYTE * given)
        found = filtered & may_be
        chosen |= mine & found[table["file"]]
        possible |= mine & may_be[table["file"]]
        given_bytes += int(given[found].sum())
        moved_bytes += int(moved[found].sum())
    own_ns = share_of_rows(case, table, chosen) * case.rows["time_ns"]
    if not matters(case.most_s(own_ns), case.run_s):
        most_s = case.most_s(share_of_rows(case, table, possible) * case.rows["time_ns"])
        refuse_if_it_matters(most_s, case.run_s, UNSEEN_FILTERS, False, "the same run without filters")
        return None
    own_s = 1e-9 * float(table["time_ns"][chosen].sum())
    storage = case.layer == "posix"
    whole_s = 1e-9 * float(case.rows["time_ns"][storage].sum()) + own_s
    summed = " summed over tasks" if len(np.unique(table["rank"][chosen])) > 1 else ""
    in_parallel = bool(np.isin(table["file"][layer == "mpiio"], table["file"][chosen]).any())
    cost = np.bincount(table["file"][chosen], table["time_ns"][chosen], width)
    checks = (
        Check(
            "inside-hdf5",
            f"{seconds_text(own_s)} are in these calls and in none that HDF5 makes, "
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
        FILTERED[1] * own_ns,
        f"HDF5 spends {seconds_text(own_s)}{summed} in compression and other filters, not in the file system",
        checks,
        {"hdf5_time_s": own_s, "asked_bytes": given_bytes, "moved_bytes": moved_bytes},
        np.zeros(len(own_ns)),
        own_ns,
        case.paths(cost),
        advice=f"no file system makes this shorter: {FASTER}",
    )


filters = EvidenceRule("hdf5-filters", _find_filters, FILE_USES)
