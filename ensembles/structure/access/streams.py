"""The order of transfers, and unions of byte ranges: functions of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.model.levels import FEWEST_ALONE, NEARLY_ALL

ORDERS = ("sequential", "strided", "repeated", "random", "first", "unknown")
"""How a transfer follows the one before it. Sequential: it begins where that ended. Strided: offsets grow or
fall by the same amount as before, or as next. Repeated: the same offset again. First: there is none before,
or it goes back to where the first one began, as a loop that is run again. Unknown: its offset, or that of the
one before, is not known."""

SEQUENTIAL, STRIDED, REPEATED, RANDOM, FIRST, UNKNOWN = range(len(ORDERS))


_LEAST_RANDOM = FEWEST_ALONE
"""Transfers of a step from which its order may be random."""


class Steps(NamedTuple):
    """How each transfer of some streams follows the one before it."""

    order: np.ndarray  # Index into `ORDERS`; shape (n,)
    # Of the first transfer of a piece: from the start of the piece before, bytes. Else 0. Shape (n,).
    delta: np.ndarray


def follow(stream: np.ndarray, offset: np.ndarray, size: np.ndarray) -> Steps:
    """Find how transfers follow each other.

    Transfers that continue each other are a *piece*. The first one of a piece is compared with the first one
    of the piece before.

    `offset`, `size`: bytes; an offset of -1 is unknown.
    """
    n = len(stream)
    at = np.argsort(stream, kind="stable")
    place, number = offset[at], stream[at]
    new = np.ones(n, bool)
    new[1:] = number[1:] != number[:-1]
    unknown = place < 0
    unknown[1:] |= ~new[1:] & (place[:-1] < 0)
    goes_on = np.zeros(n, bool)
    goes_on[1:] = ~new[1:] & ~unknown[1:] & (place[1:] == place[:-1] + size[at][:-1])
    heads = np.flatnonzero(~goes_on)
    first, start = new[heads], place[heads]
    delta = np.diff(start, prepend=0) * ~first
    alike = np.zeros(len(heads), bool)
    alike[1:] = ~first[1:] & ~first[:-1] & (delta[1:] == delta[:-1])
    alike[:-1] |= alike[1:]
    begins = start[np.maximum.accumulate(np.where(first, np.arange(len(heads)), 0))]
    again = ~alike & (start == begins) & (delta != 0)
    delta[again] = 0
    order = np.where(alike, STRIDED, RANDOM)
    order[delta == 0] = REPEATED
    order[first | again] = FIRST
    found = Steps(np.full(n, SEQUENTIAL), np.zeros(n, np.int64))
    found.order[at[heads]], found.delta[at[heads]] = order, delta
    found.order[at[unknown]] = UNKNOWN
    return found


def join_ranges(
    key: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join overlapping and adjacent ranges of the same key.

    `key`, `low`, `high`: ranges from `low` to `high`, the end excluded; not empty.
    """
    keys, place = np.concatenate([key, key]), np.concatenate([low, high])
    change = np.repeat([1, -1], len(key))
    # At one place, ranges begin before others end: adjacent ones are joined.
    order = np.lexsort((-change, place, keys))
    depth = np.cumsum(change[order])
    opens = np.flatnonzero((depth == 1) & (change[order] == 1))
    closes = np.flatnonzero(depth == 0)
    return keys[order][opens], place[order][opens], place[order][closes]


def main_order(orders: np.ndarray) -> str:
    """Name the order of most transfers.

    One of `ORDERS`, ``single`` (only first transfers), ``mixed``, or ``""`` (no transfers).

    Examples
    --------
    Pieces of ten calls at a constant distance are strided:

    >>> from ensembles.structure.access.streams import main_order
    >>> main_order(np.array([90, 9, 0, 0, 1, 0])), main_order(np.array([99, 0, 0, 0, 1, 0]))
    ('strided', 'sequential')

    A header that each of four tasks writes last is one jump back:

    >>> main_order(np.array([32, 0, 0, 4, 4, 0]))
    'sequential'
    """
    sequential, strided, repeated, random, first, unknown = orders.tolist()
    whole = sum(orders.tolist())
    if not whole:
        return ""
    if unknown > (1 - NEARLY_ALL) * whole:
        return "unknown"
    # What is not sequential begins a piece; of these, the kind is asked.
    heads = {"strided": strided, "repeated": repeated, "random": random}
    count = sum(heads.values())
    if not count:
        return "sequential" if sequential else "single"
    name = max(heads, key=lambda each: heads[each])
    if name == "random" and sequential >= NEARLY_ALL * (whole - first):
        return "sequential"
    # One jump a stream, such as back to a header, is not another distance each time.
    if name == "random" and count <= first and sequential > count:
        return "sequential"
    return name if heads[name] >= NEARLY_ALL * count else "mixed"


def orders_of_steps(step_orders: np.ndarray, order: str) -> tuple[str, ...]:
    """Return the orders of the steps of a loop where they are clear, and not `order`, that of the whole.

    As of `main_order`; empty: `order` says it.

    Examples
    --------
    >>> from ensembles.structure.access.streams import orders_of_steps
    >>> orders_of_steps(np.array([[59, 0, 0, 0, 1, 0], [0, 0, 59, 0, 1, 0]]), "random")
    ('sequential', 'repeated')
    """
    found = tuple(main_order(orders) for orders in step_orders)
    if not found:
        return ()
    clear = {"sequential", "strided", "repeated", "single", ""}
    if step_orders[:, RANDOM].any() and min(o.sum() for o in step_orders if o.any()) >= _LEAST_RANDOM:
        clear.add("random")
    different = set(found) - {""}
    return found if set(found) <= clear and len(different) > 1 and different - {order} else ()
