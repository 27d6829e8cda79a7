"""Clocks of nodes: synthetic ones stand at known times, and are found within the bound that is stated."""

import numpy as np
import pytest
from made_spools import UNIX_NS, made_events, spool
from synthetic_runs import synthetic_run

import ensembles
from ensembles.run.collect import collect

UNALIGNED = "are not aligned (this needs"


def misses_ns(run: ensembles.Run, made) -> np.ndarray:
    """How far times are from the truth, which rank 0's node knows."""
    return np.abs(run.events.start + (run.info.origin_unix_ns - UNIX_NS) - made.start_ns.ravel())


@pytest.mark.parametrize("seed", range(20))
def test_times_of_all_nodes_are_right_within_the_stated_bound(tmp_path, seed):
    random = np.random.default_rng(seed)
    nodes = 5
    ahead_ns = [0, *map(int, random.integers(-(10**10), 10**10, nodes - 1))]
    drift = [0.0, *random.uniform(-1e-5, 1e-5, nodes - 1)]
    skew_ns = 10 ** random.uniform(3, 6)
    made = synthetic_run(
        tmp_path, 14, 200, seed, tasks_per_node=3, ahead_ns=ahead_ns, drift=drift, skew_ns=skew_ns
    )
    run = ensembles.open(tmp_path)
    assert run.notes == []
    assert 0 < run.info.clock_error_s <= (5 * skew_ns + 20_000) / 1e9
    assert misses_ns(run, made).max() / 1e9 <= run.info.clock_error_s


def test_drift_is_followed(tmp_path):
    made = synthetic_run(
        tmp_path, 4, 20_000, tasks_per_node=2, ahead_ns=[0, -7], drift=[0, 5e-5], skew_ns=1000
    )
    run = ensembles.open(tmp_path)
    span_ns = made.start_ns.max()
    assert 5e-5 * span_ns > 100 * run.info.clock_error_s * 1e9
    assert misses_ns(run, made).max() / 1e9 <= run.info.clock_error_s


def test_the_bound_is_kept_in_trace_h5(tmp_path):
    synthetic_run(tmp_path, 4, 50, tasks_per_node=2, ahead_ns=[0, 12345], skew_ns=1000)
    run = ensembles.open(tmp_path)
    stored = ensembles.open(collect(str(tmp_path))[0])
    assert stored.info.clock_error_s == run.info.clock_error_s
    np.testing.assert_array_equal(stored.events.start, run.events.start)


def test_a_program_that_did_not_end_is_aligned_as_it_began(tmp_path):
    made = synthetic_run(tmp_path, 4, 50, tasks_per_node=2, ahead_ns=[0, 10**9], meetings=["begin"])
    run = ensembles.open(tmp_path)
    assert misses_ns(run, made).max() <= 1
    assert [note for note in run.notes if "are aligned in MPI_Init only" in note] == run.notes


def test_without_barriers_the_times_of_day_are_taken_and_that_is_said(tmp_path):
    made = synthetic_run(tmp_path, 6, 50, tasks_per_node=2, ahead_ns=[0, 10**9, 0], meetings=[])
    run = ensembles.open(tmp_path)
    assert run.info.clock_error_s is None
    assert len(run.notes) == 1
    assert f"clocks of 3 nodes {UNALIGNED}" in run.notes[0]
    late = np.zeros(made.start_ns.shape, "i8")
    late[2:4] = 10**9
    np.testing.assert_allclose(run.events.start, (made.start_ns + late).ravel(), atol=1)


def test_a_single_node_is_not_touched(tmp_path):
    made = synthetic_run(tmp_path, 6, 50, tasks_per_node=6, skew_ns=10_000)
    run = ensembles.open(tmp_path)
    assert run.info.clock_error_s == 0.0
    assert run.notes == []
    assert misses_ns(run, made).max() <= 1


def test_readings_that_make_no_sense_are_not_used(tmp_path):
    for rank in range(2):
        readings = {f"begin{number}_{edge}": 1 << 63 for number in range(8) for edge in ("entered", "left")}
        spool(tmp_path / f"{rank}.spool", [made_events(5)], host=f"node{rank}", rank=rank, **readings)
    run = ensembles.open(tmp_path)
    assert run.info.clock_error_s is None
    assert any(UNALIGNED in note for note in run.notes)
