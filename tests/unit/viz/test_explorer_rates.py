"""The explorer's rates: bytes that moved in a time, for writes and for reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.document import Document
from made_runs import run_of
from test_explorer import TASKS, explore

from ensembles.viz.explorer.page import add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(run_of(tmp_path / "run", TASKS))


def areas(source, low_s: float, high_s: float) -> dict[str, float]:
    """Bytes under each curve of the rates in a time, from what the page is sent."""
    data = source.data
    edges = np.asarray(data["left"])
    inside = np.clip(np.minimum(edges[1:], high_s) - np.maximum(edges[:-1], low_s), 0, None)
    return {
        name: float(np.asarray(data[name])[:-1] @ inside) for name in data if name.endswith(("read", "write"))
    }


UNITS = {"B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30}


def unit_of(figure) -> int:
    return UNITS[str(figure.yaxis.axis_label).split("(")[1].rstrip(")")]


def test_rates_are_those_of_the_marked_calls_over_all(shown: Shown) -> None:
    _document, explorer = explore(shown)
    rates = explorer._panels[0].rates
    whole = areas(rates.source, 0, 2)
    assert whole["write"] * unit_of(rates.figures["write"]) == pytest.approx(3 << 20)
    assert whole["read"] * unit_of(rates.figures["read"]) == pytest.approx(1 << 19)
    assert np.isnan(whole["marked_write"])
    explorer.look(View(ranks=(1, 2)))
    some = areas(rates.source, 0, 2)
    assert some["marked_write"] * unit_of(rates.figures["write"]) == pytest.approx(1 << 20)
    assert some["write"] * unit_of(rates.figures["write"]) == pytest.approx(3 << 20)
    assert some["marked_read"] == some["read"]
    marked, pale = (rates.source.data[name] for name in ("marked_write", "write"))
    assert (marked <= pale * (1 + 1e-12)).all()
    legend = {name: item.label.value for name, item in rates._items.items()}
    assert legend["write"] == "write: 1.00 MiB marked of 3.00 MiB"
    explorer.look(View())
    assert np.isnan(rates.source.data["marked_write"]).all()


def test_small_reads_are_seen_under_large_writes_of_each_run(tmp_path: Path) -> None:
    fast = [[("pwrite", 0.0, 0.01, 1 << 30), ("pread", 0.02, 0.5, 4096)], [("pwrite", 0.0, 0.02, 1 << 30)]]
    runs = [
        Shown(run_of(tmp_path / "one", fast)),
        Shown(run_of(tmp_path / "two", [[("pread", 0.0, 0.25, 4096)]])),
    ]
    explorer = add_explorer(Document(), runs, {"beside": "1"})
    rates = explorer._panels[0].rates
    assert [unit_of(fig) for fig in rates.figures.values()] == [1 << 30, 1 << 10]
    assert rates.source.data["write"].max() == pytest.approx(150, rel=0.01)  # GiB/s: 100 and 50
    assert rates.source.data["read"].max() == pytest.approx(8, rel=0.01)  # KiB/s
    scaled_to = [set(fig.y_range.renderers) for fig in rates.figures.values()]
    assert not scaled_to[0] & scaled_to[1]
    drawn = {
        fig.name: " ".join(fig.title.text.split())
        for fig in explorer._pictures.children
        if "rates" in fig.name
    }
    assert list(drawn) == ["explorer_rates", "explorer_rates_read", "explorer_rates_beside"]
    assert drawn["explorer_rates_read"].startswith("Read rate of all tasks of ")
    assert drawn["explorer_rates_beside"].startswith("Read rate of all tasks of ")


def test_rates_of_two_runs_have_one_scale(tmp_path: Path) -> None:
    """Each peak is the mean of an equal time, in one unit, and an axis is that of both."""
    long = [[("pwrite", 0.05 * i, 0.01, 4096) for i in range(40)]]
    short = [[("pwrite", 0.01 * i, 0.005, 1 << 20) for i in range(20)]]
    runs = [Shown(run_of(tmp_path / "one", long)), Shown(run_of(tmp_path / "two", short))]
    assert runs[0].calls(View()).curve().cell_ns > runs[1].calls(View()).curve().cell_ns
    explorer = add_explorer(Document(), runs, {"beside": "1"})
    both = [panel.rates for panel in explorer._panels]
    for window in (None, (0.0, 0.15), (0.18, 0.3)):
        explorer.look(View(beside=1, zoom_s=window))
        figures = [rates.figures["write"] for rates in both]
        widths = [np.diff(rates.source.data["left"]).max() for rates in both]
        assert widths[0] == pytest.approx(widths[1], rel=1e-2)
        assert [unit_of(fig) for fig in figures] == [1 << 20] * 2
        assert figures[0].y_range is figures[1].y_range
        assert len(figures[0].y_range.renderers) == 4  # of each run: all calls, and the marked ones
        steps = [" ".join(fig.title.text.split()).split("mean of each ")[1] for fig in figures]
        assert steps[0] == steps[1]
    assert [rates.source.data["write"].max() for rates in both] == pytest.approx([0.39, 200], rel=0.01)
    explorer.look(View(beside=1))
    found = [areas(rates.source, 0, 3)["write"] * (1 << 20) for rates in both]
    assert found == pytest.approx([40 * 4096, 20 << 20])


def test_rates_of_a_window_have_its_bins(shown: Shown) -> None:
    _document, explorer = explore(shown)
    rates = explorer._panels[0].rates
    width = np.diff(rates.source.data["left"]).max()
    # Of the write of rank 0 from 0.25 to 0.75 s, and of rank 2 from 0.3 to 0.32 s.
    explorer.look(View(zoom_s=(0.299, 0.301), ranks=(2, 2)))
    assert np.diff(rates.source.data["left"]).max() < width / 64
    found = areas(rates.source, 0.299, 0.301)
    scale = unit_of(rates.figures["write"]) / (1 << 20)
    assert found["write"] * scale == pytest.approx(0.002 / 0.5 + 0.001 / 0.02, rel=1e-5)
    assert found["marked_write"] * scale == pytest.approx(0.001 / 0.02, rel=1e-5)
    assert rates._items["write"].label.value == "write: 51.2 KiB marked of 55.3 KiB in this time"


def test_a_window_in_which_nothing_moves_has_an_area_with_points(shown: Shown) -> None:
    """BokehJS paints an area of steps without points in an endless loop: the page would stand still."""
    _, explorer = explore(shown, "shown-time=100..101")
    rates = explorer._panels[0].rates
    for span in ((100.0, 101.0), (200.0, 200.5)):
        rates.show(None, span)
        data = rates.source.data
        assert {len(column) for column in data.values()} == {2}
        assert data["left"].tolist() == list(span)
        assert not data["write"].any()
    rates.show(None, None)
    assert rates.source.data["write"].max() > 0
