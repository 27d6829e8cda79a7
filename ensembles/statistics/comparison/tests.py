"""The tests behind a comparison of one or more kinds of calls, and how they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensembles.statistics.comparison.parts import Scores
from ensembles.statistics.comparison.permutation import PermutationTest, permutation_test
from ensembles.statistics.comparison.ranks import dunn_test, holm, rank_test
from ensembles.statistics.comparison.units import RUNS, Units


def tests_of(
    units: Sequence[Units], scores: Sequence[Scores], rng: np.random.Generator
) -> list[PermutationTest]:
    """The tests of several kinds of calls, their p-values in view of all kinds.

    Kinds of which the same runs are the units are permuted together, so that the step-down maximum goes
    over the parts of all of them. Kinds that are tested apart (by blocks, or because some runs lack them)
    have their p-values raised as Holm does.

    Parameters
    ----------
    units : sequence of Units
    scores : sequence of Scores
        Of each kind.
    rng : numpy Generator
    """
    families: dict[Any, list[int]] = {}
    for number, one in enumerate(units):
        key = one.group.tobytes() if one.what == RUNS else number
        families.setdefault(key, []).append(number)
    tests: dict[int, PermutationTest] = {}
    for members in families.values():
        together = permutation_test(
            np.hstack([scores[i].total for i in members]),
            np.hstack([scores[i].size for i in members]),
            units[members[0]].group,
            rng,
            units[members[0]].spread,
        )
        ends = np.cumsum([len(scores[i].parts) for i in members])[:-1]
        apart = zip(members, np.split(together.p, ends), np.split(together.adjusted_p, ends), strict=True)
        for i, p, adjusted in apart:
            tests[i] = replace(together, p=p, adjusted_p=adjusted)
    least = [min(tests[i].adjusted_p.min() for i in members) for members in families.values()]
    raised = holm(least)
    for members, p, in_view in zip(families.values(), least, raised, strict=True):
        for i in members:
            # The least of a family becomes what Holm makes of it, the others follow.
            adjusted = np.minimum(np.maximum(tests[i].adjusted_p * in_view / p, in_view), 1.0)
            tests[i] = replace(tests[i], adjusted_p=adjusted)
    return [tests[i] for i in range(len(units))]


def told_tests(
    test: PermutationTest, by_welch: np.ndarray, units: Units, scores: Scores, names: Sequence[str]
) -> dict[str, Any]:
    """The tests of one kind of calls as plain numbers and texts."""
    found: dict[str, Any] = {
        "units": units.what,
        "sizes": units.sizes,
        "memory": units.memory,
        "method": "permutation of units, studentised, step-down maximum; and Welch's t test",
        "arrangements": test.arrangements,
        "exact": test.exact,
        "smallest_p": test.smallest_p,
        "p": float(np.maximum(test.adjusted_p, by_welch).min()),
        "parts": {
            part.name: {
                "p": float(test.p[i]),
                "permutation_p": float(test.adjusted_p[i]),
                "welch_holm_p": float(by_welch[i]),
            }
            for i, part in enumerate(scores.parts)
        },
    }
    if units.what == RUNS:
        _add_rank_tests(found, units, scores, names)
    return found


def _add_rank_tests(found: dict[str, Any], units: Units, scores: Scores, names: Sequence[str]) -> None:
    """Those of one value a run."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = scores.total / scores.size
    by_group = [[column[units.group == g] for g in range(len(names))] for column in values.T]
    rank_p = [rank_test(groups) for groups in by_group]
    found["rank_test"] = "Wilcoxon-Mann-Whitney" if len(names) == 2 else "Kruskal-Wallis"
    for part, p, adjusted, groups in zip(scores.parts, rank_p, holm(rank_p), by_group, strict=True):
        told = found["parts"][part.name]
        told |= {"rank_p": p, "rank_holm_p": float(adjusted)}
        if len(names) > 2:
            told["dunn_holm_p"] = [
                {"groups": [names[i], names[j]], "p": pair_p} for (i, j), pair_p in dunn_test(groups).items()
            ]
