"""Ensembles hold what they were made from: arrays, events of a run, or a histogram alone."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import SyntheticRun, synthetic_run

import ensembles as en
from ensembles.api.run import Events
from ensembles.cli.options import add_filter_arguments, add_scale_arguments
from ensembles.cli.questions import selected_ensemble
from ensembles.model.events import COLUMNS, Call
from ensembles.statistics.samples.counted_durations import CountedDurations

TASKS, EVENTS = 6, 42


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def made(folder: Path) -> SyntheticRun:
    return synthetic_run(folder, TASKS, EVENTS, seed=8)


def in_any_order(count: int, seed: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    return (
        random.lognormal(-5, 1, count),
        random.integers(0, 4, count),
        random.integers(0, 3, count),
        random.permutation(count) * 1000,
    )


def test_from_arrays_everything_is_as_given() -> None:
    durations_s, phase, rank, start_ns = in_any_order(500, 1)
    ensemble = en.Ensemble(durations_s, phase, rank, bytes=np.full(500, 7), start_ns=start_ns)
    np.testing.assert_array_equal(ensemble.durations_s, durations_s)
    np.testing.assert_array_equal(ensemble.phase, phase)
    np.testing.assert_array_equal(ensemble.rank, rank)
    assert ensemble.ordinal is None
    assert (len(ensemble), ensemble.n, ensemble.unit) == (500, 500, "s")
    assert ensemble.bytes.sum() == 3500
    np.testing.assert_array_equal(ensemble.sample.n, np.bincount(phase))


def test_lists_are_arrays_too() -> None:
    assert en.Ensemble([1, 2, 3], rank=[0, 0, 1]).sample.max_s.tolist() == [3.0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"durations_s": [1.0, 2.0], "rank": [0]}, "2 durations has 1 values of rank"),
        ({"durations_s": [[1.0, 2.0]]}, "2 dimensions"),
        ({"durations_s": ["slow"]}, "not an array of numbers"),
        ({"durations_s": [1.0, -1.0]}, "1 of 2 durations are negative"),
        ({"durations_s": [1.0], "per": "byte"}, 'an ensemble per "byte" does not exist'),
    ],
)
def test_arrays_that_make_no_sense_are_refused_in_one_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(en.EnsioError, match=sentence) as refusal:
        en.Ensemble(**arguments)
    assert "\n" not in str(refusal.value)


def test_successive_calls_are_those_of_a_task_in_the_order_of_time() -> None:
    durations_s, phase, rank, start_ns = in_any_order(400, 2)
    found = en.Ensemble(durations_s, phase, rank, start_ns=start_ns).successive
    rows = sorted(zip(rank, phase, start_ns, durations_s, strict=True))
    np.testing.assert_array_equal(found.duration_s, [row[3] for row in rows])
    np.testing.assert_array_equal(found.rank, [row[0] for row in rows])
    groups = [(row[0], row[1]) for row in rows]
    assert found.begin[0] == 0
    assert found.begin[-1] == 400
    assert len(found.begin) - 1 == len(set(groups))
    for low, high in zip(found.begin[:-1], found.begin[1:], strict=True):
        assert len(set(groups[low:high])) == 1


def test_without_starts_the_order_given_is_that_of_time() -> None:
    found = en.Ensemble([3.0, 1.0, 2.0, 4.0], rank=[1, 0, 1, 0]).successive
    assert found.duration_s.tolist() == [1, 4, 3, 2]
    assert not found.phases_known


def test_nothing_follows_where_tasks_are_not_known() -> None:
    with pytest.raises(en.EnsioError, match="the task that made each call"):
        _ = en.Ensemble([1.0, 2.0]).successive


def test_an_ensemble_of_a_run_has_the_durations_that_were_made(folder: Path, made: SyntheticRun) -> None:
    ensemble = en.open(folder).select(op="write").ensemble()
    writes = made.call == 6
    np.testing.assert_allclose(ensemble.durations_s, made.duration_ns[:, writes].ravel() * 1e-9, atol=2e-9)
    np.testing.assert_array_equal(ensemble.rank, np.repeat(np.arange(TASKS), writes.sum()))
    np.testing.assert_array_equal(ensemble.ordinal, np.tile(np.arange(1, writes.sum() + 1), TASKS))
    assert ensemble.name == "pwrite"
    assert ensemble.notes == []


def test_per_mib_durations_are_divided_by_what_was_moved() -> None:
    columns = {name: np.zeros(4, dtype) for name, dtype in COLUMNS.items()}
    columns["duration"] = np.array([10**9, 10**9, 3 * 10**9, 5])
    columns["moved"] = np.array([1 << 20, 1 << 21, 3 << 19, -1])
    events = Events(columns, [Call("pwrite", "posix", "write")], [""])
    per_mib = events.ensemble(per="MiB")
    np.testing.assert_allclose(per_mib.durations_s, [1.0, 0.5, 2.0])
    assert (per_mib.unit, len(events.ensemble())) == ("s/MiB", 4)
    assert "0.5 MiB/s" in repr(per_mib)


def test_calls_of_several_kinds_and_layers_are_told(folder: Path, made: SyntheticRun) -> None:
    (note,) = en.open(folder).events.ensemble().notes
    assert note.startswith("this ensemble has calls of 4 operations (close, open, read, write)")
    columns = {name: np.zeros(2, dtype) for name, dtype in COLUMNS.items()} | {"call": np.array([0, 1])}
    calls = [Call("pwrite", "posix", "write"), Call("MPI_File_write", "mpiio", "write")]
    (note,) = Events(columns, calls, [""]).ensemble().notes
    assert note.startswith("this ensemble has calls of 2 layers (mpiio, posix)")


def test_a_histogram_alone_is_an_ensemble_too() -> None:
    durations_s, phase, *_ = in_any_order(300, 3)
    ensemble = en.Ensemble.from_sample(CountedDurations.from_durations(durations_s, phase), name="pread")
    assert (len(ensemble), ensemble.durations_s, ensemble.rank) == (300, None, None)
    assert "300 calls, 4 phases" in repr(ensemble)
    with pytest.raises(en.EnsioError, match="recorded in mode trace"):
        _ = ensemble.successive


def test_it_shows_itself(folder: Path, made: SyntheticRun) -> None:
    ensemble = en.open(folder).select(op="read").ensemble()
    assert repr(ensemble).startswith(f"Ensemble of pread: 120 calls, {TASKS} tasks")
    shown = en.Ensemble([0.5], name="<b>", notes=["a < b"])._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "A &lt; b" in shown
    assert repr(en.Ensemble([])) == "Ensemble: no calls"
    assert "no calls" not in repr(en.Ensemble([0.0]))


def test_what_the_whole_run_tells_follows_the_events_that_are_chosen(
    folder: Path, made: SyntheticRun
) -> None:
    run = en.open(folder)
    first = run.select(op="write", rank="2,4")  # chosen chunk by chunk, told later by the whole run
    np.testing.assert_array_equal(first.ordinal, np.tile(np.arange(1, 21), 2))
    np.testing.assert_array_equal(first[first.rank == 4][3:6].ordinal, [4, 5, 6])
    both = Events.concatenate([first[:2], first[-2:]])
    np.testing.assert_array_equal(both.ordinal, [1, 2, 19, 20])
    assert next(iter(run.chunks())).ordinal is None


def arguments(folder: Path, *filters: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    return parser.parse_args([str(folder), *filters])


def test_the_command_line_describes_the_same_ensemble(
    folder: Path, made: SyntheticRun, capsys: pytest.CaptureFixture
) -> None:
    args = arguments(folder, "--op", "write", "--where", "ordinal=4-8", "--per-byte")
    _, _, ensemble = selected_ensemble(args)
    expected = en.open(folder).select(op="write", ordinal="4-8").ensemble(per="MiB")
    np.testing.assert_array_equal(ensemble.durations_s, expected.durations_s)
    assert (len(ensemble), ensemble.per) == (5 * TASKS, "MiB")
    assert capsys.readouterr().err == ""
    assert len(selected_ensemble(arguments(folder))[2]) == TASKS * 20
    assert capsys.readouterr().err.startswith("ensio: note: taken are 120 writes of ")


def test_help_does_not_import_numpy() -> None:
    code = "import sys, ensembles.cli.main as m; m.build_parser(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=600).returncode == 0
