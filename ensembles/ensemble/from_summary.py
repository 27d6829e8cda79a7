"""The ensemble of a run that keeps no events, or not all, from the summary of the recorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ensembles.ensemble.call_scale import step_of
from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.inputs import call_name, caveats_about, op_name
from ensembles.model.errors import EnsioError
from ensembles.model.units import MIB
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns, ordinal_range

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.summaries.cells import CellSummary

Ranges = tuple[tuple[int, int], ...]


class SumsError(EnsioError):
    """Raised if sums do not know what is asked, which single calls may show.

    `why`: the reason, as a clause for `RunReading.need`.
    """

    def __init__(self, run: Run, problem: str) -> None:
        self.why = f"its summary {problem}"
        how, remedy = run.info.how_it_was_recorded, run.info.how_to_keep_calls
        super().__init__(f"{run.path} {how}, and {self.why}: {remedy}")


def ensemble_from_summary(run: Run, selection: Selection, per: Literal["call", "MiB"] = "call") -> Ensemble:
    """Make the ensemble of a selection from the cells of the summary.

    A cell counts the calls of one function, size class and ordinal class.
    """
    chosen = replace(selection, ranks=None) if _all_ranks(run, selection) else selection
    refuse_sums(run, chosen.beyond_sums)
    summary = run.summary
    cells = summary.cells
    wanted = np.array([selection.wants_call(call) for call in summary.calls], bool)[cells["call"]]
    if selection.outermost:
        wanted &= cells["outer_count"] > 0
    if selection.sizes is not None:
        low, high = cells["min_requested"].astype(object), cells["max_requested"].astype(object)
        what = "counts calls of these sizes together with others"
        wanted &= _within(run, selection.sizes, low, high, wanted, what)
    if selection.ordinals is not None:
        ends = np.array([ordinal_range(number) for number in cells["ordinal_class"].tolist()]).reshape(-1, 2)
        if (ends[wanted] == 0).any():
            raise SumsError(run, "does not record the ordinals of some of these calls (leave the filter out)")
        what = "counts calls of these ordinals together with others"
        wanted &= _within(run, selection.ordinals, ends[:, 0], ends[:, 1], wanted, what)
    moved = cells["moved"] / np.maximum(cells["count"], 1)
    per_mib = per == "MiB"
    if per_mib or selection.per_byte:
        wanted &= cells["moved"] > 0
        alike = (cells["min_requested"] == cells["max_requested"]) & (moved == cells["max_requested"])
        if not alike[wanted].all():
            raise SumsError(run, "counts calls that moved different amounts together (leave the filter out)")
    scale = np.where(wanted & per_mib, moved / MIB, 1.0)
    sample = _sample(summary, wanted, scale)
    used = [summary.calls[number] for number in np.unique(cells["call"][wanted])]
    return Ensemble.from_sample(
        sample,
        per,
        name=call_name(used),
        op=op_name(used),
        notes=_notes(run, summary, wanted, sample, selection.outermost) + caveats_about(used),
        resolution_s=step_of(run.info.clock_step_s, per, MIB * _only_value(scale[wanted])),
    )


def _only_value(values: np.ndarray) -> float:
    """Return the value if all are equal, else 0."""
    return float(values[0]) if len(values) and not np.ptp(values) else 0.0


def refuse_sums(run: Run, asked: Sequence[str] = ()) -> None:
    """Check that the sums of a run know what is asked, and the durations of single calls."""
    if asked:
        raise SumsError(run, f"does not distinguish {' and '.join(asked)} (leave the filter out)")
    if not run.summary.durations_known:
        raise SumsError(run, "has no duration of single calls (ensio info has the number and the total time)")


def _all_ranks(run: Run, selection: Selection) -> bool:
    return any(low == 0 and high >= run.tasks - 1 for low, high in selection.ranks or ())


def _within(
    run: Run, ranges: Ranges, low: np.ndarray, high: np.ndarray, wanted: np.ndarray, problem: str
) -> np.ndarray:
    """Return which cells lie within one of the ranges."""
    inside, touched = np.zeros(len(low), bool), np.zeros(len(low), bool)
    for least, most in ranges:
        inside |= (low >= least) & (high <= most)
        touched |= (low <= most) & (high >= least)
    if (touched & ~inside & wanted).any():
        raise SumsError(run, f"{problem} (leave the filter out)")
    return inside


def _sample(summary: CellSummary, wanted: np.ndarray, scale: np.ndarray) -> CountedDurations:
    """Merge cells into one sample, with the durations of each cell divided by its scale."""
    cells = summary.cells
    cell, bins, count = summary.histogram
    mine = wanted[cell]
    cell, bins, count = cell[mine], bins[mine], count[mine]
    if (scale != 1.0).any():
        edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
        middle_ns = (edges_ns[bins] + edges_ns[bins + 1] - 1) / 2
        bins = bin_index(np.rint(np.minimum(middle_ns / scale[cell], 2.0**62)).astype(np.int64))
    counts = np.zeros(BIN_COUNT, np.int64)
    np.add.at(counts, bins, count)
    n = cells["count"][wanted].astype(np.float64)
    if not n.sum():
        return CountedDurations.from_counts(counts, 0.0, 0.0)
    mean_s = cells["mean_ns"][wanted] / scale[wanted] * 1e-9
    variance_s2 = np.maximum(cells["m2"][wanted], 0) / n / scale[wanted] ** 2 * 1e-18
    mean = float(n @ mean_s / n.sum())
    return CountedDurations.from_counts(
        counts,
        float((cells["min_ns"][wanted] / scale[wanted]).min() * 1e-9),
        float((cells["max_ns"][wanted] / scale[wanted]).max() * 1e-9),
        mean,
        float(n @ (variance_s2 + (mean_s - mean) ** 2) / n.sum()),
    )


def _notes(
    run: Run, summary: CellSummary, wanted: np.ndarray, sample: CountedDurations, outermost: bool
) -> list[str]:
    notes = ["this ensemble is from the run's summary, which records neither phases nor tasks"]
    inner = int((summary.cells["count"] - summary.cells["outer_count"])[wanted].sum()) if outermost else 0
    if inner:
        notes.append(
            f"the summary does not tell {inner:,} of these calls, which are inside others, from the rest"
        )
    missing = int(summary.cells["count"][wanted].sum()) - sample.total
    if missing > 0:
        notes.append(f"{missing:,} calls are not in the histogram of the summary, nor in this ensemble")
    if run.info.lost_calls:
        notes.append(
            f"{run.info.lost_calls:,} calls of this run are not in its summary, nor in this ensemble"
        )
    return notes
