"""Progress by call index and cumulative distributions hold the values of the calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.models import Legend
from made_runs import run_of

import ensembles
from ensembles import viz
from ensembles.model.errors import EnsioError
from ensembles.viz.report.folded import _of_ordinals

# Reads of two tasks: the second of each takes longer, and task 1 begins its own later.
TASKS = [
    [("pread", 0.0, 0.1, 8), ("pread", 1.0, 0.4, 8), ("pwrite", 2.0, 0.3, 8)],
    [("pread", 0.1, 0.2, 8), ("pread", 1.5, 0.5, 8)],
]


@pytest.fixture
def run(tmp_path: Path):
    return run_of(tmp_path / "run", TASKS, lasted_s=3.0)


def curves(fig) -> dict[str, tuple[list[float], list[float]]]:
    found = {}
    for item in fig.legend[0].items:
        data = item.renderers[0].data_source.data
        found[item.label.value] = (np.round(data["time_s"], 9).tolist(), data["share"].tolist())
    return found


def test_progress_counts_ends_since_the_first_begin(run) -> None:
    expected = {
        "read 1 (2)": ([0.0, 0.1, 0.3], [0.0, 0.5, 1.0]),
        "read 2 (2)": ([0.0, 0.4, 1.0], [0.0, 0.5, 1.0]),
    }
    assert curves(viz.progress(run, op="read")) == expected
    assert curves(viz.progress(run.select(op=["read", "write"]))) == expected
    assert list(curves(viz.progress(run, op="read", ordinal=2))) == ["read 2 (2)"]
    assert list(curves(viz.progress(run.events, ordinal="2"))) == ["read 2 (2)"]


def test_progress_begins_anew_on_each_file_and_in_each_phase(tmp_path: Path) -> None:
    """Two shared files, one after the other, and then a file of each task."""
    files = ["/d/a", "/d/b", "/d/own.0", "/d/own.1"]
    tasks = [
        [("pwrite", 10.0 * at + 0.1 * task, 0.2, 8, 0, at + 1 + task * (at == 2)) for at in range(3)]
        for task in range(2)
    ]
    run = run_of(tmp_path / "files", tasks, lasted_s=30.0, path=files)
    assert run.phases.count == 3
    fig = viz.progress(run, op="write", layer="posix")
    assert list(curves(fig)) == ["write 1 (6)"]
    (time_s, _), *_ = curves(fig).values()
    assert time_s == pytest.approx([0.0, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3])
    assert "begin at 0 again" in fig.above[0].text
    assert viz.progress(run, op="write", layer="stdio").legend == []


def test_curves_of_single_calls_are_left_out_of_a_report(tmp_path: Path, run) -> None:
    alone = run_of(tmp_path / "alone", [[("pread", 0.1 * i, 0.05, 8) for i in range(3)]])
    assert [each.picture is None for each in (*_of_ordinals(alone), *_of_ordinals(run))] == [True, False]


def test_progress_of_many_indices_shows_some_and_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path / "many", [[("pread", 0.01 * i, 0.005, 8) for i in range(40)]])
    fig = viz.progress(run)
    labels = list(curves(fig))
    assert len(labels) == 8
    assert (labels[0], labels[-1]) == ("read 1 (1)", "read 40 (1)")
    assert fig.title.text.endswith("(8 of 40)")


def test_progress_is_that_of_most_tasks(tmp_path: Path) -> None:
    """Task 0 writes a hundred times, the three others ten times."""
    tasks = [[("pwrite", 0.1 * n, 0.05, 8) for n in range(calls)] for calls in (100, 10, 10, 10)]
    fig = viz.progress(run_of(tmp_path / "one", tasks), op="write")
    assert fig.title.text == "Progress of each write, by call index (8 of 100)"
    labels = [item.label.value for item in fig.select_one(Legend).items]
    assert labels[0] == "write 1 (4)"
    assert labels[-1] == "write 10 (4)"
    assert len(labels) == 8


def test_progress_of_many_calls_keeps_first_and_last(tmp_path: Path) -> None:
    calls = [[("pread", 0.0, 0.001 * (rank + 1), 8)] for rank in range(700)]
    (time_s, share), *_ = curves(viz.progress(run_of(tmp_path / "wide", calls))).values()
    assert len(time_s) == 201
    assert (time_s[1], time_s[-1], share[-1]) == (0.001, 0.7, 1.0)
    assert np.allclose(np.array(share[1:]), np.round(np.array(time_s[1:]) * 1000) / 700)


def test_progress_refuses_what_it_cannot_draw(run) -> None:
    with pytest.raises(TypeError, match="a run or events"):
        viz.progress(ensembles.Ensemble([1.0]))
    with pytest.raises(EnsioError, match="no operation"):
        viz.progress(run, op="sync-all")
    empty = viz.progress(run.events[:0])
    assert empty.select_one({"name": "empty"}).text == "no read was selected"


def test_cdf_is_the_share_of_calls_up_to_each_duration() -> None:
    fig = viz.histogram(
        {"one": ensembles.Ensemble([0.4, 0.1, 0.1, 0.2]), "two": ensembles.Ensemble([0.3])}, cumulative=True
    )
    assert curves(fig) == {
        "one (4)": ([0.1, 0.1, 0.2, 0.4], [0.0, 0.5, 0.75, 1.0]),
        "two (1)": ([0.3, 0.3], [0.0, 1.0]),
    }


def test_cdf_of_a_run_agrees_with_its_durations(run) -> None:
    reads = run.select(op="read")
    ((time_s, share),) = curves(viz.histogram(reads, cumulative=True)).values()
    for at_s, part in zip(time_s[1:], share[1:], strict=True):
        assert np.mean(reads.duration * 1e-9 <= at_s * (1 + 1e-9)) == part
    assert len(curves(viz.histogram([reads, run.select(op="write")], cumulative=True))) == 2
    # Of many durations that differ much, bins are drawn, whose values have another mean.
    durations_s = np.concatenate([np.full(3000, 6e-6), np.geomspace(1e-3, 40, 3000)])
    ((time_s, share),) = curves(viz.histogram(ensembles.Ensemble(durations_s), cumulative=True)).values()
    assert time_s[0] > 5e-6
    np.testing.assert_allclose(np.searchsorted(durations_s, time_s[1:], "right") / 6000, share[1:], atol=1e-3)


def test_cdf_refuses_mixed_units(run) -> None:
    with pytest.raises(ValueError, match="cannot share an axis"):
        viz.histogram(
            [run.select(op="read").ensemble(), run.select(op="read").ensemble("MiB")], cumulative=True
        )
    assert viz.histogram([], cumulative=True).select_one({"name": "empty"}) is not None


def test_histogram_overlays_ensembles_of_runs(run) -> None:
    fast, slow = ensembles.Ensemble([0.001] * 3), ensembles.Ensemble([1.0, 1.1, 5.0])
    for scale in ("linear", "log"):
        fig = viz.histogram({"before": slow, "after": fast}, scale=scale)
        found = {item.label.value: item.renderers for item in fig.select_one(Legend).items}
        assert set(found) == {"before (n = 3)", "after (n = 3)"}
        assert all(renderer.visible for renderers in found.values() for renderer in renderers)
        colours = {label: renderers[1].glyph.line_color for label, renderers in found.items()}
        assert len(set(colours.values())) == 2
    bars = viz.histogram([slow, fast], scale="log").select_one(Legend).items
    counts = {bar.label.value: sum(bar.renderers[2].data_source.data["n"]) for bar in bars}
    assert counts == {"1: calls (n = 3)": 3, "2: calls (n = 3)": 3}
    assert len(viz.histogram([run.select(op="read"), run.select(op="write")]).tabs) == 2


@pytest.mark.parametrize(
    ("slower", "shown"),
    [(1.0, {0.9, 1.0, 1.1}), (30.0, {1.0, 5.0, 20.0}), (0.5, {0.5, 1.0}), (2e4, {1.0, 1e3})],
)
def test_ratios_have_round_ticks(slower: float, shown: set[float]) -> None:
    rng = np.random.default_rng(3)
    before = rng.lognormal(0, 0.1, 400)
    picture = viz.comparison(ensembles.Ensemble(before), ensembles.Ensemble(before * slower))
    fig = picture.select_one({"name": "comparison_ratio"})
    inside = [tick for tick in fig.yaxis[0].ticker.ticks if fig.y_range.start <= tick <= fig.y_range.end]
    assert len(inside) >= 4
    assert shown <= set(inside)
