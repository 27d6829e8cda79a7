"""The ensembles of ordinals, whole, in parts, and from the recorder's summary."""

import numpy as np
import pytest
from simulated import Program

from ensembles.structure.ordinals.ensembles import APART, OrdinalEnsembles, class_ranges, ordinal_class_index
from ensembles.structure.ordinals.numbering import compute_ordinals
from ensembles.summaries.cells import CellSummary


def some_calls(seed, n=20_000, ordinals=30):
    random = np.random.default_rng(seed)
    ordinal = random.integers(1, ordinals + 1, n)
    return ordinal, random.lognormal(14, 1, n).astype(np.int64), random.integers(0, 9, n)


def test_quantiles_are_numpys():
    ordinal, duration, rank = some_calls(1)
    found = OrdinalEnsembles()
    found.add(ordinal, duration, rank)
    totals = found.totals()
    assert [entry.ordinal for entry in totals] == [entry.to for entry in totals] == list(range(1, 31))
    for entry in totals:
        mine = duration[ordinal == entry.ordinal]
        assert (entry.n, entry.tasks) == (len(mine), 9)
        expected = [*np.quantile(mine, [0.5, 0.9]), mine.min(), mine.max(), mine.mean()]
        given = [entry.median_s, entry.p90_s, entry.min_s, entry.max_s, entry.mean_s]
        np.testing.assert_allclose(given, np.array(expected) * 1e-9, rtol=1e-9)


def test_the_last_row_ends_with_the_last_ordinal():
    """131,073 calls have no call 135,168, although the row of their class could hold it."""
    found, other = OrdinalEnsembles(), OrdinalEnsembles()
    ordinal = np.arange(1, 131_074)
    low = ordinal <= 70_000
    for summary, mine in ((found, low), (other, ~low)):
        summary.add(ordinal[mine], np.full(mine.sum(), 500), np.zeros(mine.sum(), int))
    found.merge(other)
    totals = found.totals()
    assert (totals[-1].ordinal, totals[-1].to, totals[-1].n) == (131_073, 131_073, 1)
    assert sum(entry.to - entry.ordinal + 1 for entry in totals) == len(ordinal)


def test_with_too_many_calls_to_hold_the_quantiles_are_within_the_bins():
    ordinal, duration, rank = some_calls(2)
    found, whole = OrdinalEnsembles(kept=1000), OrdinalEnsembles()
    for summary in (found, whole):
        summary.add(ordinal, duration, rank)
    assert (found.exact, whole.exact) == (False, True)
    for entry, exact in zip(found.totals(), whole.totals(), strict=True):
        assert (entry.n, entry.min_s, entry.max_s, entry.mean_s) == (
            exact.n,
            exact.min_s,
            exact.max_s,
            exact.mean_s,
        )
        mine = duration[ordinal == entry.ordinal] * 1e-9
        expected = np.quantile(mine, [0.5, 0.9], method="inverted_cdf")
        np.testing.assert_allclose([entry.median_s, entry.p90_s], expected, rtol=0.032)


@pytest.mark.parametrize("kept", [1000, 1 << 22])
def test_parts_merged_are_the_whole(kept):
    ordinal, duration, rank = some_calls(3, ordinals=3000)
    whole, left, right = (OrdinalEnsembles(kept) for _ in range(3))
    whole.add(ordinal, duration, rank)
    half = np.random.default_rng(3).random(len(ordinal)) < 0.4
    left.add(ordinal[half], duration[half], rank[half])
    right.add(ordinal[~half], duration[~half], rank[~half])
    right.merge(left)
    assert right.totals() == whole.totals()
    for totals in whole.totals():
        np.testing.assert_array_equal(right.curve(totals.ordinal), whole.curve(totals.ordinal))
    assert right.trend().p == whole.trend().p


def test_progress_curves_are_empirical_distributions():
    ordinal, duration, rank = some_calls(4, n=500, ordinals=4)
    found = OrdinalEnsembles()
    found.add(ordinal, duration, rank)
    t_s, fraction = found.curve(3)
    mine = duration[ordinal == 3] * 1e-9
    at = np.quantile(mine, [0.1, 0.5, 0.99])
    np.testing.assert_allclose(
        fraction[np.searchsorted(t_s, at, side="right") - 1], [(mine <= t).mean() for t in at]
    )
    assert fraction[-1] == 1
    with pytest.raises(KeyError, match="no call of ordinal 9"):
        found.curve(9)


def test_classes_cover_every_ordinal_once():
    low, high = class_ranges(APART + 320)
    assert low[0] == 1
    np.testing.assert_array_equal(low[1:], high[:-1] + 1)
    edges = np.unique(np.concatenate([low, high, np.arange(1, 5000)]))
    number = ordinal_class_index(edges)
    assert ((low[number] <= edges) & (edges <= high[number])).all()
    assert (low == high)[:APART].all()
    beyond = np.arange(len(low)) >= APART
    assert ((high - low + 1)[beyond] / low[beyond]).max() <= 1 / 32


def test_the_recorders_summary_gives_the_same_ensembles():
    program = Program(6, 5)
    for _ in range(40):
        program.io("pwrite", 1)
        program.io("pread", 2, file=2)
    events, _ = program.recorded()
    summary = CellSummary(events.calls, events.files)
    summary.add(events)
    op = np.array([call.op == "read" for call in summary.calls])
    found = OrdinalEnsembles.from_cells(summary, op[summary.cells["call"]])
    reads = events[events.op == 0]
    ordinal, duration = compute_ordinals(events)[events.op == 0], reads.duration
    assert (found.n, found.n_unknown, found.exact) == (len(reads), 0, False)
    ranges = [(n, n) for n in range(1, 17)] + [(17, 31), (32, 63), (64, 127)]
    totals = found.totals()
    assert [(entry.ordinal, entry.to) for entry in totals] == ranges
    for entry in totals:
        mine = duration[(entry.ordinal <= ordinal) & (ordinal <= entry.to)]
        assert (entry.n, entry.tasks) == (len(mine), None)
        median_s = np.quantile(mine, 0.5, method="inverted_cdf") * 1e-9
        assert entry.median_s == pytest.approx(median_s, rel=0.032)
        assert entry.max_s == pytest.approx(mine.max() * 1e-9)


def test_a_trend_is_found_from_the_calls():
    program = Program(32, 6)
    for slower in [1, 1, 1, 2, 4, 8, 16, 32] + [1] * 8:
        program.io("pread", 1, typical_ns=1_000_000 * slower, spread=0.3)
    events, _ = program.recorded()
    found = OrdinalEnsembles()
    found.add(compute_ordinals(events), events.duration, events.rank)
    trend = found.trend()
    assert (trend.worsening, trend.from_, trend.to) == (True, 4, 8)
    assert trend.ranks_rising == 1


def test_ordinals_that_few_tasks_reach_are_no_trend():
    program = Program(20, 7)
    for _ in range(8):
        program.io("pread", 1, spread=0.1)
    for number in range(8):
        program.io("pread", 1, who=[3], typical_ns=5_000_000 * (number + 2), spread=0.1)
    events, _ = program.recorded()
    found = OrdinalEnsembles()
    found.add(compute_ordinals(events), events.duration, events.rank)
    assert len(found.totals()) == 16
    assert not found.trend().worsening


def test_nothing_is_said_of_nothing():
    found = OrdinalEnsembles()
    found.add(np.empty(0, int), np.empty(0, int), np.empty(0, int))
    assert (found.n, found.totals(), found.trend().worsening) == (0, [], False)
    zeros = OrdinalEnsembles()
    zeros.add(np.arange(1, 9), np.zeros(8, int), np.zeros(8, int))
    assert zeros.totals()[0].median_s == 0
    assert not zeros.trend().worsening
