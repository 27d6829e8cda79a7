"""The picture of the kernel's counters, and what the report shows of requests, call sites and samples."""

from __future__ import annotations

import html
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from bokeh.models import ColumnDataSource, HoverTool
from pages import unpacked

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.surroundings import COLUMNS, SurroundingsTable
from ensembles.structure import surroundings as samples
from ensembles.structure.surroundings import sum_levels, sum_rates
from ensembles.viz import trace_diagram
from ensembles.viz.common.figures import new_figure
from ensembles.viz.common.single_calls import add_calls, call_columns
from ensembles.viz.pictures.counters import surroundings

HELD = Path(__file__).parents[2] / "corpus" / "runs"
S = 10**9


def table_of(**columns: list[int]) -> SurroundingsTable:
    n = len(columns["time"])
    return SurroundingsTable({name: np.full(n, -1) for name in COLUMNS} | columns)


SAMPLES = table_of(
    rank=[0, 0, 0, 1, 1],
    time=[0, 2 * S, 4 * S, 1 * S, 3 * S],
    dirty_bytes=[0, 2 << 20, 4 << 20, 8 << 20, 8 << 20],
    some_us=[0, 1_000_000, 1_000_000, 0, 0],
    full_us=[0, 0, 0, 0, 0],
    written_by_calls=[0, 6 << 20, 6 << 20, 0, 2 << 20],
)


def drawn(name: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    fig = surroundings(SAMPLES).select_one({"name": name})
    items = {item.label.value: item for item in fig.legend[0].items}
    data = items[label].renderers[0].data_source.data
    return np.asarray(data["time"]), np.asarray(data["value"])


def test_levels_are_summed_over_nodes_between_their_samples() -> None:
    time_s, value = drawn("dirty_pages", "dirty")
    np.testing.assert_allclose(time_s, [0, 1, 2, 3, 4])
    np.testing.assert_allclose(value, [8, 9, 10, 11, 12])  # MiB


def test_pressure_is_the_mean_share_of_the_nodes() -> None:
    time_s, value = drawn("io_pressure", "some task waited for I/O")
    np.testing.assert_allclose(time_s, [0, 1, 2, 3, 4])
    np.testing.assert_allclose(value, [0.25, 0.25, 0, 0, 0], atol=1e-12)


def test_bytes_are_spread_between_samples_and_add_up() -> None:
    time_s, value = drawn("process_bytes", "taken by write calls")
    np.testing.assert_allclose(value[:-1], [3, 4, 1, 0], atol=1e-12)  # MiB/s
    assert (value[:-1] * np.diff(time_s)).sum() == pytest.approx(8)


def test_many_samples_keep_their_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_DENSE", 10)
    random = np.random.default_rng(3)
    time = np.cumsum(random.integers(S, 2 * S, 200))
    many = table_of(
        rank=[0] * 200,
        time=time.tolist(),
        write_bytes=np.cumsum(random.integers(0, 1 << 30, 200)).tolist(),
        dirty_bytes=[5] * 200,
    )
    rates = sum_rates(many, "write_bytes")
    assert len(rates.per_s) == 10
    grown = (rates.per_s * np.diff(rates.edges_ns)).sum() * 1e-9
    assert grown == pytest.approx(int(many.write_bytes[-1] - many.write_bytes[0]), rel=1e-6)
    np.testing.assert_array_equal(sum_levels(many, "dirty_bytes").value, [5] * 10)
    low, high = (surroundings(each).select_one({"name": "dirty_pages"}) for each in (SAMPLES, many))
    assert low.height < high.height - 30  # but not squeezed: a frame of 60 pixels in a narrow page


def test_without_samples_the_picture_says_why() -> None:
    (fig,) = surroundings(SurroundingsTable.empty()).children
    assert fig.select_one({"name": "empty"}).text.startswith("no samples")


@pytest.mark.slow
def test_report_shows_requests_sites_and_samples(tmp_path: Path) -> None:
    with tarfile.open(HELD / "flights-aio.tar.xz") as archive:
        archive.extractall(tmp_path)
    assert main(["report", str(tmp_path / "flights-aio"), "-o", str(tmp_path / "a.html")]) == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert '"@site"' in unpacked(page)  # also the boxes of a zoom in a page without a server
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    text = html.unescape(" ".join(re.sub(r"<[^>]*>", " ", page).split()))
    assert "Ensemble of aio_write, in flight" in text
    # 40 writes, posted in 262 µs, of which 95 % were hidden (one decimal in the page).
    assert re.search(r"Non-blocking requests .* write 40 26\d µs 88\.0 ms .* 95\.\d %", text)
    assert re.search(r"Call sites .* 2\.50 MiB 40 write asynchronous\+0x75c1", text)
    assert 'title="asynchronous+0x75c1 in /srv/bin/asynchronous"' in page
    assert '<section id="surroundings">' in page
    # Boxes of single calls name the place too, where the run knows any.
    run = en.open(tmp_path / "flights-aio")
    assert "asynchronous+0x75c1" in call_columns(run.events, info=run.info)["site"]
    fig = new_figure("", 200)
    add_calls(fig, ColumnDataSource(call_columns(run.events, info=run.info)), run.info)
    assert ("call site", "@site") in fig.select_one(HoverTool).tooltips
    tools = [each for each in trace_diagram(run).select({"type": HoverTool}) if each.tooltips]
    assert [each for each in tools if ("call site", "@site") in each.tooltips]


def test_figures_say_how_often_was_sampled_and_draw_amounts_as_points() -> None:
    two = table_of(rank=[0, 0], time=[0, 2 * S], dirty_bytes=[0, 2 << 20], written_by_calls=[0, 6 << 20])
    told = {}
    for name in ("dirty_pages", "process_bytes"):
        fig = surroundings(two).select_one({"name": name})
        told[name] = [str(getattr(part, "text", "")) for part in fig.above]
        line, points = fig.legend[0].items[0].renderers
        assert len(points.data_source.data["time"]) == 2
        assert (line.glyph.line_alpha < 0.5) == (name == "dirty_pages")
    assert "2 samples in 2.00\xa0s: known at the points, which lines only join" in told["dirty_pages"]
    assert "2 samples in 2.00\xa0s: a step is the mean between two" in told["process_bytes"]
