"""A collected run that is not held shows what a held one shows, first from sums, then from its calls."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.events import ButtonClick
from bokeh.models import Plot
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.run.collect import collect
from ensembles.summaries.bins import BIN_COUNT, bin_index
from ensembles.summaries.duration_cube import DurationCube, bins_of_counts
from ensembles.summaries.histogram import coarse_bins
from ensembles.summaries.raster import CLASSES, class_of_calls
from ensembles.viz.common.single_calls import Window
from ensembles.viz.explorer import reader
from ensembles.viz.explorer import shown as of_shown
from ensembles.viz.explorer.page import add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.sums import FileSums
from ensembles.viz.explorer.view import View

TASKS, EVENTS = 6, 9_000
RUNS = Path(__file__).resolve().parents[2] / "corpus" / "runs"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    synthetic_run(folder / "run", TASKS, EVENTS, seed=5, phases=4)
    collect(str(folder / "run"), str(folder / "run.h5"))
    return folder / "run.h5"


@pytest.fixture(scope="module")
def held(trace: Path) -> Shown:
    return Shown(en.open(trace))


@pytest.fixture
def summed(trace: Path, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The run, read in four portions when it is asked for."""
    monkeypatch.setattr(reader, "HELD_EVENTS", TASKS * EVENTS // 4 + 1)
    return Shown(en.open(trace), most_events=0)


def some_views(held: Shown) -> dict[str, View]:
    duration, start = held.events.duration * 1e-9, held.events.start * 1e-9
    low, high = np.quantile(duration, [0.4, 0.6]).round(9).tolist()
    begin, end = np.quantile(start, [0.3, 0.35]).round(9).tolist()
    half = int(np.median(held.events.offset[held.events.offset >= 0]))
    return {
        "all": View(),
        "durations": View(durations_s=(low, high)),
        "rectangle": View(time_s=(begin, end), ranks=(1, 3)),
        "both": View(time_s=(begin, end), ranks=(1, 3), durations_s=(low, high)),
        "offsets": View(offsets=(0, half), ranks=(0, 2)),
        "filtered": View(filters={"op": "write", "rank": "0,4-5"}),
        "marked in filtered": View(filters={"op": "write"}, ranks=(2, 2), durations_s=(low, high)),
        "phase": View(marks={"phase": "2"}),
        "call index": View(marks={"op": "read", "ordinal": "3-9"}),
        "rank": View(filters={"rank": "5"}),
        "per MiB": View(filters={"per_byte": "yes", "rank": "1-4"}),
        "rates": View(filters={"per_byte": "yes"}, rates=_middle_rates(held)),
    }


def _middle_rates(held: Shown) -> tuple[int, int]:
    moving = held.events[held.events.moved > 0]
    low, high = np.quantile(moving.moved * 1e9 / moving.duration, [0.3, 0.8])
    return int(low), int(high)


NAMES = ("all", "durations", "rectangle", "both", "offsets", "filtered", "marked in filtered", "phase")


def shown_by(shown: Shown, view: View):
    marked = shown.marked_calls(view)
    return shown.calls(view) if marked is None else marked


def times_by_class(calls) -> dict[str, int]:
    return {
        name: int(time.sum())
        for name, time in zip(CLASSES, calls.raster().time_ns, strict=True)
        if time.any()
    }


def test_seconds_per_mib_are_counted_in_the_bins_of_durations(held: Shown) -> None:
    view = View(filters={"per_byte": "yes", "op": "write"})
    events = held.marked(view)
    per_mib_s = events.duration * 1e-9 / (events.moved / (1 << 20))
    ((edges_s, counts),) = held.calls(view).durations(True).values()
    assert counts.sum() == len(events) > 0
    np.testing.assert_array_equal(counts, np.histogram(np.rint(per_mib_s * 1e9) * 1e-9, edges_s - 5e-10)[0])


@pytest.mark.parametrize("name", [*NAMES, "call index", "rank", "per MiB", "rates"])
def test_a_run_that_is_not_held_shows_the_same(held: Shown, summed: Shown, name: str) -> None:
    view = some_views(held)[name]
    expected, found = shown_by(held, view), shown_by(summed, view)
    assert not found.reading
    assert not found.is_bound
    assert found.count == expected.count > 0
    assert found.ranks == expected.ranks
    assert times_by_class(found) == times_by_class(expected)
    for per_mib in {False, view.per_byte}:
        counted = found.durations(per_mib)
        for key, (edges, counts) in expected.durations(per_mib).items():
            np.testing.assert_array_equal(counted[key][0], edges)
            np.testing.assert_array_equal(counted[key][1], counts)
        assert set(counted) == set(expected.durations(per_mib))
    for table in ("by_rank", "slowest"):
        mine, others = getattr(found, table)(), getattr(expected, table)()
        assert list(mine) == list(others)
        for column in mine:
            assert list(mine[column]) == list(others[column]), (table, column)
    least, median, longest = expected.durations_ns
    of_sums = found.durations_ns
    assert (of_sums[0], of_sums[2]) == (least, longest)
    assert of_sums[1] == pytest.approx(median, rel=1 / 32)
    if name != "all":  # whose ends are those of the cells that are kept
        assert found.extent_ns == expected.extent_ns
    assert len(summed.marked(view)) == expected.count


def test_offsets_are_those_of_the_marked_calls(held: Shown, summed: Shown) -> None:
    view = some_views(held)["offsets"]
    whole, path = held.calls(View()).access_map()
    found, same = summed.calls(View()).access_map()
    assert same == path
    for op in ("read", "write"):
        assert found.by_rank(op).sum() == whole.by_rank(op).sum()
        mine = summed.marked_calls(view).bytes_in(found)
        assert mine.by_time(op).sum() == held.marked_calls(view).bytes_in(whole).by_time(op).sum()


def test_the_access_map_is_of_the_file_with_most_bytes(tmp_path: Path) -> None:
    from made_runs import run_of

    runs = []
    for number, size in enumerate((100, 700, 300)):
        task = [("pwrite", 0.01 * each, 0.001, size) for each in range(20)]
        runs.append(run_of(tmp_path / f"run{number}", [task] * 2, path=f"/scratch/{number}"))
    several = en.Events.empty(runs[0].calls, ["", "/scratch/0", "/scratch/1", "/scratch/2"])
    columns = {name: np.concatenate([getattr(run.events, name) for run in runs]) for name in several.columns}
    columns["file"] = np.repeat([1, 2, 3], [len(run.events) for run in runs])
    events = en.Events(columns, several.calls, several.files)
    summary = FileSums(("posix",), 4)
    for part in (events[:30], events[30:]):
        other = FileSums(("posix",), 4)
        other.add(part)
        summary.merge(other)
    assert summary.moved.tolist() == [[0, 4000, 28000, 12000]]
    assert (summary.layer, summary.busiest()) == ("posix", 2)


def test_a_window_has_the_same_single_calls_and_times(held: Shown, summed: Shown) -> None:
    start = held.events.start
    low, high = (int(each) for each in np.quantile(start, [0.5, 0.505]))
    window = Window(low, high, 2, 4)
    for view in (View(), some_views(held)["durations"]):
        expected, found = shown_by(held, view), shown_by(summed, view)
        inside = found.window(window).events
        assert 0 < len(inside) == len(expected.window(window).events) == expected.window(window).count
        np.testing.assert_array_equal(inside.start, expected.window(window).events.start)
        raster, first = found.window(window).drawn
        assert first == 2
        assert raster.time_ns.sum() == expected.window(window).drawn[0].time_ns.sum() > 0


def test_rates_of_windows_and_marks_are_those_of_the_calls(held: Shown, summed: Shown) -> None:
    span = tuple(int(each) for each in np.quantile(held.events.start, [0.5, 0.51]))
    for view in (View(), some_views(held)["durations"]):
        expected, found = shown_by(held, view), shown_by(summed, view)
        for window in (None, span):
            mine, others = found.curve(window), expected.curve(window)
            np.testing.assert_array_equal(mine.edges_ns, others.edges_ns)
            np.testing.assert_array_equal(mine.moved_bytes, others.moved_bytes)
            assert mine.moved_bytes.sum() > 0
        inside = expected.curve(span).moved_bytes.sum()
        events = held.events if view == View() else held.marked(view)
        start, end = events.start.astype(float), events.end.astype(float)
        part = np.clip(np.minimum(end, span[1]) - np.maximum(start, span[0]), 0, None) / (end - start)
        moves = np.isin(events.op, [en.model.events.OPS.index(op) for op in ("read", "write")])
        assert inside == pytest.approx((part * events.moved)[moves].sum(), rel=1e-6)


def test_marks_are_first_shown_from_sums_and_never_too_small(trace: Path, held: Shown) -> None:
    shown = Shown(en.open(trace), most_events=0, in_background=True)
    shown.wait()
    shown._reader._background.ask = lambda key, steps: None  # nothing is read
    for name in ("durations", "rectangle", "both"):
        view = some_views(held)[name]
        first, exact = shown.marked_calls(view), held.marked_calls(view)
        assert first.is_bound
        assert "being read" in first.reading
        assert exact.count <= first.count
        times = times_by_class(exact)
        assert all(times_by_class(first)[key] >= time for key, time in times.items()) or name != "durations"
    view = View(durations_s=(0.0, 1e4))
    assert shown.marked_calls(view).count == len(held.events)
    assert times_by_class(shown.marked_calls(view)) == times_by_class(held.calls(View()))


def test_a_page_shows_what_has_been_read(trace: Path, held: Shown) -> None:
    shown = Shown(en.open(trace), most_events=0, in_background=True)
    document = Document()
    explorer = add_explorer(document, [shown], {})
    diagram = document.select_one({"name": "explorer_trace"})
    shown.wait()
    assert shown.notes[1:] == []
    explorer.renew()
    # The picture of offsets has come, and those that may be in use stay.
    assert document.select_one({"name": "explorer_trace"}) is diagram
    assert document.select_one({"name": "explorer_offsets"}) is not None
    found = document.select_one({"name": "found"})
    assert f"{len(held.events):,} calls are shown, of {TASKS} of {TASKS} ranks" in found.text
    slowest = document.select_one({"name": "slowest"}).source.data
    assert list(slowest["duration_s"]) == list(held.calls(View()).slowest()["duration_s"])
    view = some_views(held)["durations"]
    explorer.look(view)
    shown.wait()
    explorer.renew()
    assert f"{held.marked_calls(view).count:,} calls are marked" in found.text
    assert "At most" not in found.text
    explorer.look(View(filters={"op": "read"}))
    shown.wait()
    explorer.renew()
    assert f"{held.calls(View(filters={'op': 'read'})).count:,} calls are shown" in found.text
    explorer._fill_causes()
    shown.wait()
    explorer.renew()
    # Of the run first, then of the calls that the filter selects.
    assert "being read" in document.select_one({"name": "reasons"}).text
    shown.wait()
    explorer.renew()
    reads = held.structure(View(filters={"op": "read"}))
    phases = document.select_one({"name": "phases"}).source.data
    assert phases["calls"] == [phase.calls for phase in reads.phases]
    assert 0 < sum(phases["calls"]) < sum(phase.calls for phase in held.causes.structure.phases)
    indices = document.select_one({"name": "ordinals"}).source.data
    assert indices["calls"] == [each.n for each in reads.ordinals.totals]
    explorer.look(View(filters={"rank": "5000"}))
    shown.wait()
    explorer.renew()
    assert f"the run has calls of ranks 0-{TASKS - 1}" in found.text
    assert document.select_one({"name": "phases"}).source.data["calls"] == []


def test_a_cube_counts_each_call_and_its_time() -> None:
    rng = np.random.default_rng(4)
    calls = (en.Call("pwrite", "posix", "write"), en.Call("open", "posix", "open"))
    count = 5_000
    columns = dict(en.Events.empty().columns)
    columns |= {name: np.zeros(count, int) for name in columns}
    columns |= {
        "rank": np.sort(rng.integers(0, 200, count)),
        "call": rng.integers(0, 2, count),
        "start": rng.integers(0, 10**9, count),
        "duration": rng.lognormal(12, 3, count).astype(np.int64),
        "depth": (rng.random(count) < 0.1).astype(int),
    }
    events = en.Events(columns, calls, [""])
    bins = np.bincount(bin_index(events.duration), minlength=BIN_COUNT)
    extent = int(events.start.min()), int(events.end.max())
    parts = [DurationCube(200, extent, bins_of_counts(bins)) for _ in range(2)]
    parts[0].add(events[: count // 3])
    parts[1].add(events[count // 3 :])
    parts[0].merge(parts[1])
    cube = parts[0]
    low, high = int(cube.edges_ns[20, 0]), int(cube.edges_ns[40, 0])
    chosen = (events.duration >= low) & (events.duration < high)
    assert 0 < chosen.sum() < count
    classes = class_of_calls(calls)[events.call]
    row, cell = events.rank // cube.ranks_per_row, np.searchsorted(cube.times_ns, events.start, "right") - 1
    expected = np.zeros((len(CLASSES), cube.rows, len(cube.times_ns) - 1), int)
    np.add.at(expected, (classes[chosen], row[chosen], cell[chosen]), 1)
    counted = cube.counts((low, high))
    np.testing.assert_array_equal(cube.calls()[:, cube.bins_of((low, high))].sum(axis=1), expected)
    np.testing.assert_array_equal(counted.sum(axis=2), expected.sum(axis=2))
    of_bins = np.add.reduceat(counted.sum(axis=(0, 1)), coarse_bins(8))
    np.testing.assert_array_equal(
        of_bins,
        np.add.reduceat(np.bincount(bin_index(events.duration[chosen]), minlength=BIN_COUNT), coarse_bins(8)),
    )
    outermost = chosen & (events.depth == 0)
    for number in range(len(CLASSES)):
        mine = outermost & (classes == number)
        times = cube.raster((low, high)).time_ns[number].sum(axis=1)
        assert times.sum() == events.duration[mine].sum()
        np.testing.assert_array_equal(
            times, np.bincount(row[mine], events.duration[mine], cube.rows).astype(np.int64)
        )


def test_runs_that_cannot_be_summed_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synthetic_run(tmp_path / "run", 8, 100, seed=1)
    monkeypatch.setattr(of_shown, "HELD_EVENTS", 300)
    shown = Shown(en.open(tmp_path / "run"), in_background=True)
    assert not shown.is_large
    assert "Part of the run: all" in shown.notes[0]
    assert f"ensio collect {tmp_path / 'run'}" in shown.notes[0]
    collect(str(tmp_path / "run"), str(tmp_path / "run.h5"))
    assert Shown(en.open(tmp_path / "run.h5")).is_large


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of h5py: most calls of POSIX are inside calls of HDF5, and some are not."""
    folder = tmp_path_factory.mktemp("layered")
    with tarfile.open(RUNS / "h5py.tar.xz") as archive:
        archive.extractall(folder)
    collect(str(folder / "h5py"), str(folder / "run.h5"))
    return folder / "run.h5"


def test_a_filter_by_layer_draws_the_calls_of_the_command(layered: Path) -> None:
    shown = Shown(en.open(layered), most_events=0)
    events = shown.run.select(layer="posix")
    assert 0 < np.count_nonzero(events.depth) < len(events)
    classes = class_of_calls(events.calls)[events.call]

    def time_ns(parts: np.ndarray) -> dict[str, int]:
        """Time by class: no call of POSIX is inside another one of POSIX."""
        sums = np.bincount(classes, parts, len(CLASSES)).astype(int).tolist()
        return {name: time for name, time in zip(CLASSES, sums, strict=True) if time}

    calls = shown.calls(View(filters={"layer": "posix"}))
    assert calls.count == len(events)
    assert times_by_class(calls) == time_ns(events.duration)
    low, high = (int(place) for place in np.quantile(events.start, [0.3, 0.9]))
    raster, _ = calls.window(Window(low, high, 0, 0)).drawn
    parts = np.clip(np.minimum(events.end, high) - np.maximum(events.start, low), 0, None)
    assert dict(zip(CLASSES, raster.time_ns.sum(axis=(1, 2)).tolist(), strict=True)).items() >= (
        time_ns(parts).items()
    )
    # A window inside of one that was read is cut from its calls.
    raster, _ = calls.window(Window(low + 1, high - 1, 0, 0)).drawn
    parts = np.clip(np.minimum(events.end, high - 1) - np.maximum(events.start, low + 1), 0, None)
    assert raster.time_ns.sum() == parts.sum()


def test_layers_of_too_many_calls_are_drawn_after_a_zoom(
    layered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Shown(en.open(layered), most_events=0)
    monkeypatch.setattr(of_shown, "HELD_EVENTS", 150)
    document = Document()
    explorer = add_explorer(document, [shown], {})

    def click(name: str) -> str:
        button = document.select_one({"name": f"draw_{name}"})
        button._trigger_event(ButtonClick(button))
        return document.select_one({"name": "about_more"}).text

    assert "these calls are more than 150" in click("by_layer")
    assert "zoom in, or set a filter" in click("targets")
    low, high = np.quantile(held_starts := shown.run.events.start * 1e-9, [0.5, 0.8]).round(9).tolist()
    assert 0 < np.count_nonzero((held_starts >= low) & (held_starts < high)) < 150
    explorer.look(View(zoom_s=(low, high)))
    events = shown.run.events
    inside = np.count_nonzero((events.start < high * 1e9) & (events.end > low * 1e9))
    assert f"Of {inside} shown calls in view:" in click("by_layer")
    assert document.select_one({"name": "more_pictures"}).children[0].select({"type": Plot})
    assert "zoom in" not in click("targets")  # which says that no layout is known
