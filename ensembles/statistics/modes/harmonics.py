"""Harmonics: modes at t, t/2, t/4 of a fundamental, as where one, two or four tasks share what a node can
move.

And the fair share: how long a call takes if a known limit is shared out evenly among all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import bytes_text, seconds_text

ORDERS = (2, 4, 8)
"""Orders that are looked for beside 1."""
LARGEST_CHANCE = 0.04
"""Harmonics that are likelier than this to be a coincidence are not told: modes are placed at random only
nearly as the chance assumes, and 5 % is what it may cost."""
APART = 2.5
"""Modes nearer than so many of their widths have no valley between them, and would be one."""

_TOLERANCE = 0.10
_LEAST_DEVIATION = 0.002
_DRAWS = 1999


@dataclass(frozen=True)
class Harmonics:
    """Modes at whole fractions of the duration of a slower one.

    Attributes
    ----------
    fundamental_s : float
        Duration of order 1 that fits all of them best.
    orders : tuple of int
        Orders that are there, rising, 1 first: a mode of order k lies at ``fundamental_s / k``.
    modes : tuple of int
        Which mode each order is, counted from 0, the shortest.
    deviation : float
        Largest relative distance of a mode from its place.
    chance : float
        Chance that as many modes, placed at random where the calls are, line up as well.
    """

    fundamental_s: float
    orders: tuple[int, ...]
    modes: tuple[int, ...]
    deviation: float
    chance: float

    def to_json(self) -> dict[str, Any]:
        """Attributes by name."""
        return {**vars(self), "orders": list(self.orders), "modes": list(self.modes)}

    def __str__(self) -> str:
        places = ", ".join("R" if order == 1 else f"R/{order}" for order in self.orders)
        return (
            f"harmonics: modes at {places} with R = {seconds_text(self.fundamental_s)}, "
            f"to {self.deviation:.1%} (chance of a coincidence {self.chance:.2g})"
        )


@dataclass(frozen=True)
class FairShare:
    """What each task gets of a limit that is shared out evenly.

    Attributes
    ----------
    limit_bytes_per_s : float
        What all tasks can move together.
    tasks : int
    rate_bytes_per_s : float
        The fair share of a task.
    bytes_per_call : float
    duration_s : float
        Of a call at the fair share.
    speed : tuple of float
        Of each mode, how many times the fair share its calls had.
    """

    limit_bytes_per_s: float
    tasks: int
    rate_bytes_per_s: float
    bytes_per_call: float
    duration_s: float
    speed: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Attributes by name."""
        return {**vars(self), "speed": list(self.speed)}

    def __str__(self) -> str:
        modes = ", ".join(f"{speed:.3g}" for speed in self.speed)
        return (
            f"fair share: {bytes_text(self.rate_bytes_per_s)}/s a task, {seconds_text(self.duration_s)} "
            f"a call of {bytes_text(self.bytes_per_call)}; the calls of the modes had {modes} times that rate"
        )


def find_harmonics(
    low_s: Sequence[float],
    t_s: Sequence[float],
    high_s: Sequence[float],
    range_log: float,
    seed: int = 0,
    width: Sequence[float] | None = None,
) -> Harmonics | None:
    """Harmonics among modes.

    Parameters
    ----------
    low_s, t_s, high_s : sequence of float, shape (m,)
        Places of the modes and their intervals.
    range_log : float
        Span of log duration (natural logarithm) in which the modes might lie.
    seed : int
        Of the random draws.
    width : sequence of float, shape (m,), optional
        Of the modes, in log duration.

    Returns
    -------
    Harmonics or None
        None: there are none, or it might be a coincidence.

    Notes
    -----
    A mode of order k lies within 10 % of 1/k of the fundamental, itself a mode. The closer, the more it
    counts (the logarithm of tolerance over distance, and 1 for being there), but no closer than the intervals
    tell. The chance is the share of 1,999 random placements of as many modes that count at least as much:
    uniform in log time over the range of the calls, but neighbours as far apart as modes of these widths
    must be to be told apart. (Without that a coincidence seems rarer than it is.)
    """
    place = np.log(np.asarray(t_s, dtype=np.float64))
    if len(place) < 2:
        return None
    error = 0.5 * np.log(np.asarray(high_s) / np.maximum(low_s, 1e-12))
    found, matches, distance = _counted(place[None, :], error)
    first = int(found[0].argmax())
    if found[0, first] <= 0:
        return None
    rng = np.random.default_rng(seed)
    reach = max(range_log, np.ptp(place))
    apart = np.zeros(len(place))
    if width is not None:
        middle = APART * (np.asarray(width)[1:] + np.asarray(width)[:-1]) / 2
        apart[1:] = np.cumsum(np.minimum(middle, np.abs(np.diff(place))))
    free = np.sort(rng.uniform(0, reach - apart[-1], (_DRAWS, len(place))), axis=1)
    random = _counted(free + apart, error)[0].max(axis=1)
    chance = (1 + np.sum(random >= found[0, first])) / (_DRAWS + 1)
    if chance > LARGEST_CHANCE:
        return None
    orders, modes = [1], [first]
    for order, mode, off in zip(ORDERS, matches[0, first], distance[0, first], strict=True):
        if off <= _TOLERANCE:
            orders.append(order)
            modes.append(int(mode))
    ends = place[modes] + np.log(orders)
    weight = 1 / (error[modes] ** 2 + _LEAST_DEVIATION**2)
    middle = float(ends @ weight / weight.sum())
    off = float(np.expm1(np.abs(ends - middle)).max())
    return Harmonics(float(np.exp(middle)), tuple(orders), tuple(modes), off, float(chance))


def _counted(place: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How much lines up with each mode as fundamental: shape (r, m); for each order the nearest mode and its
    distance: shape (r, m, orders)."""
    wanted = place[:, :, None] - np.log(ORDERS)
    apart = np.abs(wanted[..., None] - place[:, None, None, :])
    nearest = apart.argmin(axis=-1)
    distance = np.take_along_axis(apart, nearest[..., None], axis=-1)[..., 0]
    told = np.maximum(distance, np.hypot(error[nearest], error[None, :, None]))
    told = np.clip(told, _LEAST_DEVIATION, _TOLERANCE)
    count = np.where(distance <= _TOLERANCE, 1 + np.log(_TOLERANCE / told), 0.0).sum(axis=-1)
    return count, nearest, distance


def find_fair_share(
    t_s: Sequence[float], limit_bytes_per_s: float, tasks: int, bytes_per_call: float
) -> FairShare:
    """Compare modes to the fair share of a limit.

    Parameters
    ----------
    t_s : sequence of float, shape (m,)
        Places of the modes.
    limit_bytes_per_s : float
        What all tasks can move together.
    tasks : int
    bytes_per_call : float

    Raises
    ------
    EnsioError
        One of them is not positive.
    """
    if not (limit_bytes_per_s > 0 and tasks > 0 and bytes_per_call > 0):
        raise EnsioError("the fair share is told of a limit, a number of tasks and calls that are above zero")
    rate = limit_bytes_per_s / tasks
    duration_s = bytes_per_call / rate
    speed = tuple(float(duration_s / t) for t in t_s)
    return FairShare(float(limit_bytes_per_s), int(tasks), rate, float(bytes_per_call), duration_s, speed)
