"""Texts of call sites, their labels, and the filters that name them."""

from __future__ import annotations

import pytest

from ensembles.model.sites import Frame, SiteTable, frames_text, parse_frames

APP = "/opt/app dir/solver"
LINE = Frame(APP, 4587, "c5b5", "line", "restart::write", "/src/io/restart.f90", 212)
SYMBOL = Frame(APP, 4599, "c5b5", "function", "dump", "", 31)


@pytest.mark.parametrize(
    "frames",
    [
        (LINE,),
        (LINE, SYMBOL),
        (Frame(APP, 4587),),
        (Frame("", 1 << 47),),
        (Frame(APP, 7, "ab", "stripped"), Frame(APP, 8, "ab", "rebuilt"), Frame(APP, 9, "", "missing")),
    ],
)
def test_texts_come_back(frames: tuple[Frame, ...]) -> None:
    assert parse_frames(frames_text(frames)) == frames


def test_the_text_of_the_recorder() -> None:
    (frame,) = parse_frames(f"4587 c5b5 {APP}")
    assert (frame.address, frame.build_id, frame.module, frame.state) == (4587, "c5b5", APP, "unknown")


@pytest.mark.parametrize(
    "text",
    ["", "x", "-1 a /b", "1" * 40 + " a /b", "1", "1 - /b\tline\tf\tg\tx", "1 - /b\tother\tf\tg\t1", "\n\n"],
)
def test_damaged_texts_give_unknown_places(text: str) -> None:
    assert {frame.state for frame in parse_frames(text)} == {"unknown"}


def test_labels() -> None:
    assert LINE.label == "restart::write, restart.f90:212"
    assert SYMBOL.label == "dump+0x1f (solver)"
    assert Frame(APP, 0x11AB, "c5", "stripped").label == "solver+0x11ab"
    assert Frame(APP, 0x11AB, "c5", "rebuilt").label == "solver+0x11ab (rebuilt since)"


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ("restart.f90:212", True),
        ("restart.f90", True),
        ("/src/io/restart.f90:212", True),
        ("*/io/*", True),
        ("restart::write", True),
        ("restart.f90:21", False),
        ("restart.f90:21?", True),
        ("write", False),
        ("*write", True),
        ("dump", False),
        ("", False),
    ],
)
def test_filters_name_lines_files_and_functions(wanted: str, matches: bool) -> None:
    assert LINE.matches(wanted) is matches


def test_places_are_looked_up_once_and_when_they_are_needed() -> None:
    asked = []

    def resolve(sites: list[tuple[Frame, ...]]) -> list[tuple[Frame, ...]]:
        asked.append(len(sites))
        return [(LINE,) for _ in sites]

    table = SiteTable(["", f"4587 c5b5 {APP}"], resolve)
    assert (len(table), table[0], asked) == (2, "", [])
    assert table == SiteTable(["", frames_text((LINE,))])  # places depend on the machine
    assert (table[1], table[-1], table[0:2]) == (LINE.label, LINE.label, ["", LINE.label])
    assert table.texts == ["", frames_text((LINE,))]
    assert asked == [1]
    with pytest.raises(IndexError):
        table[2]
