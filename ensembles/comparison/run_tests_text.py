"""The tests on times of runs as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.comparison.difference import RUN_LABELS
from ensembles.comparison.hypothesis_tests import LEVEL, smallest_rank_p
from ensembles.comparison.run_tests import FIRST_TESTED
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.table import folded_table_text
from ensembles.model.units import ratio_text, seconds_text
from ensembles.model.wrapped import wrapped

if TYPE_CHECKING:
    from ensembles.comparison.report import Comparison
    from ensembles.comparison.run_tests import RunTest

_MOST_ROWS = 20


def without_common_folder(names: Sequence[str]) -> list[str]:
    """Return the names of groups, without the folder that all of them are in."""
    first, *others = (name.split("/")[:-1] for name in names)
    common = 0
    while common < len(first) and all(folders[common : common + 1] == [first[common]] for folders in others):
        common += 1
    return [sanitize_text("/".join(name.split("/")[common:])) for name in names]


def two_lines(name: str) -> str:
    """Break the name of a group, for the head of a column: ``run-1`` above ``and 4 more``."""
    return re.sub(r" (?=and [\d,]+ more$)", "\n", name)


def run_tests_text(found: Comparison) -> str:
    """Return the tests on the times of runs as tables; "" if there are none."""
    tests = found.run_tests
    if not tests:
        return ""
    names = without_common_folder([group.name for group in tests[0].groups])
    shown = [test for test in tests if test.scope == "run"]
    others = [
        test for test in tests if test.scope == "calls" or (test.scope == "step" and test.holm_p <= LEVEL)
    ]
    shown += sorted(others, key=lambda test: test.holm_p)[: _MOST_ROWS - len(shown)]
    rows = [
        (
            _label(test),
            *(seconds_text(group.median_s) for group in test.groups),
            _normality(test),
            f"{test.p:.2g}",
            f"{test.holm_p:.2g}",
            _effect(test),
        )
        for test in shown
    ]
    headers = ("medians of runs", *map(two_lines, names), "Shapiro p", "p", "Holm p", "effect")
    table = folded_table_text(headers, rows, range(len(headers)), (len(names), 4))
    of_runs = sum(test.scope == "run" for test in tests)
    first = next((test for test in tests if test.what in FIRST_TESTED), tests[0])
    sizes = " + ".join(str(group.runs) for group in tests[0].groups)
    effect = "Cliff's delta" if tests[0].epsilon_squared is None else "epsilon squared"
    about = (
        f"{tests[0].method} test, the run as unit ({sizes}); Holm p: for all kinds of calls, or phases, and "
        f"of whole runs for those after {_label(first)}, which is tested first; Shapiro p: the least of the "
        f"groups, small if not normal; effect: {effect}"
    )
    smallest = smallest_rank_p([group.runs for group in tests[0].groups])
    if smallest > LEVEL and len(names) == 2:
        about += (
            f". With {sizes} runs no p is below {smallest:.2g}, however far apart they are: verdicts are by "
            "the t tests below"
        )
    elif of_runs > 2 and smallest * (of_runs - 1) > LEVEL and len(names) == 2:
        about += (
            f". With {sizes} runs no p is below {smallest:.2g}, so only the time that is tested first can "
            f"have a Holm p of {LEVEL:g} or less: verdicts are by t tests"
        )
    lines = [wrapped(about + _means_and_medians(found, first), "  ", "  ")]
    if tests[0].epsilon_squared is not None:
        lines += _pair_lines(shown, names)
    more = len(tests) - len(shown)
    if more:
        lines.append(f"  {more:,} more tests: see run_tests of --json")
    return table + "\n\n" + "\n".join(lines)


def _means_and_medians(found: Comparison, first: RunTest) -> str:
    """Say why the ratio of medians of this table is another one than that of the means above, if it is."""
    limit = -math.log2(1 - found.margin)
    for group in first.groups[1:]:
        mean = next((c for c in found.run_times if (c.what, c.group) == (first.what, group.name)), None)
        if mean is None or not mean.ratio or not first.groups[0].median_s or not group.median_s:
            continue
        ratio = group.median_s / first.groups[0].median_s
        if abs(math.log2(ratio / mean.ratio)) > limit:
            return (
                f". {_label(first)}: {ratio_text(ratio)} in the median and {ratio_text(mean.ratio)} in the "
                "mean, as single runs are far from the others"
            )
    return ""


def _label(test: RunTest) -> str:
    """Name a time: phases have wall time in other commands, and here the time in I/O."""
    if test.scope == "step":
        return f"I/O of {test.what}, all tasks"
    return RUN_LABELS.get(test.what, test.what)


def _normality(test: RunTest) -> str:
    known = [group.shapiro_p for group in test.groups if group.shapiro_p is not None]
    return f"{min(known):.2g}" if known else ""


def _effect(test: RunTest) -> str:
    if test.epsilon_squared is None:
        return f"{test.pairs[0].cliffs_delta:+.2f}"
    return f"{test.epsilon_squared:.2f}"


def _pair_lines(shown: Sequence[RunTest], names: Sequence[str]) -> list[str]:
    """Return Dunn's pairs of the time in I/O."""
    of_io = [test for test in shown if test.what == "io_time_s"]
    lines = []
    short = dict(zip((group.name for group in shown[0].groups), names, strict=True))
    for test in of_io:
        lines.append(f"  Dunn's test of {RUN_LABELS[test.what]}, with Holm's correction:")
        lines += [
            wrapped(
                f"{short[pair.groups[0]]} and {short[pair.groups[1]]}: p {pair.holm_p:.2g}, median "
                f"difference {'-' if pair.difference_s < 0 else '+'}{seconds_text(abs(pair.difference_s))}, "
                f"Cliff's delta {pair.cliffs_delta:+.2f}",
                "    ",
                "      ",
            )
            for pair in test.pairs
        ]
    return lines
