"""Rule ``misaligned-requests``: writes to a shared file that begin or end inside a stripe are slower."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.cannot_tell import in_storage, transfers_of_shared_files
from ensembles.diagnosis.case import LEAST_ABSORBED_BYTES_PER_NS, LEAST_CALLS, SMALL_CLASS, Case
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import FROM_SHARE, Check, NotApplicable
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.slow_calls import LEAST_PHASES
from ensembles.model.distinct import distinct_rows
from ensembles.model.units import number_text, seconds_text

SERVERS = 2.0
"""Ratio that servers may have without a cause: writes of parity groups take longer than reads."""

_LEAST_T = 3.0
_MOST_ABSORBED = 0.05
"""Share of the writes that a cache may have taken: a full cache slows down others of the same size."""

_LEAST_RAGGED = 0.8
_LEAST_READERS = 0.8
"""Share of the writing tasks that read too: with fewer, readers wait less for each other."""


class SlowWrites(NamedTuple):
    """Writes that take longer than reads."""

    # call, size: Function and size class of the writes
    call: int
    size: int
    # ratio, low, high: Time for each byte, as a multiple of that of reads, and its 90 % interval over the
    # phases
    ratio: float
    low: float
    high: float
    phases: int  # Phases with writes that were compared


def against_reads(case: Case, ends: dict[str, np.ndarray]) -> SlowWrites | None:
    """Compare the most costly writes with ragged ends with reads that waited for targets, phase by phase."""
    ragged = (ends["ragged"] > 0) & (ends["size"] > SMALL_CLASS)  # small ones have a cost apart
    kinds = distinct_rows(ends["call"][ragged], ends["size"][ragged])[0].T.tolist()
    found = [each for call, size in kinds if (each := _compared(case, ends, call, size)) is not None]
    return max(found, key=lambda each: each.ratio, default=None)


def _compared(case: Case, ends: dict[str, np.ndarray], call: int, size: int) -> SlowWrites | None:
    rows = case.rows
    writes = (rows["call"] == call) & (rows["size"] == size)
    reads = (case.op == "read") & (case.layer == case.layer[writes][0]) & (rows["size"] == size)
    writers, readers = (np.unique(rows["rank"][each]) for each in (writes, reads))
    if len(np.intersect1d(writers, readers)) < _LEAST_READERS * len(writers):
        return None
    read_bytes = rows["bytes"][reads].sum() / rows["n"][reads].sum()
    written_bytes = rows["bytes"][writes].sum() / rows["n"][writes].sum()
    _, absorbed = _waiting_ns(case, np.array([call]), size, written_bytes)
    read_ns, _ = _waiting_ns(case, np.unique(rows["call"][reads]), size, read_bytes)
    mine = (ends["call"] == call) & (ends["size"] == size)
    where = np.unique(ends["phase"][mine], return_inverse=True)[1]
    n, time_ns, ragged = (
        np.bincount(where, values[mine])
        for values in (ends["n"], ends["time_ns"], ends["n"] * (ends["ragged"] > 0))
    )
    enough = n >= LEAST_CALLS
    if not read_ns or absorbed > _MOST_ABSORBED or enough.sum() < LEAST_PHASES:
        return None
    if ragged.sum() < _LEAST_RAGGED * n.sum():
        return None
    slower = np.log((time_ns / n)[enough] / written_bytes) - np.log(read_ns / read_bytes)
    mean, error = float(slower.mean()), float(slower.std(ddof=1)) / len(slower) ** 0.5
    if mean < np.log(SERVERS) or mean < _LEAST_T * error:
        return None
    low, ratio, high = np.exp([max(mean - 1.645 * error, 0.0), mean, mean + 1.645 * error]).tolist()
    return SlowWrites(call, size, ratio, low, high, len(slower))


def _waiting_ns(case: Case, calls: np.ndarray, size: int, mean_bytes: float) -> tuple[float, float]:
    """Return the mean duration of the calls that memory did not serve, and the share of the others.

    The duration is 0 where too few calls waited for targets.
    """
    table = case.evidence.durations.columns()
    mine = np.isin(table["call"], calls) & (table["size"] == size)
    count, each_ns = table["n"][mine], case.evidence.bin_ns(table["bin"][mine])
    waited = mean_bytes < LEAST_ABSORBED_BYTES_PER_NS * each_ns
    slow = int(count[waited].sum())
    mean_ns = float((count * each_ns)[waited].sum()) / slow if slow >= LEAST_CALLS else 0.0
    return mean_ns, 1 - slow / max(int(count.sum()), 1)


_LEAST_PART = 0.1
"""Part of the calls with either kind of ends: the few that happen to end with a stripe are first or last."""


def whole_in_stripes(case: Case, ends: dict[str, np.ndarray], stripes: np.ndarray) -> np.ndarray:
    """Find rows of records of which each stripe holds a whole number.

    Of k records in a stripe, two ends are at ends of the stripe; records with any other offset have fewer.
    """
    fit = np.zeros(len(ends["n"]), bool)
    for call, size in distinct_rows(ends["call"], ends["size"])[0].T.tolist():
        rows = (case.rows["call"] == call) & (case.rows["size"] == size)
        mine = (ends["call"] == call) & (ends["size"] == size)
        each = max(float(case.rows["bytes"][rows].sum() / case.rows["n"][rows].sum()), 1.0)
        inside = float(np.average(ends["ragged"][mine], weights=ends["n"][mine]))
        fit[mine] = not np.any(stripes % each) and inside <= 2 - each / float(stripes.min())
    return fit


def slopes(ends: dict[str, np.ndarray]) -> np.ndarray:
    """Regress log durations on the number of ends inside a stripe, in each phase, function and size class."""
    found = []
    enough = ends["n"] >= LEAST_CALLS
    names, group = distinct_rows(*(ends[name] for name in ("phase", "call", "size")))
    for number in range(names.shape[1]):
        mine = enough & (group == number)
        if mine.sum() < 2 or ends["n"][mine].max() > (1 - _LEAST_PART) * ends["n"][mine].sum():
            continue
        weight, x, y = ends["n"][mine], ends["ragged"][mine], ends["log_ns"][mine] / ends["n"][mine]
        x = x - np.average(x, weights=weight)
        found.append(float((weight * x * y).sum() / (weight * x * x).sum()))
    return np.array(found)


_ONE_KIND = (
    "records of one size have ends of one kind; record the same program with records that are multiples of "
    "the stripe size, and compare the runs (ensio compare)"
)
LEAST_SLOPE = 0.15
"""Logarithm of the slowdown for each end inside a stripe."""


def _find(case: Case) -> Remedy | None:
    ends, stripes = case.evidence.ends.columns(), case.evidence.stripes
    rows = transfers_of_shared_files(case, 2) & (case.op == "write")
    chosen = np.isin(ends["call"], np.unique(case.rows["call"][rows]))
    ends = {name: column[chosen] for name, column in ends.items()}
    files = np.unique(case.evidence.uses.columns()["file"])
    known = len(files) > 0 and int(files.max()) < len(stripes) and bool((stripes[files, 0] > 0).all())
    whole_ns = max(float(ends["time_ns"].sum()), 1)
    if known and len(ends["ragged"]):
        whole = whole_in_stripes(case, ends, np.unique(stripes[files, 0]))
        ends = {name: column[~whole] for name, column in ends.items()}
        if not ends["ragged"].any():
            return None
    most_s = case.most_s(np.where(in_storage(case, rows), case.rows["time_ns"], 0.0))
    if most_s < FROM_SHARE["warning"] * case.run_s:
        return None
    each_phase = slopes(ends)
    if len(each_phase) < LEAST_PHASES:
        if (slower := _against_reads(case, ends, rows)) is not None:
            return slower
        sentence = f"it could cost up to {seconds_text(most_s)} of this run: {_ONE_KIND}"
        raise NotApplicable(sentence, most_s, suspected=False)
    slope, error = float(each_phase.mean()), float(each_phase.std(ddof=1)) / len(each_phase) ** 0.5
    if slope < LEAST_SLOPE or slope < _LEAST_T * error:
        return None
    bounds = []
    for each in (slope - 1.645 * error, slope, slope + 1.645 * error):
        lost = float((ends["time_ns"] * -np.expm1(-max(each, 0) * ends["ragged"])).sum())
        bounds.append(np.where(rows, case.rows["time_ns"] * lost / whole_ns, 0.0))
    phases = f"in {len(each_phase)} phases in which writes of one size end inside and at the end of stripes"
    times_as_long = f"{number_text(np.exp(slope))} times as long"
    checks = (
        Check("each-end-costs", True, f"each end inside a stripe makes a write {times_as_long}, {phases}"),
        Check("bytes-stay", None, "bytes that writes no longer wait for have to leave the cache later"),
    )
    return Remedy(
        rows,
        bounds[1],
        f"writes to shared files take {times_as_long} for each end inside a stripe",
        checks,
        {"slowdown_per_end": float(np.exp(slope)), "phases_compared": len(each_phase)},
        0.5 * bounds[0],
        bounds[2],
    )


def _against_reads(case: Case, ends: dict[str, np.ndarray], rows: np.ndarray) -> Remedy | None:
    found = against_reads(case, ends)
    if found is None:
        return None
    rows = rows & (case.rows["call"] == found.call) & (case.rows["size"] == found.size)
    low, saved, high = (
        np.where(rows, case.rows["time_ns"] * max(1 - part / each, 0), 0.0)
        for part, each in ((SERVERS, found.low), (1, found.ratio), (1, found.high))
    )
    text = f"{number_text(found.ratio)} times as long for each byte as reads of their size by the same tasks"
    checks = (
        Check("slower-than-reads", True, f"{text}, in {found.phases} phases"),
        Check("not-the-servers", None, "whether servers write more slowly anyway, this run does not show"),
    )
    title = f"writes to shared files that end inside stripes take {text}"
    return Remedy(rows, saved, title, checks, {"slowdown_to_reads": found.ratio}, low, high)


rule = EvidenceRule("misaligned-requests", _find)
