"""Events of a spool become the same columns in C and in NumPy: those that the arithmetic says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from oracles import numpy_columns

from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.readers.common.columns import LARGEST_MOVED_BYTES, ReusedColumns, empty_columns
from ensembles.readers.native import window_decoder
from ensembles.readers.native.block_reader import BlockReader
from ensembles.readers.native.spool import Window
from ensembles.readers.native.window_decoder import Decoding


def decoding(ns_per_tick: float, first_ticks: int = 1 << 40) -> Decoding:
    """Of a process that knows three calls and two files."""
    return Decoding(
        path="a.spool",
        job_path="",
        windows=(),
        coded=(),
        rank=70_000,
        first_thread=3,
        call_numbers=np.array([0, 5, 2, 9, 0], "u2"),
        file_numbers=np.array([0, 4, 1, 0], "u4"),
        site_numbers=np.array([0, 7, 0], "u2"),
        first_ticks=first_ticks,
        ns_per_tick=ns_per_tick,
        start_ns=123_456_789,
    )


def raw_events(count: int, seed: int, first_ticks: int = 1 << 40) -> np.ndarray:
    """Completed events with everything in them that may be, before the first tick too."""
    random = np.random.default_rng(seed)
    raw = np.zeros(count, EVENT.dtype)
    raw["start"] = first_ticks + random.integers(-(2**40) + 1, 2**50, count)
    raw["duration"] = random.integers(0, 2 ** random.integers(1, 52, count))
    raw["offset"] = random.integers(-1, 2**60, count)
    raw["requested"] = random.integers(0, 2**63, count)
    raw["moved"] = np.where(
        random.random(count) < 0.2, -random.integers(1, 10**6, count), random.integers(0, 2**40, count)
    )
    raw["file"] = random.choice([0, 1, 2, 3, 2**16 - 1], count)
    raw["site"] = random.choice([0, 1, 2, 2**16 - 1], count)
    raw["call"] = random.choice([1, 2, 3, 4, 0xFFFF], count)
    raw["depth"], raw["flags"] = random.integers(0, 256, (2, count))
    return raw


@pytest.mark.parametrize("ns_per_tick", [1.0, 0.4, 1 / 2.6999, 3.7])
@pytest.mark.parametrize("names", [None, (), ("moved",), ("file", "rank")], ids=str)
def test_compiled_columns_equal_those_of_numpy_to_the_last_bit(ns_per_tick: float, names) -> None:
    raw = raw_events(5000, 7)
    mine, theirs = (empty_columns(len(raw), names) for _ in range(2))
    for columns in (mine, theirs):  # a reader fills them in from other rows
        columns.pop("flight", None), columns.pop("request", None)
    found = window_decoder.decode(decoding(ns_per_tick), 8, raw, mine)
    assert found == numpy_columns.decode(decoding(ns_per_tick), 8, raw, theirs)
    assert found is not None
    assert found.unknown_calls == np.isin(raw["call"], [4, 0xFFFF]).sum() > 0
    assert mine.keys() == theirs.keys()
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("decode", [window_decoder.decode, numpy_columns.decode])
def test_columns_are_what_the_arithmetic_says(decode) -> None:
    raw = raw_events(200, 11)
    rate = 0.375
    out = empty_columns(len(raw))
    assert decode(decoding(rate), 8, raw, out).unknown_files == np.isin(raw["file"], [3, 2**16 - 1]).sum()
    for row, event in enumerate(raw):
        # Python rounds halves of exact fractions to even numbers.
        since = Fraction(int(event["start"]) - (1 << 40)) * Fraction(rate)
        assert out["start"][row] == round(since) + 123_456_789
        assert out["duration"][row] == round(Fraction(int(event["duration"])) * Fraction(rate))
        assert out["call"][row] == {1: 5, 2: 2, 3: 9}.get(int(event["call"]), 0)
        assert out["file"][row] == {1: 4, 2: 1}.get(int(event["file"]), 0)
        assert out["site"][row] == {1: 7}.get(int(event["site"]), 0)
        moved = int(event["moved"])
        expected = (moved, 0) if moved >= 0 else (-1, -moved if moved > -65536 else 0)
        assert (out["moved"][row], out["error"][row]) == expected
    assert set(out["rank"]) == {70_000}
    assert set(out["thread"]) == {8}
    for name, stored in (("depth", "depth"), ("carried", "flags"), ("offset", "offset")):
        np.testing.assert_array_equal(out[name], raw[stored])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("start", 0),
        ("start", 2**63),
        ("duration", 2**56),
        ("duration", 2**63 + 5),
        ("moved", LARGEST_MOVED_BYTES + 1),
    ],
)
def test_impossible_times_and_amounts_are_damage_wherever_they_are_found(name: str, value: int) -> None:
    raw = raw_events(50, 3, first_ticks=2**60)
    raw[name][17] = value
    mine, theirs = empty_columns(50), empty_columns(50)
    assert window_decoder.decode(decoding(0.4, 2**60), 0, raw, mine) is None
    assert numpy_columns.decode(decoding(0.4, 2**60), 0, raw, theirs) is None
    np.testing.assert_array_equal(np.flatnonzero(~window_decoder.sound(decoding(0.4, 2**60), raw)), [17])


@pytest.mark.parametrize("missing", [[], [49], [0], list(range(10, 30)), list(range(50))], ids=str)
def test_slots_of_calls_that_were_never_completed_are_closed_up(missing: list[int]) -> None:
    raw = raw_events(50, 5)
    raw["call"][missing] = 0
    expected = raw[raw["call"] > 0].copy()
    assert window_decoder.compact(raw) == len(expected) == 50 - len(missing)
    np.testing.assert_array_equal(raw[: len(expected)], expected)


def test_columns_that_are_too_short_are_refused() -> None:
    raw = raw_events(50, 5)
    out = empty_columns(49)
    with pytest.raises(ValueError, match="do not fit"):
        window_decoder.decode(decoding(0.4), 0, raw, out)


def read_whole(path, rooms: list[int], slots: int, summed: int = 0):
    """All events of a spool of one window, read with room for so many at a time, and what is said of them."""
    told = replace(decoding(0.4), path=str(path), windows=[Window(64, slots, 5, summed)])
    reader, parts = BlockReader([told]), []
    for room in rooms * slots:
        out = empty_columns(room + 3)
        count = reader.read(out, 3, room)
        if count == 0:
            return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}, reader.flaws
        parts.append({name: column[3 : 3 + count].copy() for name, column in out.items()})
    raise AssertionError("the reader does not end")


@pytest.mark.parametrize("summed", [0, 3000, 9000])
@pytest.mark.parametrize("rooms", [[20_000], [700], [1, 5000]], ids=str)
def test_windows_are_read_whole_whatever_room_there_is(tmp_path, rooms, summed) -> None:
    raw = raw_events(9000, 13)
    raw["call"][[0, 17, 8999]] = 0
    raw["call"][2500:7000] = 0  # more than is read at a time
    raw["flags"][2400:2600] = CONSTANTS["ENSIO_SUMMED_ONLY"]  # emptied
    raw["flags"][[0, 17, *range(2600, 7000), 8999]] = 0
    raw["duration"][[100, 7100, 8998]] = 2**56
    path = tmp_path / "a.spool"
    path.write_bytes(bytes(64) + raw.tobytes())
    found, flaws = read_whole(path, rooms, len(raw) + 50, summed)  # the file ends before
    kept = raw[(raw["call"] > 0) & (raw["duration"] < 2**56)]
    # Of the empty slots at the end one is in the summary. How many calls the others lost is not known.
    assert flaws.left_out == {(str(path), "event"): 3 + 2 + 4400 + (summed == 9000)}
    assert flaws.unknown_calls >= np.isin(kept["call"], [4, 0xFFFF]).sum()
    expected = empty_columns(len(kept))
    numpy_columns.decode(decoding(0.4), 8, kept.copy(), expected)
    expected["flight"][:], expected["request"][:] = -1, 0
    for name in COLUMNS:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_a_spool_that_cannot_be_read_is_told(tmp_path) -> None:
    told = replace(decoding(0.4), path=str(tmp_path), windows=[Window(0, 5, 0)])
    with pytest.raises(EnsioError, match="cannot be read: it is not a regular file"):
        BlockReader([told]).read(empty_columns(5), 0, 5)


def test_columns_are_used_again_only_when_nobody_holds_one() -> None:
    reused = ReusedColumns(10, ("moved",))
    place = id(reused.taken()["moved"])
    assert id(reused.taken()["moved"]) == place
    held = reused.taken()["moved"]
    assert reused.taken()["moved"] is not held
    view = reused.taken()["duration"][3:]
    assert not np.shares_memory(reused.taken()["duration"], view)
