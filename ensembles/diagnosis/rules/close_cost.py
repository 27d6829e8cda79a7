"""Rule ``close-cost``: closing a file takes longer than writing what is left in the cache."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case, how_long
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check, NotApplicable, matters
from ensembles.diagnosis.fixed_cost import LEAST_TARGET_BYTES_PER_NS
from ensembles.diagnosis.flushes import Flush, flush_of_closes
from ensembles.diagnosis.limits import FAR, FEW, LEAST_CALLS, LEAST_RATIO, MOST, SMALL_BYTES
from ensembles.diagnosis.remedy import Remedy
from ensembles.model.units import seconds_text


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
        0.5 * likely * flushes,
        saved,
        advice="" if flushes else "open the file once and keep it open over the steps",
    )


def _find(case: Case) -> Remedy | None:
    rows = (case.op == "close") & case.on_files
    time_ns = np.where(rows, case.rows["time_ns"], 0.0)
    at_most_s = case.most_s(time_ns)
    if not matters(at_most_s, case.run_s):
        return None
    flush = flush_of_closes(case, rows)
    opens = (case.op == "open") & case.on_files
    usual_ns = case.rows["time_ns"][opens].sum() / max(case.rows["n"][opens].sum(), 1)
    if time_ns.sum() < LEAST_RATIO * usual_ns * case.rows["n"][rows].sum():
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


rule = EvidenceRule("close-cost", _find)
