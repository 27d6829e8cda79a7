"""Tables of the commands: alignment, and what becomes of those that are wider than a terminal."""

from __future__ import annotations

import tabulate
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.table import columns_text, first_that_fits, folded_table_text, table_text

CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=12)


def test_numbers_are_to_the_right_and_names_to_the_left() -> None:
    assert table_text(["name", "calls"], [["a", 1], ["longer", "1,024"]]).split("\n") == [
        "name    calls",
        "------  -----",
        "a           1",
        "longer  1,024",
    ]
    assert table_text(["n", "a name"], [[10, "x"]], left={1}) == " n  a name\n--  ------\n10  x"
    assert table_text(["a", "b"], []) == "a  b\n-  -"


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=2)))
def test_tables_are_those_of_tabulate(rows: list[list[str]]) -> None:
    tabulate.MIN_PADDING, tabulate.WIDE_CHARS_MODE = 0, False
    headers = [f"{at}{text}" for at, text in enumerate(rows[0])]
    align = ["left", *["right"] * (len(headers) - 1)]
    expected = tabulate.tabulate(rows[1:], headers, "simple", disable_numparse=True, colalign=align)
    assert table_text(headers, rows[1:]) == expected


def test_lines_of_headers_are_above_their_column() -> None:
    lines = table_text(["run", "A1\nand 2 more"], [["span", "2.73 s"]]).split("\n")
    assert lines == ["              A1", "run   and 2 more", "----  ----------", "span      2.73 s"]


def test_the_first_that_fits_is_taken_and_no_further_one_made() -> None:
    def tables():
        yield "x" * 81
        yield "y" * 80
        raise AssertionError

    assert first_that_fits(tables()) == "y" * 80
    assert first_that_fits(["x" * 90, "x" * 85]) == "x" * 85


def test_folded_tables_begin_with_the_same_columns() -> None:
    headers = ["API", "op", *(f"column {at}" + "-" * 20 for at in range(3))]
    rows = [["posix", "read", 1, 2, 3]]
    parts = [part.split("\n") for part in folded_table_text(headers, rows, left=2, first=2).split("\n\n")]
    assert [part[0].split()[:2] for part in parts] == [["API", "op"]] * 2
    assert [part[2].split() for part in parts] == [["posix", "read", "1", "2"], ["posix", "read", "3"]]
    assert columns_text(headers, rows, {0, 1}, [1, 4]).split("\n")[2].split() == ["read", "3"]
