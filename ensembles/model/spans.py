"""Numbers of ranks, phases and calls as spans: found in arrays, and written for people and filters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

MOST_SPANS, MOST_SPANS_SHOWN = 128, 6


def find_spans(numbers: Any, most: int | None = None) -> tuple[tuple[int, int], ...]:
    """Group numbers into spans, both ends included.

    `most`: largest number of spans; of more, the nearest ones are joined. Default: none are.
    """
    numbers = np.unique(np.asarray(numbers, np.int64))
    if not len(numbers):
        return ()
    gap = np.diff(numbers)
    cuts = np.flatnonzero(gap > 1)
    if most is not None and len(cuts) >= most:
        cuts = np.sort(cuts[np.argsort(-gap[cuts], kind="stable")[: most - 1]])
    low = numbers[np.concatenate([[0], cuts + 1])]
    high = numbers[np.concatenate([cuts, [len(numbers) - 1]])]
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def spans_text(spans: Iterable[tuple[int, int]]) -> str:
    """Format spans as filters take them: ``0-63,70``."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def some_spans_text(spans: tuple[tuple[int, int], ...]) -> str:
    """Format spans as sentences have them; of more than `MOST_SPANS_SHOWN` the first ones and the last."""
    if len(spans) > MOST_SPANS_SHOWN:
        return f"{some_spans_text(spans[: MOST_SPANS_SHOWN - 1])}, ..., {some_spans_text(spans[-1:])}"
    return spans_text(spans).replace(",", ", ")
