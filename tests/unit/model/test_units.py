"""Numbers, shares and ranks as text."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model.spans import find_spans, some_spans_text, spans_text
from ensembles.model.units import number_text, ratio_text, share_text


@pytest.mark.parametrize("digits", [0, 1, 2, None])
def test_only_nothing_is_printed_as_zero_and_only_all_as_all(digits: int | None) -> None:
    for share in np.concatenate([np.logspace(-12, 0, 500)[:-1], 1 - np.logspace(-12, -1, 500)]).tolist():
        text = share_text(share, digits)
        number = float(text.strip("<>% "))
        assert 0 < number < 100, (share, text)
        assert abs(number - 100 * share) <= 1.001 * 10.0 ** -(1 if digits is None else digits), (share, text)
    assert float(share_text(0.0, digits).rstrip(" %")) == 0
    assert float(share_text(1.0, digits).rstrip(" %")) == 100


def test_large_numbers_have_their_digits_and_no_power_of_ten() -> None:
    for value in np.logspace(-3, 15, 500).tolist():
        for digits in (2, 3, 6):
            text = number_text(value, digits)
            assert "e" not in text, text
            assert float(text.replace(",", "")) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))
    assert (number_text(999.4), number_text(999.6), number_text(6000)) == ("999", "1,000", "6,000")
    assert ratio_text(6000) == "× 6,000"


def test_lists_of_ranks_are_ranges_and_long_ones_are_shortened() -> None:
    assert some_spans_text(find_spans([*range(42), 44])) == "0-41, 44"
    assert some_spans_text(find_spans(range(0, 180, 2))) == "0, 2, 4, 6, 8, ..., 178"
    many = np.random.default_rng(1).permutation(1000)[:300]
    spans = find_spans(many)
    assert sorted(many.tolist()) == [rank for low, high in spans for rank in range(low, high + 1)]
    assert spans_text(spans) == spans_text(find_spans(sorted(many)))
    assert len(find_spans(many, 16)) == 16
    assert find_spans([]) == ()
