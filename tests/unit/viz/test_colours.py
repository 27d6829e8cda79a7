"""Colours of operations differ, for all eyes and on light and dark pages."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from colour_vision import VISION, ciede2000, lab

from ensembles.ensemble.display import _COLOURS
from ensembles.viz.common.style import COLOURS, READS_AND_WRITES
from ensembles.viz.common.theme import DARK

LEAST = 14.0
PHASES = ("write", "read", "metadata", "wait", "sync")
"""Classes whose colours are beside that of reads and writes."""


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    # Of the test data of G. Sharma et al.
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((50, 2.5, 0), (61, -5, 29), 22.8977),
        ((63.0109, -31.0961, -5.8663), (62.8187, -29.7946, -4.0864), 1.2630),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_differences_of_colours_are_those_of_the_standard(one, other, difference: float) -> None:
    assert ciede2000(np.array(one), np.array(other)) == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("page", ["light", "dark"])
def test_operations_are_told_apart_by_all_eyes(vision: str, page: str) -> None:
    def seen(colour: str) -> np.ndarray:
        return lab(DARK.get(colour, colour) if page == "dark" else colour, vision)

    near = {
        pair: round(found, 1)
        for pair in combinations(COLOURS, 2)
        if (found := ciede2000(*(seen(COLOURS[name]) for name in pair))) < LEAST
    }
    assert near == {}
    both = {name: ciede2000(seen(COLOURS[name]), seen(READS_AND_WRITES)) for name in PHASES}
    assert {name: found for name, found in both.items() if found < LEAST} == {}


def test_an_ensemble_shows_itself_in_the_colours_of_pictures() -> None:
    assert {op: COLOURS.get(op, COLOURS["metadata"]) for op in _COLOURS} == _COLOURS
