"""A histogram of durations in block characters, for terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ensembles.faces.words import sentence
from ensembles.model.statement import Bars
from ensembles.model.units import seconds_text

COLUMNS = 76
ROWS = 5

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = len(_BLOCKS) - 1
_MARGIN = "  "
_PER_OCTAVE = (32, 16, 8, 4, 2, 1)
_FEW_BINS = 16
_CALLS_PER_BIN = 5


def bars_text(bars: Bars, rows: int = ROWS) -> str:
    """Format a histogram on a log scale of durations, with its caption.

    Returns
    -------
    str
        Lines without an end of line after the last; empty if all calls are in one bin. Heights are
        proportional to the numbers of calls, but no bin with calls has no height.

    Examples
    --------
    >>> from ensembles.faces.bars import bars_text
    >>> from ensembles.model.statement import Bars, Statement
    >>> ensemble = en.Ensemble(np.repeat([0.001, 0.002, 0.004], [10, 40, 20]))
    >>> bars = Bars(lambda bins: ensemble.histogram(bins=bins), 70, [0.002], Statement("sites.none"))
    >>> for line in bars_text(bars, rows=2).splitlines()[:-1]:
    ...     print("|" + line.rstrip())
    |                                  ████████
    |  ▄▄▄▄▄▄▄▄                        ████████                        ████████
    |                                       1
    |       1.00 ms                         2.00 ms
    """
    for per_octave in _PER_OCTAVE:
        found = bars.histogram(per_octave)
        if len(found.amounts) <= min(COLUMNS, max(_FEW_BINS, bars.calls // _CALLS_PER_BIN)):
            break
    edges_s, amounts = found.edges_s, found.amounts
    if len(amounts) < 2 or not edges_s[0] > 0:
        return ""
    wide = COLUMNS // len(amounts)
    amounts = np.repeat(amounts, wide)
    edges_s = np.exp(np.interp(np.arange(len(amounts) + 1) / wide, np.arange(len(edges_s)), np.log(edges_s)))
    eighths = np.ceil(amounts / amounts.max() * rows * _EIGHTHS).astype(int)
    lines = [
        "".join(_BLOCKS[min(max(height - row * _EIGHTHS, 0), _EIGHTHS)] for height in eighths)
        for row in reversed(range(rows))
    ]
    if len(bars.marks_s):
        marks = " " * (len(amounts) + len(bars.marks_s))
        for number, column in enumerate(_columns(edges_s, bars.marks_s), 1):
            at = marks.index(" ", column)  # modes of one column stand side by side
            marks = marks[:at] + (str(number) if number < 10 else "+") + marks[at + 1 :]
        lines.append(marks)
    lines += [_labels(edges_s), sentence(bars.caption)]
    return "\n".join((_MARGIN + line).rstrip() for line in lines)


def _columns(edges_s: np.ndarray, at_s: Sequence[float] | np.ndarray) -> list[int]:
    found = np.searchsorted(edges_s, np.asarray(at_s) * (1 + 1e-9), side="right") - 1
    return np.clip(found, 0, len(edges_s) - 2).tolist()  # type: ignore[no-any-return]


def _labels(edges_s: np.ndarray) -> str:
    """Write round durations below their columns: powers of ten first, then others where there is room."""
    line = " " * (len(edges_s) - 1)
    low, high = math.floor(math.log10(edges_s[0])), math.ceil(math.log10(edges_s[-1]))
    round_s = np.array([factor * 10.0**decade for factor in (1, 2, 5) for decade in range(low, high + 1)])
    inside_s = round_s[(round_s >= edges_s[0] * (1 - 1e-9)) & (round_s <= edges_s[-1] * (1 - 1e-9))]
    for t_s, at in zip(inside_s.tolist(), _columns(edges_s, inside_s), strict=True):
        text = seconds_text(t_s)
        free = not line[max(0, at - 2) : at + len(text) + 2].strip()
        if free and at + len(text) <= COLUMNS:
            line = line[:at] + text + line[at + len(text) :]
    if not line.strip():
        first, last = seconds_text(edges_s[0]), seconds_text(edges_s[-1])
        line = first + last.rjust(len(line) - len(first))
    return line
