"""What the explorer shows of a window: offsets at their time, and what is in view beside what is selected."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from bokeh.document import Document
from made_runs import run_of

from ensembles.viz.explorer.large import LargeRun
from ensembles.viz.explorer.page import Explorer, add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View

MIB = 1 << 20
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.01, 8 * MIB, 0), ("pwrite", 0.6058, 0.01, MIB, 16 * MIB)],
    [("open", 0.0, 0.02, 0), ("pwrite", 0.58, 0.02, MIB, 8 * MIB), ("pwrite", 0.6, 0.3, 4 * MIB, 9 * MIB)],
]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(run_of(tmp_path / "run", TASKS))


def explore(shown: Shown, query: str = "") -> tuple[Document, Explorer]:
    document = Document()
    return document, add_explorer(document, [shown], dict(parse_qsl(query)))


def times_of(source) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells of time of an image of offsets, and which of them have bytes."""
    data = source.data
    has_bytes = data["image"][0].any(axis=(0, 2))
    return data["x"][0] + data["dw"][0] * np.arange(len(has_bytes) + 1) / len(has_bytes), has_bytes


def test_offsets_of_a_window_are_drawn_at_their_time(shown: Shown) -> None:
    _, explorer = explore(shown, "shown-time=0.585..0.6057")
    offsets = explorer._panels[0].offsets
    edges, has_bytes = times_of(offsets._all)
    assert (edges[0], edges[-1]) == pytest.approx((0.585, 0.6057))
    # Those of rank 1, from 8 to 13 MiB, and nothing of the calls at 0.25 and 0.6058 s.
    assert has_bytes.all()
    rows = np.flatnonzero(offsets._all.data["image"][0].any(axis=(1, 2)))
    assert offsets._found.offset_edges[[rows[0], rows[-1] + 1]].tolist() == [8 * MIB, 13 * MIB]
    assert int(offsets._drawn.by_time("write").sum()) == pytest.approx(
        MIB * 0.015 / 0.02 + 4 * MIB * 0.0057 / 0.3, rel=1e-4
    )
    explorer.look(View(zoom_s=(0.3, 0.5)))
    assert not times_of(offsets._all)[1].any()
    explorer.look(View())
    assert offsets._drawn is offsets._found


def test_marked_offsets_of_a_window_are_a_part_of_all(shown: Shown) -> None:
    _, explorer = explore(shown, "shown-time=0.585..0.62&marked-ranks=0..0")
    offsets = explorer._panels[0].offsets
    edges, has_bytes = times_of(offsets._marked)
    assert edges[:-1][has_bytes].min() == pytest.approx(0.6058, abs=1e-4)
    assert edges[1:][has_bytes].max() == pytest.approx(0.6158, abs=1e-4)
    for name in ("x", "y", "dw", "dh"):
        assert offsets._marked.data[name] == offsets._all.data[name]
    marked, whole = (source.data["image"][0] for source in (offsets._marked, offsets._all))
    assert marked.shape == whole.shape
    assert (marked <= whole).all()


def test_marked_offsets_have_the_cells_of_all(shown: Shown) -> None:
    """Finer cells would share a pixel of the page, which draws one of them only."""
    _, explorer = explore(shown, "marked-ranks=0..0&marked-time=0.6..0.7")
    offsets = explorer._panels[0].offsets
    for name in ("y", "dh"):
        assert offsets._marked.data[name] == offsets._all.data[name]
    assert offsets._marked.data["image"][0].shape == offsets._all.data["image"][0].shape


def test_offsets_of_a_window_of_a_large_run_are_those_of_its_calls(tmp_path: Path) -> None:
    import subprocess

    shown = Shown(run_of(tmp_path / "run", TASKS))
    trace = tmp_path / "trace.h5"
    subprocess.run(["ensio", "collect", shown.run.path, "-o", str(trace)], check=True, capture_output=True)
    import ensembles

    summed = LargeRun(ensembles.open(trace), in_background=False)
    for query in ("", "&marked-ranks=0..0"):
        held, large = (
            explore(each, f"shown-time=0.585..0.62{query}")[1]._panels[0].offsets for each in (shown, summed)
        )
        for source in ("_all", "_marked"):
            one, other = (getattr(each, source).data for each in (held, large))
            assert len(one["image"]) == len(other["image"])
            for image, same in zip(one["image"], other["image"], strict=True):
                np.testing.assert_array_equal(image, same)
            assert one["x"] == other["x"]
