"""Ensembles of long runs in one pass, and of runs of which only a summary is there."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.api.run import Run
from ensembles.ensemble import from_run
from ensembles.model.events import COLUMNS, Events
from ensembles.passes import executors
from ensembles.passes.damage import DamageReport
from ensembles.passes.executors import ThreadExecutor
from ensembles.passes.reading import ReadRequest, divide
from ensembles.passes.summary import ignoring_run
from ensembles.readers.native.records import open_run_directory
from ensembles.run.collect import collect
from ensembles.run.selection import Selection
from ensembles.structure.phases import detect
from ensembles.summaries.runtotals import EventCount

TASKS, EVENTS = 12, 302


@pytest.fixture(scope="module", params=["spools", "trace.h5"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> en.Run:
    folder = tmp_path_factory.mktemp("long")
    synthetic_run(folder / "run", TASKS, EVENTS, seed=21)
    if request.param == "spools":
        return Run(str(folder), open_run_directory(str(folder / "run")))
    collect(str(folder / "run"), str(folder / "trace.h5"))
    return en.open(folder / "trace.h5")


@pytest.mark.parametrize("per", ["call", "MiB"])
@pytest.mark.parametrize(
    "filters", [{}, {"op": "write"}, {"op": "read", "rank": "2-7", "size": "1MiB"}], ids=str
)
def test_one_pass_counts_what_all_events_in_memory_do(
    run: en.Run, per: str, filters: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run.select(**filters).ensemble(per)
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    found = from_run.ensemble_from_run(run, Selection.parse(**filters).for_run(run), per)
    assert found.durations_s is None
    np.testing.assert_array_equal(found.sample.counts, expected.sample.counts)
    assert found.sample.min_s.min() == pytest.approx(expected.durations_s.min(), abs=1e-9)
    assert found.sample.max_s.max() == pytest.approx(expected.durations_s.max(), abs=1e-9)
    mean_s, variance_s2 = found.sample.mean_and_variance
    assert mean_s == pytest.approx(expected.durations_s.mean(), rel=1e-6)
    assert variance_s2 == pytest.approx(expected.durations_s.var(), rel=1e-6)


def test_one_pass_knows_the_phases_from_some_ranks(run: en.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    monkeypatch.setattr(from_run, "SOME_EVENTS", 4 * EVENTS)
    monkeypatch.setattr(detect, "MOST_EVENTS", 8 * EVENTS)
    writes = run.select(op="write")
    run = Run(run.path, run.reading.source)  # which has not looked for its phases yet
    found = run.ensemble(op="write")
    np.testing.assert_array_equal(found.sample.n, [TASKS * 30] * 5)
    looked_at = len(np.unique(found.successive.rank))
    assert 2 <= looked_at <= 4
    assert f"detected in {looked_at} of 12 tasks" in found.notes[0]
    phase = np.tile(np.repeat(np.arange(5), 30), TASKS)
    for place in range(5):
        mine = writes.duration[phase == place] * 1e-9
        assert found.sample.mean_s[place] == pytest.approx(mine.mean(), rel=0.01)
    one = run.ensemble(op="write", phase=int(found.sample.phase[2]))
    assert one.n == found.sample.n[2]
    calls = found.successive
    assert len(calls.begin) - 1 == looked_at * 5


@pytest.mark.parametrize("per", ["call", "MiB"])
def test_ensembles_that_share_their_passes_are_those_of_passes_of_their_own(
    run: en.Run, per: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    monkeypatch.setattr(from_run, "SOME_EVENTS", 4 * EVENTS)
    monkeypatch.setattr(detect, "MOST_EVENTS", 8 * EVENTS)
    for chosen in (
        [{"op": "write"}, {"call": "pread"}, {"rank": "3-5"}],
        [{"op": "read", "phase": "6-8"}, {}],
    ):
        selections = [Selection.parse(**filters).for_run(run) for filters in chosen]
        together = from_run.ensembles_from_run(Run(run.path, run.reading.source), selections, per)
        for ensemble, filters in zip(together, chosen, strict=True):
            alone = from_run.ensemble_from_run(
                Run(run.path, run.reading.source), Selection.parse(**filters).for_run(run), per
            )
            np.testing.assert_array_equal(ensemble.sample.counts, alone.sample.counts)
            np.testing.assert_array_equal(ensemble.sample.n, alone.sample.n)
            np.testing.assert_allclose(ensemble.sample.mean_s, alone.sample.mean_s, rtol=1e-12)
            assert (ensemble.name, ensemble.notes) == (alone.name, alone.notes)


def test_ordinals_are_counted_on_first_use(run: en.Run) -> None:
    again = Run(run.path, run.reading.source)
    ensemble = again.ensemble(op="write")
    assert "events" not in vars(again)  # ordinals take all of them
    copied = pickle.loads(pickle.dumps(ensemble))
    for one in (ensemble, copied):
        np.testing.assert_array_equal(one.ordinal, run.events[run.events.op == 1].ordinal)


def test_some_ranks_are_whole_and_spread(run: en.Run) -> None:
    some = run.reading.some_ranks(3 * EVENTS)
    np.testing.assert_array_equal(np.unique(some.rank), [0, 5, 11])
    whole = run.select(rank="0,5,11")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name), err_msg=name)
    assert len(run.reading.some_ranks(10**9)) == TASKS * EVENTS <= run.reading.most_events


def test_columns_that_were_not_asked_for_are_missing_and_not_zero(run: en.Run) -> None:
    for chunk in run.chunks(1000, ("call", "duration")):
        assert len(chunk) == len(chunk.duration) <= 1000
        with pytest.raises(AttributeError):
            _ = chunk.offset


@pytest.mark.parametrize("most_parts", [1, 2, 5, 100])
def test_parts_together_are_the_chunks(run: en.Run, most_parts: int) -> None:
    parts = divide(run.reading.source, ReadRequest(1000), most_parts)
    assert 1 <= len(parts) <= most_parts
    chunks = [list(run.reading.source.chunks(part, DamageReport())) for part in parts]
    found = Events.concatenate([chunk for part in chunks for chunk in part])
    expected = Events.concatenate(list(run.chunks()))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_damage_is_noted_once_however_the_events_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [("pwrite", 0.001 * i, 1e-4, 4096) for i in range(1, 20)]
    made = run_of(tmp_path / "run", [calls] * 4)
    for number in (1, 3):
        path = tmp_path / "run" / f"{number}.spool"
        data = bytearray(path.read_bytes())
        at = data.index(struct.pack("<Q", 10**12 + 5 * 10**6))
        data[at : at + 8] = struct.pack("<Q", 2**63)
        path.write_bytes(data)
    told = []
    monkeypatch.setattr(executors, "_FEW_EVENTS", 0)
    for read in (
        lambda run: sum(map(len, run.chunks())),
        lambda run: len(run.events),
        lambda run: run.summarize(ignoring_run(EventCount)).events,
    ):
        run = Run(made.path, open_run_directory(made.path))
        run.reading.executor = ThreadExecutor(2)
        assert read(run) == 74
        told.append(run.notes)
    assert told[0] == told[1] == told[2] != []


@pytest.fixture
def profile(tmp_path: Path) -> en.Run:
    """A run in mode profile. Its events are there too, so that the truth is known."""
    random = np.random.default_rng(3)
    tasks = []
    for _ in range(3):
        calls, start_s = [], 0.001
        for number in range(40):
            duration_s = float(np.round(random.exponential(1e-4), 9))
            size = (1 << 20, 1 << 22, 1000, 2000)[number % 4 if number < 30 else 0]
            calls.append(("pwrite" if number < 30 else "pread", start_s, duration_s, size))
            start_s += duration_s + 1e-6
        tasks.append(calls)
    made = run_of(tmp_path / "run", tasks, properties={"mode": "profile"})
    assert made.mode == "profile"
    return made


def test_from_a_summary_come_the_calls_that_it_tells_apart(profile: en.Run) -> None:
    for filters in (
        {},
        {"op": "write"},
        {"call": "pread", "layer": "posix"},
        {"size": "1MiB"},
        {"size": "1MiB..4MiB", "op": "write"},
        {"op": "write", "ordinal": "3-12"},
        {"ordinal": 1},
    ):
        selection = Selection.parse(**filters).for_run(profile, from_summary=True)
        found = from_run.ensemble_from_run(profile, selection)
        truth = profile.events
        if "ordinal" in filters:
            ordinal = np.concatenate([np.append(np.arange(1, 31), np.arange(1, 11))] * 3)
            low, _, high = str(filters["ordinal"]).partition("-")
            truth = truth[(ordinal >= int(low)) & (ordinal <= int(high or low))]
        plain = {name: value for name, value in filters.items() if name != "ordinal"}
        durations = truth[Selection.parse(**plain).mask(truth)].duration
        expected = en.Ensemble(durations * 1e-9)
        np.testing.assert_array_equal(found.sample.counts, expected.sample.counts, err_msg=str(filters))
        assert found.sample.max_s.max() == pytest.approx(durations.max() * 1e-9)
        assert found.sample.mean_and_variance == pytest.approx(expected.sample.mean_and_variance, rel=1e-9)
        assert not found.sample.phases_known
        assert "neither phases nor tasks" in found.notes[0]


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"rank": 1}, "does not distinguish ranks"),
        ({"time": "0..1"}, "does not distinguish times"),
        ({"file": "*.out"}, "does not distinguish files"),
        ({"phase": 2}, "does not distinguish phases"),
        ({"ordinal": "20-24", "op": "write", "size": "1MiB"}, "counts calls of these ordinals together"),
    ],
)
def test_what_a_summary_does_not_tell_is_refused_with_a_remedy(
    profile: en.Run, filters: dict, problem: str
) -> None:
    with pytest.raises(en.EnsioError, match=problem) as refusal:
        profile.ensemble(**filters)
    assert "ensio run --mode trace" in str(refusal.value)
    assert "mode profile" in str(refusal.value)


def test_ranks_that_are_all_there_are_need_not_be_told_apart(profile: en.Run) -> None:
    assert profile.ensemble(rank="0-2").n == profile.ensemble().n


def test_where_events_are_missing_the_summary_answers_or_what_is_missing_is_told(tmp_path: Path) -> None:
    calls = [("pwrite", 0.001 * i, 1e-4 * i, 4096) for i in range(1, 20)]
    run = run_of(tmp_path / "run", [calls, calls[:5]], head={"dropped_events": 30})
    assert (run.mode, run.info.dropped_events) == ("trace", 60)
    from_summary = run.ensemble(op="write")
    assert not from_summary.sample.phases_known
    assert any("60 calls of this run are not in its summary" in note for note in from_summary.notes)
    from_events = run.ensemble(op="write", rank=1)
    assert (from_events.n, from_events.phase) == (5, None)
    assert any("60 calls of this run are not among its events" in note for note in from_events.notes)
    with pytest.raises(en.EnsioError, match=r"lacks the events of 60 calls .*, and ordinals need every call"):
        run.select(ordinal=2)


def test_sizes_that_share_a_class_are_not_told_apart(tmp_path: Path) -> None:
    calls = [("pwrite", 0.001 * i, 1e-4, 1500 if i % 2 else 2000) for i in range(1, 20)]
    run = run_of(tmp_path / "run", [calls], properties={"mode": "profile"})
    with pytest.raises(en.EnsioError, match="counts calls of these sizes together"):
        run.ensemble(size=1500)
    assert run.ensemble(size="1KiB..2KiB").n == 19
    with pytest.raises(en.EnsioError, match="moved different amounts"):
        run.ensemble(per="MiB")


def test_per_mib_a_summary_is_right_within_its_bins(profile: en.Run) -> None:
    writes = profile.events
    writes = writes[(writes.op == 1) & (writes.requested >= 1 << 20)]
    expected = writes.ensemble(per="MiB")
    found = profile.ensemble(per="MiB", op="write", size="1MiB..4MiB")
    assert found.n == expected.n
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(found.sample.quantile_s(levels), expected.sample.quantile_s(levels), rtol=0.07)
    assert found.sample.mean_and_variance == pytest.approx(expected.sample.mean_and_variance, rel=1e-6)


def test_statements_about_a_summary_say_that_phases_are_not_known(profile: en.Run) -> None:
    ensemble = profile.ensemble(op="write")
    assert any("too narrow" in note for note in ensemble.moments().notes)
    assert ensemble.quantiles()[0.5].low > 0
    with pytest.raises(en.EnsioError, match="the task that made each call"):
        _ = ensemble.successive
