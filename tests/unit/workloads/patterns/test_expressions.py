"""Expressions of patterns: whole-number arithmetic, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.expressions import parse


def value(text, **names):
    return parse(text, "here:1").evaluate(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16 * MiB", 16 * 2**20),
        ("KiB + MiB + GiB", 2**10 + 2**20 + 2**30),
        ("-7 // 2", -4),
        ("7 % 4", 3),
        ("12 / 4", 3),
        ("(1 + 2) * -3", -9),
        ("3 < 4 and 4 <= 4", 1),
        ("3 != 3 or not 0", 1),
        ("not 5", 0),
        ("2 and 4", 1),
    ],
)
def test_value_is_that_of_whole_number_arithmetic(text, expected):
    assert value(text) == expected


def test_a_number_is_an_expression():
    assert value(4096) == 4096


def test_pick_chooses_by_number_and_keeps_the_last_for_higher_ones():
    assert [value("pick(call, 5, 7, 9)", call=call) for call in range(5)] == [5, 7, 9, 9, 9]
    call = np.array([3, 0, 1, 2], dtype=np.int64)
    np.testing.assert_array_equal(value("pick(call, 5, 10 * call, 9)", call=call), [9, 5, 10, 9])
    np.testing.assert_array_equal(value("pick(call, 4)", call=call), [4, 4, 4, 4])
    np.testing.assert_array_equal(value("pick(1, 4, call)", call=call), call)


@pytest.mark.parametrize("text", ["pick(3)", "pick(call - 1, 3, 4)"])
def test_pick_refuses_what_has_no_value(text):
    with pytest.raises(EnsioError, match="pick"):
        value(text, call=np.arange(3, dtype=np.int64))


def test_arrays_give_a_value_for_each_task():
    rank = np.arange(4, dtype=np.int64)
    np.testing.assert_array_equal(value("rank * 10 + (rank % 2 == 0)", rank=rank), [1, 10, 21, 30])


@st.composite
def formulas(draw, depth=4):
    """A formula over a and b, fully in parentheses."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["a", "b", *map(str, range(20))]))
    operator = draw(st.sampled_from(["+", "-", "*", "//", "%", "<", "==", ">="]))
    return f"({draw(formulas(depth - 1))} {operator} {draw(formulas(depth - 1))})"


@given(formulas(), st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=1, max_size=5))
def test_arrays_agree_with_the_integers_of_python(text, pairs):
    def by_python(a, b):
        return int(eval(text, {"__builtins__": {}}, {"a": a, "b": b}))

    columns = np.array(pairs, dtype=np.int64).T
    try:
        expected = [by_python(a, b) for a, b in pairs]
    except ZeroDivisionError:
        with pytest.raises(EnsioError, match="divides by zero"):
            value(text, a=columns[0], b=columns[1])
        return
    np.testing.assert_array_equal(
        np.broadcast_to(value(text, a=columns[0], b=columns[1]), len(pairs)), expected
    )


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('x')",
        "rank.__class__",
        "[1, 2]",
        "lambda: 1",
        "1 if 2 else 3",
        "2 ** 62",
        "1 << 3",
        "1.5",
        "'text'",
        "True",
        "rank[0]",
        "1 < 2 < 3",
        "(x := 1)",
    ],
)
def test_everything_but_arithmetic_is_refused(text):
    with pytest.raises(EnsioError, match=r"^here:1: .* is not allowed: use names, whole numbers"):
        parse(text, "here:1")


@pytest.mark.parametrize("text", ["", "1 +", "a b", "1\0", "(" * 500, "a" + "+a" * 2000])
def test_text_that_does_not_parse_is_refused(text):
    with pytest.raises(EnsioError, match=r"(?s)^here:1: .* (is not an expression|is longer than)"):
        parse(text, "here:1")


@pytest.mark.parametrize("source", [1.5, True, None, ["1"], {"a": 1}])
def test_other_types_are_refused(source):
    with pytest.raises(EnsioError, match="neither a whole number nor an expression"):
        parse(source, "here:1")


def test_unknown_name_is_told_with_those_there_are():
    with pytest.raises(
        EnsioError, match=r'here:1: "rnak \* 2": "rnak" is not a name here: .*rank, KiB, MiB, GiB'
    ):
        value("rnak * 2", rank=1)


def test_division_with_a_remainder_is_refused():
    with pytest.raises(EnsioError, match="remainder"):
        value("rank / 2", rank=np.array([2, 3]))


@pytest.mark.parametrize("text", ["big * big", "big * 2 + big * 2", "-big * 2 - big * 2", "9" * 40])
def test_numbers_that_do_not_fit_are_refused_and_never_wrap(text):
    with pytest.raises(EnsioError, match="more than 63 bits"):
        value(text, big=np.array([0, 2**61]))
