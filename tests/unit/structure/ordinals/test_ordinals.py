"""Ordinals count the calls of a rank, operation and file in the order of their start."""

import itertools

import numpy as np
import pandas as pd
import pytest

from ensembles.model.events import COLUMNS, Call, Events
from ensembles.structure.ordinals.numbering import OrdinalCounter, compute_ordinals
from ensembles.summaries.bins import Ordinals

CALLS = (Call("pread", "posix", "read"), Call("pwrite", "posix", "write"), Call("read", "posix", "read"))


def random_events(seed, n=3000):
    """Calls of several ranks, files and operations, no two of a rank at once, in no order."""
    rng = np.random.default_rng(seed)
    columns = {
        "rank": rng.integers(0, 7, n),
        "thread": np.zeros(n),
        "call": rng.integers(0, len(CALLS), n),
        "depth": np.zeros(n),
        "file": rng.integers(0, 4, n),
        "offset": np.zeros(n),
        "requested": np.ones(n),
        "moved": np.ones(n),
        "error": np.zeros(n),
        "start": rng.permutation(n) * 10,
        "duration": rng.integers(0, 10, n),
    }
    return Events(columns, CALLS, ["", "/a", "/b", "/c"])


def counted_by_pandas(events, group):
    frame = pd.DataFrame({"rank": events.rank, "op": events.op, "group": group, "start": events.start})
    return (
        frame.sort_values("start").groupby(["rank", "op", "group"]).cumcount().add(1).sort_index().to_numpy()
    )


@pytest.mark.parametrize("seed", [11, 12])
def test_ordinals_are_those_of_a_grouped_count(seed):
    events = random_events(seed)
    np.testing.assert_array_equal(compute_ordinals(events), counted_by_pandas(events, events.file))


def test_ordinals_within_phases_do_not_ask_for_the_file():
    events = random_events(13)
    phase = events.start // 3001 - 1
    np.testing.assert_array_equal(compute_ordinals(events, phase), counted_by_pandas(events, phase))


@pytest.mark.parametrize("seed", [16, 17])
def test_calls_in_the_order_of_start_are_counted_as_in_any_other(seed):
    """Of calls in order, none is sorted."""
    events = random_events(seed)
    ordered = events[np.lexsort((events.start, events.rank))]
    np.testing.assert_array_equal(compute_ordinals(ordered), counted_by_pandas(ordered, ordered.file))
    phase = ordered.start // 3001 - 1
    np.testing.assert_array_equal(compute_ordinals(ordered, phase), counted_by_pandas(ordered, phase))


def test_calls_of_many_files_are_counted_rank_by_rank():
    """More files than are remembered at once."""
    count, ranks = 70_000, 3
    columns = {name: getattr(random_events(1, ranks * count), name).copy() for name in COLUMNS}
    columns["rank"], columns["call"] = np.repeat(np.arange(ranks), count), np.zeros(ranks * count)
    columns["file"] = np.tile(np.append(np.arange(count - 5), np.zeros(5)), ranks)
    columns["start"] = np.arange(ranks * count)
    ordinal = compute_ordinals(Events(columns, CALLS, [str(number) for number in range(count)]))
    expected = np.append(np.ones(count - 5, int), np.arange(2, 7))
    np.testing.assert_array_equal(ordinal, np.tile(expected, ranks))


@pytest.mark.parametrize("seed", [14, 15])
def test_chunks_of_ranks_in_order_give_the_ordinals_of_the_whole(seed):
    events = random_events(seed).sorted()
    cuts = [0, *np.sort(np.random.default_rng(seed).integers(0, len(events), 9)), len(events)]
    counter = OrdinalCounter()
    parts = [counter.count(events[low:high]) for low, high in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), compute_ordinals(events))
    assert counter.out_of_order == 0


def test_chunks_that_come_in_no_order_are_told():
    events = random_events(16, 400).sorted()
    counter = OrdinalCounter()
    counter.count(events[200:])
    counter.count(events[:200])
    assert counter.out_of_order > 0


def test_without_overlap_in_a_rank_the_recorders_ordinals_are_the_same():
    events = random_events(17).sorted()
    np.testing.assert_array_equal(compute_ordinals(events), Ordinals().count(events))


def test_a_call_inside_another_comes_after_it():
    events = random_events(18, 3)
    columns = events.columns | {
        "rank": [0, 0, 0],
        "call": [0, 2, 0],
        "file": [1, 1, 1],
        "depth": [1, 0, 0],
        "start": [100, 100, 50],
        "duration": [10, 40, 10],
    }
    assert compute_ordinals(Events(columns, CALLS, events.files)).tolist() == [3, 2, 1]


def test_no_events_have_no_ordinals():
    empty = Events.empty(CALLS)
    assert compute_ordinals(empty).shape == OrdinalCounter().count(empty).shape == (0,)


def test_as_many_phases_as_events_are_asked_for():
    with pytest.raises(ValueError, match="3 events and 2 phases"):
        compute_ordinals(random_events(19, 3), np.zeros(2, int))
