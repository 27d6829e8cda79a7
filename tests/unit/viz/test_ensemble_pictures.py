"""Pictures of modes and of the slowest call: they show what the statistics say, and why they say nothing."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from bokeh.models import Segment, Title
from made_runs import run_of
from scipy.special import ndtri
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles import viz
from ensembles.model.units import seconds_text
from ensembles.statistics.extremes.slowest_of_n import predict_curve
from ensembles.statistics.modes.kinds import Bump
from ensembles.statistics.modes.modes import Modes
from ensembles.summaries.calltable import CallTable
from ensembles.viz import write_report
from ensembles.viz.pictures.modes import _mode_label, _reasons, _rejected_modes, label_places
from ensembles.viz.report.page import shown_ensembles

pytestmark = pytest.mark.slow

R_S = 0.016


def harmonic_ensemble(phases: int = 40, tasks: int = 64) -> en.Ensemble:
    """Log-normal modes at R, R/2 and R/4, alike in all phases."""
    random = np.random.default_rng(4)
    n = phases * tasks
    durations_s = R_S * random.choice([1, 0.5, 0.25], n, p=[0.6, 0.25, 0.15]) * random.lognormal(0, 0.05, n)
    phase, rank = np.repeat(np.arange(1, phases + 1), tasks), np.tile(np.arange(tasks), phases)
    return en.Ensemble(durations_s, phase, rank, name="pwrite", op="write")


def glyph(fig, name: str):
    return next(renderer for renderer in fig.renderers if renderer.name == name)


def sentences(fig) -> list[str]:
    return [" ".join(title.text.split()) for title in fig.select({"type": Title})]


def labels(fig) -> str:
    return "; ".join(item.label.value for item in fig.legend[0].items)


def test_modes_are_marked_where_they_are_and_harmonics_too() -> None:
    fig = viz.modes(harmonic_ensemble())
    assert fig.title.text == "Modes of pwrite: 3 modes in 2,560 calls"
    marks = glyph(fig, "mode_labels").data_source.data
    np.testing.assert_allclose(marks["t"], [R_S / 4, R_S / 2, R_S], rtol=0.03)
    low, place, high = (np.array(marks[name]) for name in ("low", "t", "high"))
    assert ((low < place) & (place < high)).all()
    shares = [float(re.search(r", ([\d.]+) %", text)[1]) for text in marks["text"]]
    np.testing.assert_allclose(shares, [15, 25, 60], atol=3)
    lines = glyph(fig, "harmonics")
    assert isinstance(lines.glyph, Segment)
    np.testing.assert_allclose(sorted(lines.data_source.data["x0"]), [R_S / 4, R_S / 2, R_S], rtol=0.03)
    assert "harmonics of R = 1" in labels(fig)
    # They touch no label of a mode: these are above the lines of harmonics.
    heights = glyph(fig, "harmonic_labels").data_source.data["y"]
    (top,) = set(lines.data_source.data["y1"])
    assert max(heights) < 0.6 * top
    assert min(marks["y"]) >= top
    # Where tasks share processors, the same modes are multiples of a time slice.
    crowded = harmonic_ensemble()
    crowded.crowded = "64 tasks share the 2 processors of n1"
    fig = viz.modes(crowded)
    assert "multiples of a time slice of 4 ms (p = " in labels(fig)
    marked = glyph(fig, "harmonic_labels").data_source.data
    assert (list(marked["text"]), list(marked["x"])) == (["4 ms", "8 ms", "16 ms"], [0.004, 0.008, 0.016])


def test_marks_of_modes_are_no_higher_than_their_curves() -> None:
    """A mark at its label looked like a peak of ten times the calls that are there."""
    fig = viz.modes(harmonic_ensemble())
    curves = next(each.data_source.data["ys"] for each in fig.renderers if "ys" in each.data_source.data)
    (points,) = (each for each in fig.renderers if type(each.glyph).__name__ == "Scatter")
    heights = np.array(points.data_source.data[points.glyph.y])
    assert heights == pytest.approx([max(curve) for curve in curves])


def test_the_curves_of_modes_hold_the_calls_of_the_histogram() -> None:
    ensemble = harmonic_ensemble()
    fig = viz.modes(ensemble)
    curves = next(r for r in fig.renderers if type(r.glyph).__name__ == "MultiLine").data_source.data
    counts = ensemble.histogram("log")
    width = np.log(counts.edges_s[-1] / counts.edges_s[0]) / len(counts.amounts)
    areas = [np.trapezoid(y, np.log(x)) / width for x, y in zip(curves["xs"], curves["ys"], strict=True)]
    np.testing.assert_allclose(areas, ensemble.n * np.array([0.15, 0.25, 0.6]), rtol=0.15)


def test_a_log_normal_that_does_not_fit_is_dashed_and_the_legend_says_so() -> None:
    random = np.random.default_rng(1)
    fits = np.exp(0.05 * ndtri((np.arange(700) + 0.5) / 700))
    skewed = 5 + random.pareto(1, 900)
    fig = viz.modes(en.Ensemble(np.concatenate([fits, skewed])))
    assert [bool(dash) for dash in glyph(fig, "log_normals").data_source.data["dash"]] == [False, True]
    (label,) = [label for label in labels(fig).split("; ") if label.startswith("log-normal")]
    share = float(
        re.fullmatch(r"log-normal of a mode \(dashed: (\d+) % of its calls are off the curve\)", label)[1]
    )
    # At the lower end of the skewed calls the log-normal curve has its part below them, about 35 % (5.0 s
    # at a mode of 5.4 s with a width of 0.3).
    assert 20 <= share <= 50
    for durations_s in (
        fits,
        np.exp(0.3 * random.standard_normal(60)),
        1 + 0.001 * random.standard_normal(900),
    ):
        fig = viz.modes(en.Ensemble(durations_s))
        assert not any(glyph(fig, "log_normals").data_source.data["dash"])
        assert "log-normal with the weight and width of a mode" in labels(fig)


def test_the_curve_of_the_slowest_is_that_of_theory() -> None:
    random = np.random.default_rng(8)
    ensemble = en.Ensemble(random.exponential(1e-3, 200_000), rank=np.arange(200_000) % 100)
    answer, duration_s, chance = predict_curve(ensemble.sample, 100, calls=ensemble.calls)
    assert answer.method == "within-reach"
    theory_s = -1e-3 * np.log1p(-(chance ** (1 / 100)))
    np.testing.assert_allclose(duration_s, theory_s, rtol=0.04)
    assert (np.diff(duration_s) >= 0).all()
    assert (np.diff(chance) > 0).all()
    ends = np.interp([0.05, 0.5, 0.95], chance, duration_s)
    np.testing.assert_allclose(ends, [answer.low_s, answer.median_s, answer.high_s])


def test_the_slowest_of_n_stands_beside_equation_1_and_what_was_seen() -> None:
    ensemble = harmonic_ensemble()
    answer = ensemble.tail(64)
    fig = viz.tail(ensemble)
    band = glyph(fig, "interval").data_source.data
    assert (band["left"][0], band["right"][0]) == (answer.low_s, answer.high_s)
    ours = glyph(fig, "ours").data_source.data
    assert np.interp(0.5, ours["p"], ours["t"]) == pytest.approx(answer.median_s, rel=1e-6)
    theirs = glyph(fig, "equation1").data_source.data
    assert np.interp(0.5, theirs["p"], theirs["t"]) == pytest.approx(answer.equation1.median_s, rel=0.03)
    assert max(theirs["t"]) <= answer.observed_max_s
    assert glyph(fig, "seen").data_source.data["x0"] == [answer.observed_max_s]
    assert len(glyph(fig, "phases").data_source.data["x"]) == 40
    assert "Slowest of 64 calls of pwrite: " in fig.title.text
    # Of phases of 64 calls, the slowest says nothing about the slowest of 1,000.
    assert not [renderer for renderer in viz.tail(ensemble, 1000).renderers if renderer.name == "phases"]


def test_what_cannot_be_said_is_said_so() -> None:
    one = en.Ensemble([0.01], rank=[0], name="read", op="read")
    assert any("too few for modes" in text for text in sentences(viz.modes(one)))
    fig = viz.tail(one)
    assert any(text.startswith("No prediction: 1 call") for text in sentences(fig))
    assert "Equation 1" in labels(fig)
    alike = en.Ensemble(np.full(100, 0.5), rank=np.arange(100))
    assert any("No prediction: all 100 calls took 500 ms" in text for text in sentences(viz.tail(alike)))
    nothing, no_time = en.Ensemble([]), en.Ensemble([0.0], rank=[0])
    for fig in (viz.modes(nothing), viz.tail(nothing, 4), viz.modes(no_time), viz.tail(no_time)):
        assert fig.x_range.start < fig.x_range.end
    with pytest.raises(en.EnsioError, match="unknown: give it"):
        viz.tail(en.Ensemble([0.1, 0.2]))
    with pytest.raises(TypeError, match="an ensemble, events or a run"):
        viz.modes([0.1, 0.2])


def test_pictures_take_runs_and_events(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [[("pwrite", 0.01 * i, 1e-3 + 1e-5 * i, 10) for i in range(30)]] * 2)
    assert "60 calls" in labels(viz.modes(run))
    assert viz.modes(run.select(rank=0)).title.text.startswith("Modes of pwrite")
    assert "Slowest of 2 calls" in viz.tail(run).title.text


def text_of(page: str) -> str:
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_the_report_has_the_ensembles_in_which_time_was_spent(tmp_path: Path, mode: str) -> None:
    calls = [
        ("open", 0.001, 1e-5, 0),
        *[("pwrite", 0.01 * i, 1e-3 + 1e-5 * i, 4096) for i in range(1, 40)],
        ("pread", 0.5, 1e-6, 100),
    ]
    run = run_of(tmp_path / "run", [calls] * 4, properties={"mode": mode})
    size_bytes = write_report(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert re.findall(r"Ensemble of (\w+)", text_of(page)) == ["pwrite"]
    assert "Modes of pwrite" in page
    assert "Slowest of 4 calls of pwrite" in page
    assert size_bytes < 2.5e6
    if mode == "profile":
        assert "neither phases nor tasks" in text_of(page)


def test_the_ensemble_on_which_most_time_was_spent_comes_first(tmp_path: Path) -> None:
    pairs = [
        (("pwrite", 0.1 * i, 1e-3, 4096), ("fsync", 0.1 * i + 0.01, 5e-2 + 1e-4 * i, 0)) for i in range(40)
    ]
    calls = [call for pair in pairs for call in pair]
    run = run_of(tmp_path / "run", [calls] * 4)
    table = run.summarize(lambda _: CallTable())
    assert [shown.name for shown in shown_ensembles(run, table)] == ["fsync", "pwrite"]
    # Opens that take less than the writes have no section.
    calls = [("open", 0.001, 1e-4, 0), *[("pwrite", 0.01 * i, 1e-3, 4096) for i in range(1, 40)]]
    run = run_of(tmp_path / "writes", [calls] * 4)
    table = run.summarize(lambda _: CallTable())
    assert [shown.name for shown in shown_ensembles(run, table)] == ["pwrite"]


@pytest.mark.parametrize("tasks", ["4", "empty", "one"])
def test_the_report_with_ensembles_shows_in_a_browser_without_a_complaint(tmp_path: Path, tasks: str) -> None:
    if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
        pytest.skip("playwright or Pillow is not installed: the report is not tried in a browser")
    from browser import browser, chromium

    if chromium() is None:
        pytest.skip("no Chromium on PATH: the report is not tried in a browser")
    if tasks == "4":
        synthetic_run(tmp_path / "run", 4, 302, seed=2)
    else:
        run_of(tmp_path / "run", [[("pwrite", 0.1, 0.01, 4096)] * (tasks == "one")])
    write_report(en.open(tmp_path / "run"), tmp_path / "a.html")
    with browser() as open_page:
        report = open_page(tmp_path / "a.html")
        report.page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        report.page.wait_for_function("() => (document.documentElement.dataset.drawing ?? 'done') === 'done'")
        drawn = report.page.locator("section[id^=ensemble-] canvas").count()
        assert (drawn > 0) == (tasks != "empty")
        if tasks == "4":
            # Above the curve lies the shaded interval.
            answer = en.open(tmp_path / "run").ensemble(call="pwrite").tail(4)
            middle_s = (answer.low_s * answer.high_s) ** 0.5
            assert report.pixel("tail_posix_pwrite", middle_s, 0.97) != (255, 255, 255)
        assert report.problems == []


def boxes_of(marks: list[float], widths: list[float], rows: list[int], align: list[str]) -> list[tuple]:
    shift = {"left": 0.0, "center": -0.5, "right": -1.0}
    return [
        (row, mark + width * shift[side], mark + width * (1 + shift[side]))
        for mark, width, row, side in zip(marks, widths, rows, align, strict=True)
    ]


@pytest.mark.parametrize(
    "marks",
    [
        [5.0],
        [5.0, 60.0, 110.0, 400.0, 516.0],
        [1.0, 20.0, 40.0, 60.0, 380.0, 385.0],
        [460.0, 480.0, 500.0, 519.0],
        [20.0, 90.0, 160.0, 230.0, 330.0, 400.0, 470.0],
        [300.0, 100.0, 290.0, 110.0],
        [200.0, 200.0, 200.0],
        [],
    ],
)
def test_labels_touch_neither_each_other_nor_lines_of_others_nor_the_edge(marks: list[float]) -> None:
    widths = [92.0] * len(marks)
    rows, align = label_places(marks, widths, 520.0)
    boxes = boxes_of(marks, widths, rows, align)
    for (row, start, end), mark in zip(boxes, marks, strict=True):
        assert start >= 0
        assert end <= 520
        for other, left, right in boxes:
            if (other, left, right) != (row, start, end):
                assert other != row or end <= left or start >= right
                assert other <= row or not left < mark < right


def test_curves_of_modes_are_inside_of_the_frame_and_no_higher_than_bars_can_be() -> None:
    """A mode that is narrower than a bin had a curve of twenty times its bar, cut off at the frame."""
    random = np.random.default_rng(7)
    narrow = 0.01 * random.lognormal(0, 0.004, 1500)
    fig = viz.modes(en.Ensemble(np.concatenate([narrow, 0.1 * random.lognormal(0, 0.3, 1500)])))
    data = glyph(fig, "log_normals").data_source.data
    highest = [max(curve) for curve in data["ys"]]
    assert len(highest) == 2
    assert 700 < highest[0] <= 1500
    labels_at = glyph(fig, "mode_labels").data_source.data["y"]
    assert max(highest) < min(labels_at) < fig.y_range.end


def rejected_ensemble() -> en.Ensemble:
    """One mode in 20 phases, and slow calls of one phase, which are not a mode."""
    random = np.random.default_rng(3)
    durations_s = 0.01 * random.lognormal(0, 0.1, 2000)
    phase = np.repeat(np.arange(1, 21), 100)
    durations_s[phase == 7] *= 50
    return en.Ensemble(durations_s, phase=phase, rank=np.tile(np.arange(100), 20), name="read", op="read")


def test_calls_that_are_no_mode_are_drawn_with_the_reason() -> None:
    ensemble = rejected_ensemble()
    found = ensemble.modes()
    (bump,) = found.bumps
    fig = viz.modes(ensemble)
    data = glyph(fig, "rejected").data_source.data
    assert data["text"] == ["no mode, 5.0 % (73 % of the time)"]
    assert bump.low_s <= data["t"][0] <= bump.high_s
    assert (data["low"][0], data["high"][0]) == (bump.low_s, bump.high_s)
    (why,) = data["why"]
    assert why == "Cluster" + str(bump)[len("cluster") :] + "."
    # Above the figure in few words: the whole sentence would fill several lines.
    where = f"from {seconds_text(bump.low_s)} to {seconds_text(bump.high_s)}"
    assert f"Not a mode: {where}, calls of phase {bump.phase} only. Its box says more." in sentences(fig)
    assert "calls that are not a mode" in labels(fig)
    assert not [each for each in viz.modes(harmonic_ensemble()).renderers if each.name == "rejected"]


def test_shoulders_and_calls_without_a_peak_are_drawn_too() -> None:
    wide, narrow = (ndtri((np.arange(n) + 0.5) / n) for n in (4000, 650))
    ensemble = en.Ensemble(np.concatenate([np.exp(0.2 * wide), 1.5 * np.exp(0.08 * narrow)]))
    (found,) = ensemble.modes().shoulders
    fig = viz.modes(ensemble)
    data = glyph(fig, "rejected").data_source.data
    assert data["t"] == [found.t_s]
    assert data["text"][0].startswith("shoulder, ")
    counts = ensemble.histogram("log")
    at = np.searchsorted(counts.edges_s, found.t_s, side="right") - 1
    assert data["calls"] == [counts.amounts[at]]
    rising = en.Ensemble(np.linspace(1.0, 4.0, 400))
    data = glyph(viz.modes(rising), "rejected").data_source.data
    assert data["text"] == ["no peak, 100.0 %"]
    assert data["size"] == [0]


def test_a_label_has_the_share_of_time_where_only_that_is_large() -> None:
    assert _mode_label("31.6 ms", "3 %", 0.03, 0.64) == "31.6 ms, 3 % (64 % of the time)"
    assert _mode_label("77.5 µs", "54 %", 0.54, 0.04) == "77.5 µs, 54 %"


def test_the_line_above_names_the_largest_of_many_calls_outside_of_modes() -> None:
    bump = Bump(2.0, 8.0, 0.3, 13, 1.0)
    edges_s, amounts = np.array([1.0, 2.0, 4.0, 8.0]), np.array([7, 1, 2])
    (one,) = _rejected_modes(Modes(10, (), bumps=(bump,)), edges_s, amounts)
    assert (round(one.t_s, 1), one.calls, one.label) == (5.7, 2.0, "no mode, 30.0 %")
    one = one._replace(short="no peak at 1 s", share=0.05)
    assert _reasons([one]) == "Not a mode: no peak at 1 s. Its box says more."
    others = "2 others, 10 % of the calls. Their boxes say more."
    assert _reasons([one] * 4) == f"Not modes: no peak at 1 s; no peak at 1 s; {others}"
