"""Calls of several boxes: a row of the plan for each, of which only the first names the call."""

import numpy as np
import pytest

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns import expand, read_pattern

TEXT = """\
title = "two boxes a call"
layer = "mpiio"

[parameters]
tasks = 2
boxes = 2

[files.data]
path = "data.bin"

[[phases]]
name = "write"

[[phases.operations]]
call = "open"
file = "data"

[[phases.operations]]
call = "write_at_all"
file = "data"
times = 2
boxes = "boxes"
offset = "1000 * call + 300 * box + 10 * rank"
size = "20 - 20 * (box == 0 and rank == 1)"
pieces = 2
stride = 100
"""


@pytest.fixture
def expanded(tmp_path):
    def made(text, **parameters):
        path = tmp_path / "own.toml"
        path.write_text(text)
        return expand(read_pattern(path), parameters)

    return made


def rows_of(plan, rank):
    own = plan.column("rank") == rank
    return [
        (int(call), int(offset), int(size))
        for call, offset, size in zip(
            *(plan.column(key)[own] for key in ("call", "offset", "bytes")), strict=True
        )
    ]


def test_a_call_has_a_row_for_each_box_with_data(expanded):
    plan = expanded(TEXT)
    assert plan.calls == ("mpiio.open", "mpiio.write_at_all")
    assert rows_of(plan, 0) == [(0, 0, 0), (1, 0, 20), (-1, 300, 20), (1, 1000, 20), (-1, 1300, 20)]
    assert rows_of(plan, 1) == [(0, 0, 0), (1, 310, 20), (1, 1310, 20)]
    assert plan.operations == 8
    assert plan.counts.tolist() == [5, 3]
    assert plan.needed_bytes() == 1310 + 100 + 10


def test_one_box_is_a_call_without_the_key(expanded):
    one = expanded(TEXT, boxes=1)
    without = expanded(
        TEXT.replace('boxes = "boxes"\n', "").replace("300 * box + ", "").replace("box == 0 and ", "")
    )
    for ours, theirs in zip(one.blocks(), without.blocks(), strict=True):
        assert np.array_equal(ours.rows, theirs.rows)


def test_a_call_whose_boxes_are_empty_has_one_row(expanded):
    plan = expanded(TEXT.replace("box == 0 and ", ""))
    assert [(call, size) for call, _, size in rows_of(plan, 1)] == [(0, 0), (1, 0), (1, 0)]


def test_boxes_may_differ_between_tasks_in_number(expanded):
    plan = expanded(
        TEXT.replace('boxes = "boxes"', 'boxes = "rank + 1"').replace("box == 0 and rank == 1", "0")
    )
    assert [call for call, _, _ in rows_of(plan, 0)] == [0, 1, 1]
    assert [call for call, _, _ in rows_of(plan, 1)] == [0, 1, -1, 1, -1]


def test_operations_with_boxes_can_take_turns(expanded):
    turns = (
        TEXT
        + """
[[phases.operations]]
call = "read_at"
file = "data"
times = 2
alternates = true
offset = "1000 * call"
size = 5
"""
    )
    plan = expanded(turns)
    assert [call for call, _, _ in rows_of(plan, 0)] == [0, 1, -1, 2, 1, -1, 2]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("300 * box", "300 * (1 - box)", "the box begins before the end of the one before it"),
        ("300 * box", "50 * box", "the box begins before the end of the one before it"),
        ('boxes = "boxes"', 'boxes = "0"', "it must be at least 1"),
        ('"20 - 20 * (box == 0 and rank == 1)"', '"20 - 21 * (box == 1)"', "the size is below 0 bytes"),
        ("10 * rank", "0 * rank", "both write byte"),
        ("times = 2", 'times = "box"', '"box" is not a name here'),
        ("boxes = 2", "box = 2", '"box" cannot be the name of a parameter'),
    ],
)
def test_boxes_that_cannot_be_are_refused_with_their_line(expanded, old, new, told):
    with pytest.raises(EnsioError, match=told) as raised:
        expanded(TEXT.replace(old, new, 1))
    assert "own.toml" in str(raised.value)


def test_a_variable_of_boxes_is_as_long_as_all_of_them(expanded):
    text = TEXT.replace('layer = "mpiio"', 'layer = "pnetcdf"').replace('"open"', '"create"', 1)
    text = (
        text.replace('"write_at_all"', '"iput"')
        .replace("times = 2", "times = 1")
        .replace("10 * rank", "20 * rank")
        .replace('"20 - 20 * (box == 0 and rank == 1)"', "20")
        .replace(" 2\nstride = 100", " 1\nstride = 20")
    )
    made = """[[phases.operations]]
call = "variable_create"
file = "data"
boxes = 4
size = 300

[[phases.operations]]
call = "iput\""""
    plan = expanded(
        text.replace('[[phases.operations]]\ncall = "iput"', made)
        + """
[[phases.operations]]
call = "wait_all"
file = "data"
"""
    )
    variable = [row for row in rows_of(plan, 1) if row[2] == 300]
    assert variable == [(1, 0, 300), (-1, 300, 300), (-1, 600, 300), (-1, 900, 300)]
    assert plan.needed_bytes() == 1200


def test_calls_of_hdf5_have_no_boxes(expanded):
    text = TEXT.replace('layer = "mpiio"', 'layer = "hdf5"').replace('"write_at_all"', '"write_all"')
    with pytest.raises(EnsioError, match="boxes"):
        expanded(text)
