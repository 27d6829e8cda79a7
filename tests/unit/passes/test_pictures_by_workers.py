"""Pictures make their passes by the workers, and within the memory, that the run was opened with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of
from bokeh.model import Model
from bokeh.models import ColumnDataSource
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles import viz
from ensembles.faces.html import answer_html
from ensembles.model.errors import EnsioError
from ensembles.passes.executors import ProcessExecutor
from ensembles.passes.group import SummaryGroup
from ensembles.passes.spec import PassRun, PassSpec
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve
from ensembles.viz.common.data_for import data_for
from ensembles.viz.report.tables import moments

TASKS, EVENTS = 12, 302


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures") / "run"
    synthetic_run(folder, TASKS, EVENTS, seed=7)
    return folder


class CountingExecutor(ProcessExecutor):
    """Two processes, and how many passes they made."""

    passes = 0

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        self.passes += 1
        return super().summarize(run, spec)


@pytest.fixture(scope="module")
def pool() -> CountingExecutor:
    return CountingExecutor(2)


def numbers_of(picture: Model) -> list[dict[str, np.ndarray]]:
    """What the picture draws."""
    sources = picture.select({"type": ColumnDataSource})
    drawn = [
        {name: np.asarray(values) for name, values in source.data.items() if np.ndim(values)}
        for source in sources
    ]
    return sorted(drawn, key=lambda columns: [(name, columns[name].tobytes()) for name in sorted(columns)])


@pytest.mark.parametrize("draw", [viz.rate, viz.histogram, viz.trace_diagram], ids=lambda draw: draw.__name__)
def test_a_picture_of_a_run_is_drawn_by_worker_processes(
    draw: Callable, run_path: Path, pool: CountingExecutor
) -> None:
    before = pool.passes
    found = numbers_of(draw(en.open(run_path, pool)))
    assert pool.passes == before + 1
    expected = numbers_of(draw(en.open(run_path)))
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.keys() == theirs.keys()
        for name, values in theirs.items():
            np.testing.assert_array_equal(mine[name], values)


def test_a_table_of_moments_is_made_in_one_pass_by_worker_processes(
    run_path: Path, pool: CountingExecutor
) -> None:
    before = pool.passes
    found = moments(en.open(run_path, pool))
    assert pool.passes == before + 1
    assert answer_html(found, None, "") == answer_html(moments(en.open(run_path)), None, "")


@pytest.mark.parametrize("kind", [RateCurve, LogHistogram, Raster])
def test_counts_by_worker_processes_are_equal_to_the_last_bit(
    kind: type, run_path: Path, pool: CountingExecutor
) -> None:
    found, expected, from_events = (
        arrays_of(data_for(data, kind))
        for data in (en.open(run_path, pool), en.open(run_path), en.open(run_path).events)
    )
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        np.testing.assert_array_equal(from_events[name], values)


def test_a_number_of_workers_starts_processes(run_path: Path) -> None:
    run = en.open(run_path, workers=2)
    assert run.reading.executor._pool is None
    viz.rate(run)
    assert len(run.reading.executor._pool._processes) == 2


@pytest.mark.parametrize("draw", [viz.rate, moments, viz.trace_diagram], ids=lambda draw: draw.__name__)
def test_a_picture_keeps_to_the_memory_of_its_run(draw: Callable, run_path: Path) -> None:
    with pytest.raises(EnsioError, match=r"more memory than the 16\.0 MiB"):
        draw(en.open(run_path, memory_bytes=16 << 20))
