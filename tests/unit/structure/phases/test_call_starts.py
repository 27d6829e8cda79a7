"""In which parts of a run calls begin: found in the pass that finds the moments between them."""

from itertools import pairwise

import numpy as np
import pytest
from builders import make_events
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import CALLS, NUMBERS
from test_long_runs import run_of
from test_message_steps import two_phase_like, written

import ensembles as en
from ensembles.model.events import Events
from ensembles.run.collect import collect
from ensembles.run.reading import RunReading
from ensembles.structure.phases import detect, sampled_ranks
from ensembles.structure.phases.detect import detect_phases, find_phases
from ensembles.structure.phases.sampled_ranks import CallStarts

IO, MESSAGES, NEITHER = (NUMBERS[name] for name in ("pwrite", "MPI_Isend", "MPI_Barrier"))


def calls_at(start: np.ndarray, call: np.ndarray) -> Events:
    return make_events({"start": start, "call": call.astype(np.uint16)}, CALLS)


def in_parts(start: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Whether calls begin before, between and after the cuts."""
    edges = [-np.inf, *cuts.tolist(), np.inf]
    return np.array([bool(((low <= start) & (start < high)).any()) for low, high in pairwise(edges)])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_parts_with_calls_are_those_of_all_starts(data: st.DataObject) -> None:
    seed, scale = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.sampled_from([9, 200, 10**6, 2**60]))
    random = np.random.default_rng(seed)
    start = random.integers(-scale, scale, random.integers(0, 60))
    call = random.choice([IO, MESSAGES, NEITHER], len(start))
    cuts = np.unique(random.integers(-scale, scale, random.integers(0, 12)))
    edges = np.unique(cuts + random.integers(-2, 3, len(cuts))) if data.draw(st.booleans()) else cuts[::3]
    part = random.integers(0, 3, len(start))
    each = [CallStarts(edges) for _ in range(3)]
    for number, summary in enumerate(each):
        for half in np.array_split(np.flatnonzero(part == number), 2):
            summary.add(calls_at(start[half], call[half]))
    for other in each[1:]:
        each[0].merge(other)
    true = [in_parts(start[call == kind], cuts) for kind in (IO, MESSAGES)]
    true[1] &= bool((call == MESSAGES).any())
    found = each[0].begun(cuts)
    if found is not None:
        np.testing.assert_array_equal(found, true)
    else:  # two cuts lie between the same edges
        assert (np.bincount(np.searchsorted(edges, cuts, side="right")) > 1).any()
    at_the_cuts = CallStarts(cuts)
    at_the_cuts.add(calls_at(start, call))
    np.testing.assert_array_equal(at_the_cuts.begun(cuts), true)


@pytest.mark.parametrize("seed", range(3))
def test_unclear_parts_are_looked_at_again(seed, monkeypatch):
    events, _ = two_phase_like(seed, rounds=5)
    whole = find_phases(events)
    passes = []
    summarize = en.Run.summarize
    monkeypatch.setattr(
        en.Run, "summarize", lambda run, wanted, *more: passes.append(1) or summarize(run, wanted, *more)
    )
    for expected in (1, 2):
        passes.clear()
        sampled = detect_phases(run_of(events), most_events=len(events) // 2)
        assert len(passes) == expected
        assert (sampled.count, sampled.message_steps) == (whole.count, whole.message_steps)
        np.testing.assert_array_equal(sampled.phase_index(events), whole.phase_index(events))
        monkeypatch.setattr(sampled_ranks, "CallStarts", lambda near_ns: CallStarts(near_ns[:0]))


@pytest.mark.parametrize("with_layer", [True, False], ids=["messages", "no messages"])
def test_a_trace_file_holds_phases_between_barriers_some_without_io(tmp_path, monkeypatch, with_layer):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ENSIO_CACHE", raising=False)
    events, _ = two_phase_like(7, with_layer, rounds=20 if with_layer else 30)
    monkeypatch.setattr(detect, "MOST_EVENTS", len(events) // 4)
    written(tmp_path / "run", events)
    path, _ = collect(str(tmp_path / "run"), str(tmp_path / "run.h5"))
    passes = []
    whole = RunReading._pass
    monkeypatch.setattr(RunReading, "_pass", lambda *given: passes.append(1) or whole(*given))
    kept = en.open(path).phases
    assert not passes
    monkeypatch.setenv("ENSIO_CACHE", "0")
    found = en.open(path).phases
    assert passes
    assert (kept.rule, kept.count, kept.message_steps) == ("barriers", found.count, found.message_steps)
    assert (kept.number < 0).any()
    np.testing.assert_array_equal(kept.cuts_ns, found.cuts_ns)
    np.testing.assert_array_equal(kept.number, found.number)
