"""Levels, shares and least numbers that all answers share, and the one check of the level of an interval."""

from __future__ import annotations

import numbers

from ensembles.model.errors import EnsioError

SIGNIFICANT = 0.05
"""Level at which a sentence is said, as of a run that drifts: a false one costs a sentence."""

CERTAIN = 0.01
"""Level at which an answer changes its kind, as of calls that depend on each other."""

SURE = 0.001
"""Level at which the structure of a run is stated, as its phases: all other answers follow from it."""

WORTH_A_LINE = 1e-3
"""Share of a run, or of a rate, below which there is nothing to say."""

RARE = 0.01
"""Share of calls, bytes or time that decides nothing, and that no sentence is about."""

WORTH_NAMING = 0.02
"""Part of the time, the bytes or the calls from which a cause, a loop or a mode is named."""

LITTLE = 0.05
"""Part of a whole up to which it is little, and not worth a name, nor a failed check."""

A_TENTH = 0.1
"""Part below which a difference is irrelevant, and which is little of a whole."""

MOST = 0.5
"""Part of a whole from which on something is most of it, and explains it."""

NEARLY_ALL = 0.9
"""Part that counts as the whole: some ranks may have been killed, some calls not recorded."""

ALIKE = 1.25
"""Ratio of two bytes, times or rates up to which they are the same."""

LONGER = 1.5
"""Ratio from which calls certainly take longer, or anything is certainly more, than others."""

FEW = 2
"""Number up to which things are few, and from which on there is more than one."""

SEVERAL = 3
"""Times from which on something is seen again and again, and is a habit: phases, steps, runs, calls."""

AGAIN = 4
"""Times that something is asked, made, read or repeated, from which on that is a rule of its loop."""

FEWEST = 5
"""Fewest values, calls, phases or cells from which anything is estimated."""

FEWEST_ALONE = 8
"""Fewest values whose distribution is used; of fewer, Student's t is, and their order may be accidental."""

FEWEST_IN_TIME = 2 * FEWEST_ALONE
"""Fewest phases, or stretches of time, in whose order anything is seen."""

FEWEST_SLOW = 20
"""Fewest calls of a kind from which its share (to a quarter) and its tail are estimated."""

DRAWS = 1999
"""Random draws of a test, which give a p-value in steps of 0.0005."""

MORE_DRAWS = 9999
"""The same of few values, which take little time."""

RESAMPLES = 400
"""Resamples of the calls of a run, each of which takes long."""

MOST_KINDS = 64
"""Patterns, positions, points or threads of a run that are looked at one by one."""

MOST_PIECES = 1 << 12
"""Segments, cells or texts into which anything is divided."""

MOST_RANGES = 1 << 18
"""Ranges of bytes, or strided runs, that a step holds at the same time."""

MOST_DENSE = 1024
"""Groups, phases or values that tables of all bins, and exact computations, are made for."""

MOST_SEEN = 50_000
"""Calls that a step looks at which need not see all."""

SMALL_BYTES = 64 << 10
"""Bytes up to which moving them takes as long as moving none: of a close, of a buffer, of metadata."""

LEAST_LOG_S = 0.5e-9
"""Value of durations of zero where logarithms are taken, in seconds."""

ENOUGH = round(1 / SIGNIFICANT) - 1
"""Number of values from which on a central 90 % interval lies within their range."""


def check_level(level: float) -> float:
    """Return a level between 0 and 1, or raise an `EnsioError`."""
    if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0 < level < 1:
        raise EnsioError(f"the level {level!r} is not between 0 and 1: give for example 0.9")
    return float(level)
