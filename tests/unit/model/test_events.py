"""Events as columns."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model.events import COLUMN_MEANINGS, COLUMNS, OPS, Call, Events

CALLS = (Call("pwrite", "posix", "write"), Call("close", "posix", "close"), Call("close", "stdio", "close"))


def made(length: int = 4, **columns: list[int]) -> Events:
    given = {name: columns.get(name, np.zeros(length, dtype)) for name, dtype in COLUMNS.items()}
    return Events(given, CALLS, ["", "/a"])


def test_every_column_has_a_meaning() -> None:
    assert list(COLUMN_MEANINGS) == list(COLUMNS)


def test_derived_columns_follow_from_the_others() -> None:
    events = made(3, start=[1, 5, 9], duration=[2, 2, 2], call=[0, 1, 2])
    assert events.end.tolist() == [3, 7, 11]
    assert [OPS[number] for number in events.op] == ["write", "close", "close"]


def test_masks_slices_and_positions_choose_events() -> None:
    events = made(4, start=[1, 2, 3, 4])
    assert events[events.start > 2].start.tolist() == [3, 4]
    assert events[1:3].start.tolist() == [2, 3]
    assert events[[3, 0]].start.tolist() == [4, 1]
    assert events[-1].start.tolist() == [4]
    assert len(events[:0]) == 0


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="column 'start'"):
        made(3, start=[1, 2])


def test_events_of_different_runs_are_not_put_together() -> None:
    other = Events(made().columns, CALLS[:1], ["", "/a"])
    with pytest.raises(ValueError, match="different runs"):
        Events.concatenate([made(), other])


def test_sorting_is_by_rank_and_then_by_start_and_keeps_equals_in_order() -> None:
    events = made(5, rank=[1, 0, 1, 0, 0], start=[5, 9, 5, 2, 9], offset=[0, 1, 2, 3, 4]).sorted()
    assert events.rank.tolist() == [0, 0, 0, 1, 1]
    assert events.offset.tolist() == [3, 1, 4, 0, 2]


def test_a_data_frame_has_names_in_place_of_numbers() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = made(3, call=[0, 1, 2], file=[1, 0, 1], moved=[7, -1, 0]).to_pandas()
    assert frame["call"].tolist() == ["pwrite", "close", "close"]
    assert frame["layer"].tolist() == ["posix", "posix", "stdio"]
    assert frame["op"].tolist() == ["write", "close", "close"]
    assert frame["file"].tolist() == ["/a", "", "/a"]
    assert frame["moved"].tolist() == [7, -1, 0]


def test_what_is_shown_of_events_tells_how_many_there_are() -> None:
    shown = repr(made(3, rank=[0, 1, 1], start=[0, 0, 10**9], duration=[0, 0, 5 * 10**8]))
    assert shown == "Events: 3 calls of 2 tasks over 1.500 s"
    assert repr(Events.empty()) == "Events: none"
