"""Calls whose enclosing calls were left out count as outermost ones, or are told."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.enclosed import among_themselves
from ensembles.model.events import Call, Events
from ensembles.model.units import bytes_text
from ensembles.summaries.rate import RateCurve
from ensembles.viz.common.data_for import data_for

RUNS = Path(__file__).resolve().parents[2] / "corpus" / "runs"
CALLS = [Call("pwrite", "posix", "write")]


def nested_calls(seed: int, depth: int = 1) -> Events:
    """Random calls of three ranks with two threads each, some of them inside others."""
    rng = np.random.default_rng(seed)
    spans: list[tuple[int, int, int, int]] = []
    for rank in range(3):
        for thread in range(2):
            cuts = np.cumsum(rng.integers(1, 50, 40))
            for start, end in zip(cuts[:-1:2], cuts[1::2], strict=True):
                spans.append((rank, thread, int(start), int(end)))
                if end - start > 4 and rng.random() < 0.5:
                    spans.append((rank, thread, int(start) + 1, int(end) - 1))
                    spans.append((rank, thread, int(start) + 2, int(end) - 2))
    shuffled = np.array(spans)[rng.permutation(len(spans))]
    n = len(shuffled)
    columns = {
        "rank": shuffled[:, 0],
        "thread": shuffled[:, 1],
        "call": np.zeros(n),
        "depth": np.full(n, depth),
        "start": shuffled[:, 2],
        "duration": shuffled[:, 3] - shuffled[:, 2],
        "offset": np.arange(n),
        "requested": np.ones(n),
        "moved": np.full(n, 64),
        "file": np.zeros(n),
        "error": np.zeros(n),
    }
    return Events(columns, CALLS, [""])


@pytest.mark.parametrize("seed", range(5))
def test_calls_in_no_other_of_them_are_outermost(seed: int) -> None:
    """Against each pair of calls of a thread."""
    events = nested_calls(seed)
    end = events.start + events.duration
    inside = [
        any(
            events.rank[j] == events.rank[i]
            and events.thread[j] == events.thread[i]
            and events.start[j] < events.start[i]
            and end[i] < end[j]
            for j in range(len(events))
        )
        for i in range(len(events))
    ]
    found = among_themselves(events)
    assert any(inside)
    np.testing.assert_array_equal(found.depth, inside)
    np.testing.assert_array_equal(found.carried, np.where(inside, 3, 0))
    np.testing.assert_array_equal(found.start, events.start)


def test_calls_inside_chosen_ones_stay_as_they_are() -> None:
    events = among_themselves(nested_calls(1))
    assert events.depth.any()
    for same in (events, events.sorted()):
        assert among_themselves(same) is same
    nothing = events[np.zeros(len(events), np.bool_)]
    assert among_themselves(nothing) is nothing


def test_calls_whose_enclosing_call_is_not_chosen_are_outermost() -> None:
    """Also if other calls of the selection are outside of any call; with their phases."""
    whole = among_themselves(nested_calls(1)).sorted()
    phases = np.arange(len(whole))
    whole.with_derived(lambda name: phases)
    # Without every second outermost call.
    outer = np.flatnonzero(whole.depth == 0)
    chosen = whole[np.setdiff1d(phases, outer[::2])]
    end = chosen.start + chosen.duration
    inside = [
        any(
            chosen.rank[j] == chosen.rank[i]
            and chosen.thread[j] == chosen.thread[i]
            and chosen.start[j] < chosen.start[i]
            and end[i] < end[j]
            for j in range(len(chosen))
        )
        for i in range(len(chosen))
    ]
    found = among_themselves(chosen)
    assert found is not chosen
    np.testing.assert_array_equal(found.depth > 0, inside)
    np.testing.assert_array_equal(found.phase, chosen.phase)


def test_calls_of_equal_times_and_of_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        "rank": [0, 0, 0, 0, 1, 1, 2, 2],
        "thread": [0, 0, 1, 0, 0, 0, 0, 0],
        "start": [0, 2, 2, 10, 3, 3, 5, 5],
        "duration": [8, 3, 3, 0, 9, 4, 6, 6],
        "depth": [0, 1, 1, 0, 1, 2, 1, 0],
        "call": [0] * 8,
    }
    events = Events.partly(
        {name: np.array(values) for name, values in columns.items()}, [Call("pwrite", "posix", "write")], [""]
    )
    for latest in (1 << 61, 1):  # by times, and by their places
        monkeypatch.setattr("ensembles.model.enclosed._LATEST", latest)
        assert among_themselves(events).depth.tolist() == [0, 1, 0, 0, 0, 1, 1, 0]


def test_the_rate_of_a_layer_below_has_its_bytes() -> None:
    events = nested_calls(2)
    moved = 64 * int((among_themselves(events).depth == 0).sum())
    assert data_for(events, RateCurve).moved_bytes.sum() == pytest.approx(moved)


def test_the_command_tells_of_calls_inside_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BT-IO's collective writes have all system calls inside: alone, these count by themselves."""
    with tarfile.open(RUNS / "replay-btio.tar.xz") as archive:
        archive.extractall(tmp_path)
    run = tmp_path / "replay-btio"
    writes = en.open(run).select(layer="posix", op="write")
    assert (writes.depth > 0).all()
    assert main(["rate", str(run), "--op", "write", "--layer", "posix"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"write: {bytes_text(int(writes.moved.sum()))} over ")
    assert "inside calls" not in told.err
    assert data_for(writes, RateCurve).moved_bytes.sum() == pytest.approx(writes.moved.sum())
