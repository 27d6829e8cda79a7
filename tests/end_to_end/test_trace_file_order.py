"""A real run of several threads with calls inside calls: trace.h5, sorted by start, tells the same of it."""

from __future__ import annotations

import numpy as np

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.events import COLUMNS
from ensembles.readers.native.records import open_run_directory
from ensembles.run.collect import collect
from ensembles.summaries.nesting import Nesting

THREADS, OWN_WRITES = 3, 500


def by_thread(run: ensembles.Run, max_events: int) -> dict[str, np.ndarray]:
    events = ensembles.Events.concatenate(list(run.chunks(max_events)))
    order = np.lexsort((events.thread, events.rank))
    return {name: column[order] for name, column in events.columns.items()}


def inner_ns(run: ensembles.Run, max_events: int) -> list[int]:
    """Time in calls inside, by function."""
    nesting, total = Nesting(), np.zeros(len(run.calls), np.int64)
    for chunk in run.chunks(max_events):
        inside = nesting.inner_ns(chunk)
        if inside is not None:
            np.add.at(total, chunk.call, inside)
    return total.tolist()


def test_threads_and_calls_inside_come_back_in_the_order_of_the_recorder(preload, tmp_path):
    program = preload.build("nested_threads", compiler="mpicc")
    done = preload.execute("mpiexec", "-n", 2, program, tmp_path, cwd=tmp_path, environment=ANY_TASKS)
    assert done.returncode == 0, done.stderr
    recorded = ensembles.Run(str(preload.run), open_run_directory(str(preload.run)))
    collect(str(preload.run), str(tmp_path / "out.h5"))
    stored = ensembles.open(tmp_path / "out.h5")
    assert recorded.events.depth.max() > 0
    calls = np.bincount(recorded.events.call[recorded.events.thread > 0], minlength=len(recorded.calls))
    pwrites = next(n for n, call in enumerate(recorded.calls) if call.name in ("pwrite", "pwrite64"))
    assert calls[pwrites] >= 2 * THREADS * OWN_WRITES
    expected = by_thread(recorded, 1 << 20)
    for max_events in (1 << 20, 100):
        for name, column in by_thread(stored, max_events).items():
            np.testing.assert_array_equal(column, expected[name], err_msg=name)
        assert inner_ns(stored, max_events) == inner_ns(recorded, 1 << 20)
    assert sum(inner_ns(recorded, 1 << 20)) > 0
    assert set(COLUMNS) == set(expected)
    start, rank = (
        np.concatenate([getattr(c, n) for c in stored.chunks(columns=("rank", "start"))])
        for n in ("start", "rank")
    )
    assert (np.lexsort((start, rank)) == np.arange(len(start))).all()
