"""Rules of programs that wait for the disk.

``sync-per-write``: after every few writes. ``o-sync``: in each write, as files are open so. ``close-cost``:
in closes, for longer than it takes to write what the cache holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case, how_long
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable, matters
from ensembles.diagnosis.limits import (
    COPIED_BYTES_PER_NS,
    FAR,
    LARGE_BYTES,
    LEAST_CALLS,
    LEAST_TARGET_BYTES_PER_NS,
    LOW,
)
from ensembles.diagnosis.path_calls import MOVING
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.one_run import refuse_syncs_of_steps
from ensembles.diagnosis.storage_load import Flush, flush_of_closes
from ensembles.diagnosis.without_calls import refuse
from ensembles.model.distinct import distinct_rows
from ensembles.model.levels import AGAIN, FEW, LONGER, MOST, SEVERAL, SMALL_BYTES
from ensembles.model.metadata import OPEN_FLAGS, OPEN_RANKS
from ensembles.model.units import bytes_text, count_text, number_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def of_synced_files(case: Case, uses: FileUses) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Compute which share of each row goes to files that its task syncs, and which of syncs could be fewer.

    Where no file of a sync is known, all of it. A file that is whole, and moved to its place as often as it
    is synced, needs these syncs. If it is written anew again and again, with few bytes, they are a habit.
    """
    table = uses.table.columns()
    syncs, moves, writes = (
        (case.calls_on_files & wanted)[table["call"]]
        for wanted in (case.ops == "sync", np.isin(case.names, list(MOVING)), case.ops == "write")
    )
    pairs = distinct_rows(table["file"], table["rank"])[1]
    synced, moved = (np.bincount(pairs, table["n"] * rows) for rows in (syncs, moves))
    if not synced.any():
        whole = dict.fromkeys(("n", "bytes", "time_ns"), np.ones(len(case)))
        return whole, whole
    written = np.bincount(pairs, table["bytes"] * writes)
    anew = (synced >= LEAST_SYNCS_WITHOUT_PHASES) & (written <= LARGE_BYTES * synced)
    many = (synced > moved) | anew
    to_files, needed = ((synced > 0) & many)[pairs], syncs & ~many[pairs]
    return (
        {what: share_of_rows(case, table, to_files, of=what) for what in ("n", "bytes")},
        {what: 1 - share_of_rows(case, table, needed, of=what) for what in ("n", "time_ns")},
    )


def how_often(writes_per_sync: float, bytes_per_sync: float | None = None) -> str:
    """Say how many writes there are for a sync, or syncs for a write.

    Examples
    --------
    >>> from ensembles.diagnosis.rules.disk_waits import how_often
    >>> how_often(3.0), how_often(300 / 301), how_often(0.5, 131072)
    ('a sync after every 3 writes', 'a sync after every write', '2 syncs after every write of 256 KiB')
    """
    syncs = number_text(1 / writes_per_sync)
    if writes_per_sync >= 1 or syncs == "1":
        writes = number_text(writes_per_sync)
        after = "write" if "1" in (writes, syncs) else f"{writes} writes"
        size = "" if bytes_per_sync is None else f" ({bytes_text(round(bytes_per_sync))})"
        return f"a sync after every {after}{size}"
    size = "" if bytes_per_sync is None else f" of {bytes_text(round(bytes_per_sync / writes_per_sync))}"
    return f"{syncs} syncs after every write{size}"


LEAST_SYNCS_WITHOUT_PHASES = 12
"""Without such phases, a program may sync once in each of its steps: ten checkpoints are not a habit."""


RECORDS, STEPS = "after many records, such as at the end of a step", "in several steps"
ADVICE_SYNC = (
    "sync less often: once {}, or when the file is closed; a checkpoint that is renamed when it is whole "
    "needs one fsync (SQLite: journal_mode=WAL, synchronous=NORMAL)"
)


def _find_syncs(case: Case, uses: FileUses) -> Remedy | None:
    syncs = (case.op == "sync") & case.on_files
    posix = case.run.counters.modules.get("POSIX")
    counted = sum(int(posix.totals.get(name) or 0) for name in ("FSYNCS", "FDSYNCS")) if posix else 0
    if counted and not syncs.any():
        raise NotApplicable(
            f"the log counts {counted:,} syncs, and DXT traces none of them: record the run with ensio"
        )
    writes = (case.op == "write") & case.on_files
    # What goes to files that are never synced does not wait for these syncs.
    synced, spare = of_synced_files(case, uses)
    calls, time_ns = (np.where(syncs, case.rows[name] * spare[name], 0.0) for name in ("n", "time_ns"))
    syncs &= calls > 0
    count = case.by_cell(calls)
    written = case.by_cell(np.where(writes, case.rows["n"] * synced["n"], 0))
    least = SEVERAL if case.phases_are_steps else LEAST_SYNCS_WITHOUT_PHASES
    # A task that writes other things too (a header) syncs as often as the median of its window.
    pairs = zip(written, (count >= least) & (written > 0), strict=True)
    usual = np.array([[np.median(row[mine]) if mine.any() else np.inf] for row, mine in pairs])
    moved = case.by_cell(np.where(writes, case.rows["bytes"] * synced["bytes"], 0))
    few = (np.minimum(written, usual) <= AGAIN * count) | (moved <= LARGE_BYTES * count)
    often = (count >= least) & (written > 0) & few
    rows = syncs & case.of_cells(often)
    if not rows.any():
        few = (count > 0) & (written > 0) & (moved <= LARGE_BYTES)
        refuse_syncs_of_steps(case, syncs & case.of_cells(few), LEAST_SYNCS_WITHOUT_PHASES)
        return None
    number = case.of_cells(np.maximum(count, 1))
    saved = np.where(rows, time_ns * (1 - 1 / number), 0.0)
    bytes_ = case.of_cells(moved)
    # What a sync no longer waits for, the last one still has to write: at best at the fastest rate.
    syncs_ns = case.of_cells(case.by_cell(time_ns))
    rate = bytes_[rows] / np.maximum(syncs_ns[rows], 1)
    moving_ns = bytes_ / max(float(np.quantile(rate, 0.95)), 0.1)
    low = np.maximum(saved - np.where(rows, np.minimum(moving_ns, LOW * saved), 0.0), 0.0)
    total, time_s = round(calls[rows].sum()), float(time_ns[rows].sum()) * 1e-9
    ratio, each = (float(values[often].sum() / count[often].sum()) for values in (written, moved))
    often_text = how_often(ratio, each)
    checks = (
        Check("after-few-writes", often_text),  # the title says it, and how many
        Check(
            "bytes-stay",
            "the bytes still have to be written by the last sync: one size of steps cannot show how "
            "much of the time is theirs (record a run with fewer syncs)",
            None,
        ),
    )
    return Remedy(
        rows,
        saved,
        f"{often_text}: {total:,} syncs, {seconds_text(time_s / total)} each",
        checks,
        {"syncs": total, "writes_per_sync": ratio, "bytes_per_sync": each},
        low,
        advice=ADVICE_SYNC.format(STEPS if each >= LARGE_BYTES else RECORDS),
    )


sync_per_write = EvidenceRule("sync-per-write", _find_syncs, FILE_USES, summed=_find_syncs)


def flagged_files(run: Run) -> dict[str, str]:
    """Return the flags of each file that was opened with some of them."""
    return {path: facts[OPEN_FLAGS] for path, facts in run.info.file_facts.items() if OPEN_FLAGS in facts}


def find_summed(case: Case, uses: FileUses) -> Remedy | None:
    """Find writes that wait, if each open of the run had flags; else sums do not show which do."""
    flagged, rows = flagged_files(case.run), case.rows
    writes = (case.layer == "posix") & (case.op == "write") & (rows["bytes"] > 0)
    if not flagged:
        return None
    some = any(OPEN_RANKS in facts for facts in case.run.info.file_facts.values())
    opens = case.by_cell(np.where((case.layer == "posix") & (case.op == "open"), rows["n"], 0))
    # A file has an open with flags in each task that uses it, and further ones may be without.
    some |= opens.sum() > max(len(flagged), np.count_nonzero(opens))
    if some or len(flagged) < len(case.run.files) - 1:
        refuse(
            case,
            case.most_s(np.where(writes, rows["time_ns"], 0.0)),
            f"sums do not show which writes used the opens of {count_text(len(flagged), 'file')} with "
            "O_SYNC, O_DSYNC or O_DIRECT",
        )
        return None
    flags = " and ".join(sorted(set(flagged.values())))
    known = f"{count_text(len(flagged), 'file')}, all that the run knows, opened with {flags}"
    none = np.zeros(len(case), bool)
    return _remedy(case, rows, writes, none, lambda part: part, tuple(flagged), flags, known)


MOST_BYTES = 4 << 20
"""Mean size of writes from which waiting for the device is mostly the time of the bytes."""


ADVICE_FLAGS = {
    True: "open without O_SYNC and O_DSYNC, and call fsync once when a step is complete (SQLite: "
    "journal_mode=WAL, synchronous=NORMAL); the administrator can check whether the file system is "
    "mounted with the option sync",
    False: "open without O_DIRECT, or join writes to 4 MiB and more before they bypass the page cache (IOR: "
    "without -B; MPICH: no hint direct_write)",
}


def _find_flags(case: Case, uses: FileUses) -> Remedy | None:
    facts = [case.run.info.file_facts.get(path, {}).get(OPEN_FLAGS, "") for path in case.run.files]
    flagged = np.array([bool(flags) for flags in facts])
    if not flagged.any():
        posix = case.layer == "posix"
        if ((case.op == "write") & posix).any() and not ((case.op == "open") & posix).any():
            raise NotApplicable("no flags of opens were recorded (streams have none): record all")
        return None
    table = uses.table.columns()
    writes = (case.ops == "write") & (case.layers == "posix")
    writes = writes[table["call"]] & (table["bytes"] > 0)
    writes_flagged = writes & flagged[table["file"]]
    waits = writes_flagged & (table["waits"] > 0)
    if writes_flagged.any() and not waits.any():
        opened = "files were opened with O_SYNC, O_DSYNC or O_DIRECT, and "
        asynchronous = np.char.startswith(case.names, "aio_")[table["call"]]
        if asynchronous[writes_flagged].all():
            flight = case.run.info.flights.get("write")
            raise NotApplicable(
                f"{opened}written by asynchronous requests, for which programs wait in calls without a file",
                None if flight is None else 1e-9 * flight.wait_ns,
            )
        raise NotApplicable(
            f"{opened}no event says that its write used such a descriptor: writes used others, or the record "
            "is of an older recorder"
        )
    chosen = writes & waits
    files = np.unique(table["file"][chosen])
    names = case.paths(np.bincount(table["file"][chosen], table["time_ns"][chosen]))
    flags = " and ".join(sorted({facts[number] for number in files.tolist()}))
    known = f"{len(files)} of {len(facts) - 1} files were opened with {flags}"
    to_rows = partial(share_of_rows, case, table, np.ones(len(chosen), bool))
    return _remedy(case, table, chosen, writes & ~waits, to_rows, names, flags, known)


def _remedy(
    case: Case,
    table: dict[str, np.ndarray],
    chosen: np.ndarray,
    others: np.ndarray,
    to_rows: Callable[[np.ndarray], np.ndarray],
    files: tuple[str, ...],
    flags: str,
    known: str,
) -> Remedy | None:
    """Take what is beyond copying off writes of a table; `to_rows` gives each row of the case its part."""
    chosen = chosen & (table["bytes"] < MOST_BYTES * np.maximum(table["n"], 1))
    count = int(table["n"][chosen].sum())
    if count < LEAST_CALLS:
        return None
    each_ns, size = (float(table[name][chosen].sum()) / count for name in ("time_ns", "bytes"))
    left = table["bytes"] / COPIED_BYTES_PER_NS[1] / np.maximum(table["time_ns"], 1)
    saved = case.rows["time_ns"] * to_rows(chosen * np.maximum(1 - left, 0))
    return Remedy(
        to_rows(chosen * 1.0) > 0,
        saved,
        f"{count:,} writes of {bytes_text(round(size))} to files opened with {flags} take "
        f"{seconds_text(each_ns * 1e-9)} each",
        (Check("flags", known), _compared(table, others, size, each_ns)),
        {"flags": flags, "writes": count, "mean_bytes": size, "mean_s": each_ns * 1e-9},
        # The bytes still have to reach the device: a later flush may take as long as they did.
        LOW * saved,
        files=files,
        advice=ADVICE_FLAGS["SYNC" in flags],
    )


def _compared(table: dict[str, np.ndarray], others: np.ndarray, size: float, each_ns: float) -> Check:
    """Compare with writes of about the same size without these flags."""
    mean = table["bytes"] / np.maximum(table["n"], 1)
    others = others & (mean > size / 2) & (mean < 2 * size)
    count = int(table["n"][others].sum())
    if count < LEAST_CALLS:
        why = "no writes of this size are without these flags: the disk may be slow as such"
        return Check("flags-cost", why, None)
    usual_ns = float(table["time_ns"][others].sum()) / count
    sentence = (
        f"{count:,} writes of about this size without these flags take {seconds_text(usual_ns * 1e-9)} each"
    )
    return Check("flags-cost", sentence, LONGER * usual_ns < each_ns)


o_sync = EvidenceRule("o-sync", _find_flags, FILE_USES, summed=find_summed)


def keep_open(case: Case, rows: np.ndarray) -> Remedy | None:
    """A close that waits for its flush: with the file open, the flush goes on while the program computes."""
    time_ns = np.where(rows, case.rows["time_ns"], 0.0)
    closes = np.bincount(case.task, np.where(rows, case.rows["n"], 0), len(case.ranks))[case.task]
    saved = time_ns * np.maximum(1 - 1 / np.maximum(closes, 1), 0)
    gain_s = case.gain_s(saved)
    # Only where calls do not keep the storage busy anyway can it write in the meantime.
    idle_s = max(case.span_s - case.most_s(case.rows["time_ns"]), 0.0)
    likely = saved * min(idle_s / max(gain_s, 1e-12), 1.0)
    count = int(case.rows["n"][rows].sum())
    if not count or count < FEW * len(np.unique(case.rows["rank"][rows])):
        return None
    at_most_s = case.most_s(time_ns)
    if case.effective_count(rows) < FEW:
        raise NotApplicable(
            f"one of {count:,} closes takes most of the {seconds_text(at_most_s)} of all: whether closing "
            "costs as much in each step, a run with more steps shows",
            at_most_s,
            suspected=False,
        )
    if not matters(case.gain_s(likely), case.run_s):
        raise NotApplicable(
            f"closing could cost up to {seconds_text(at_most_s)} of this run, which does not show what it "
            "waits for: record a run that keeps its files open, or that syncs before it closes",
            at_most_s,
        )
    mean_s, said = float(time_ns.sum()) * 1e-9 / count, how_long(case, rows)
    moved = float(case.rows["bytes"][case.on_files & (case.op == "write")].sum())
    # The usual close waits for the cache only with bytes to flush; a mean of few long ones shows no cause.
    flushes = moved > SMALL_BYTES * count and 1e9 * mean_s < FAR * case.median_ns(rows)
    could = (
        f"the storage could write for {seconds_text(idle_s)} outside of I/O calls; how much it would, is open"
    )
    unknown = Check("waits-for", could if flushes else "what they wait for is not recorded", None)
    return Remedy(
        rows,
        likely,
        f"{count:,} closes {said}" + ", and the program waits for the cache to empty" * flushes,
        (Check("each-step", "files are opened again"), unknown),
        {"closes": count, "mean_s": mean_s},
        LOW * likely * flushes,
        saved,
        advice="" if flushes else "open the file once and keep it open over the steps",
    )


def _find_closes(case: Case) -> Remedy | None:
    rows = (case.op == "close") & case.on_files
    time_ns = np.where(rows, case.rows["time_ns"], 0.0)
    at_most_s = case.most_s(time_ns)
    if not matters(at_most_s, case.run_s):
        return None
    flush = flush_of_closes(case, rows)
    opens = (case.op == "open") & case.on_files
    usual_ns = case.rows["time_ns"][opens].sum() / max(case.rows["n"][opens].sum(), 1)
    if time_ns.sum() < LONGER * usual_ns * case.rows["n"][rows].sum():
        return None
    own = np.where(rows, np.maximum(case.rows["time_ns"] - case.rows["n"] * usual_ns, 0), 0.0)
    beyond = np.maximum(own - flush.time_ns, 0.0)
    is_repeated = case.rows["n"][rows].sum() >= FEW * len(np.unique(case.rows["rank"][rows]))
    is_repeated = is_repeated and case.effective_count(rows) >= LEAST_CALLS  # one of a few long closes
    if flush.known and is_repeated and beyond.sum() > (1 - MOST) * time_ns.sum():
        return _beyond_the_flush(case, rows, own, flush, usual_ns)
    return keep_open(case, rows)


def _beyond_the_flush(case: Case, rows: np.ndarray, own: np.ndarray, flush: Flush, usual_ns: float) -> Remedy:
    count = int(case.rows["n"][rows].sum())
    mean_s = float(case.rows["time_ns"][rows].sum()) * 1e-9 / max(count, 1)
    flush_s = float(flush.time_ns[rows].sum()) * 1e-9 / max(count, 1)
    checks = (
        Check(
            "not-the-flush",
            f"{count:,} closes take {seconds_text(mean_s)} each; writing what the cache holds would take "
            f"{seconds_text(flush_s)}",
        ),
        Check(
            "rate-of-the-flush",
            (
                "the rate is that of the writes that did not fit into the cache"
                if flush.measured
                else "the cache took all writes, so that the rate is assumed: the busiest target writes "
                f"{LEAST_TARGET_BYTES_PER_NS * 1e3:.0f} MB/s"
            ),
            flush.measured or None,
        ),
        Check("not-the-server", f"an open of this run takes {seconds_text(usual_ns * 1e-9)}"),
    )
    # Closes queue up at the servers, where the calls of all tasks wait.
    saved = case.spread_ns(np.maximum(own - flush.time_ns, 0.0), np.max)
    return Remedy(
        rows,
        saved,
        f"closing files takes {seconds_text(mean_s)} each time, beyond the writing of their last bytes",
        checks,
        {"closes": count, "mean_s": mean_s},
        np.maximum(own - 2 * flush.time_ns, 0.0),
        np.where(saved > 0, case.rows["time_ns"], 0.0),
    )


close_cost = EvidenceRule("close-cost", _find_closes)
