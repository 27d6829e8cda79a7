"""Plausible ranges of the columns of events.

All readers reject values outside of these ranges, because sums that include them would be meaningless.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

LARGEST_NS = 1 << 58
"""Largest plausible time, ns (nine years). Sums of a few of them fit into 64 bits."""

LARGEST_MOVED_BYTES = 1 << 50
"""Largest plausible number of bytes of a call. Linux moves less than 2**31 bytes in one call."""

LATEST_NS = 1 << 62
"""Latest plausible origin of a run, ns since 1970."""

LIMITS = {
    "moved": (-1, LARGEST_MOVED_BYTES),
    "start": (-LARGEST_NS, LATEST_NS + LARGEST_NS),
    "duration": (0, LARGEST_NS),
}
"""Smallest and largest value of each column."""


def unsound(columns: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Test which rows have a value outside of `LIMITS`.

    Parameters
    ----------
    columns : mapping of str to ndarray, shape (n,)

    Returns
    -------
    ndarray of bool, shape (n,), or None
        None: all values are in range.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.readers.common.value_ranges import unsound
    >>> unsound({"moved": np.array([4096, -7]), "duration": np.array([0, 10])})
    array([False,  True])
    """
    found = None
    for name, (least, most) in LIMITS.items():
        column = columns.get(name)
        if column is None or not len(column) or (column.min() >= least and column.max() <= most):
            continue
        beyond = (column < least) | (column > most)
        found = beyond if found is None else found | beyond
    return found
