"""Harmonics, and the fair share of a limit.

Harmonics are modes at t/2, t/4 or t/8 of a fundamental t. They occur if one, two or four tasks share the rate
of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.fields import Fields
from ensembles.model.levels import A_TENTH, DRAWS
from ensembles.model.units import bytes_text, number_text, seconds_text, share_text

ORDERS = (2, 4, 8)
"""Orders that are searched for, in addition to 1."""
LARGEST_CHANCE = 0.04
"""Largest p-value at which harmonics are reported. The null model is approximate; with 4 %, false
alarms are at most 5 %.
"""
APART = 2.5
"""Modes closer than this multiple of their mean width have no antimode between them, and would be one mode.
"""

TOLERANCE = A_TENTH
"""Part of a multiple by which a mode may be off."""
_LEAST_DEVIATION = 0.002


@dataclass(frozen=True)
class Harmonics(Fields):
    """Modes at whole fractions of the duration of a slower mode.

    Attributes
    ----------
    fundamental_s : float
        Duration of order 1 that fits all of them best, in seconds.
    orders : tuple of int
        Orders that were found, increasing from 1: a mode of order k lies at ``fundamental_s / k``.
    modes : tuple of int
        Index of the mode of each order, from 0, the shortest.
    deviation : float
        Largest relative distance of a mode from its expected duration.
    chance : float
        p-value: probability that as many modes at random positions fit as well.
    """

    fundamental_s: float
    orders: tuple[int, ...]
    modes: tuple[int, ...]
    deviation: float
    chance: float

    def __str__(self) -> str:
        places = ", ".join("R" if order == 1 else f"R/{order}" for order in self.orders)
        return (
            f"harmonics: modes at {places} with R = {seconds_text(self.fundamental_s)}, "
            f"within {share_text(self.deviation, 1)} (p-value {self.chance:.2g})"
        )


@dataclass(frozen=True)
class FairShare(Fields):
    """An even division of a limit among tasks, compared with modes.

    Attributes
    ----------
    limit_bytes_per_s : float
        Rate that all tasks share.
    tasks : int
        Number of tasks.
    rate_bytes_per_s : float
        Fair share of a task.
    bytes_per_call : float
        Bytes that each call moved.
    duration_s : float
        Duration of a call at the fair share, in seconds.
    speed : tuple of float
        Rate of the calls of each mode, as a multiple of the fair share.
    """

    limit_bytes_per_s: float
    tasks: int
    rate_bytes_per_s: float
    bytes_per_call: float
    duration_s: float
    speed: tuple[float, ...]

    def __str__(self) -> str:
        speeds = ", ".join(map(number_text, self.speed))
        return (
            f"fair share: {bytes_text(self.rate_bytes_per_s)}/s per task, {seconds_text(self.duration_s)} "
            f"for a call of {bytes_text(self.bytes_per_call)}"
            + f"; the modes had {speeds} times that rate"
            * bool(speeds)
        )


def find_harmonics(
    low_s: Sequence[float],
    t_s: Sequence[float],
    high_s: Sequence[float],
    range_log: float,
    seed: int = 0,
    width: Sequence[float] | None = None,
) -> Harmonics | None:
    """Find harmonics among modes.

    The p-value is the share of 1,999 random placements of as many modes, as far apart as such modes are,
    whose score is at least as high (docs/reference/methods/modes.md, Harmonics and fair share).
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
    free = np.sort(rng.uniform(0, reach - apart[-1], (DRAWS, len(place))), axis=1)
    random = _counted(free + apart, error)[0].max(axis=1)
    chance = (1 + np.sum(random >= found[0, first])) / (DRAWS + 1)
    if chance > LARGEST_CHANCE:
        return None
    orders, modes = [1], [first]
    for order, mode, off in zip(ORDERS, matches[0, first], distance[0, first], strict=True):
        if off <= TOLERANCE:
            orders.append(order)
            modes.append(int(mode))
    ends = place[modes] + np.log(orders)
    weight = 1 / (error[modes] ** 2 + _LEAST_DEVIATION**2)
    middle = float(ends @ weight / weight.sum())
    off = float(np.expm1(np.abs(ends - middle)).max())
    return Harmonics(float(np.exp(middle)), tuple(orders), tuple(modes), off, float(chance))


def _counted(place: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score each mode as a fundamental."""
    wanted = place[:, :, None] - np.log(ORDERS)
    apart = np.abs(wanted[..., None] - place[:, None, None, :])
    nearest = apart.argmin(axis=-1)
    distance = np.take_along_axis(apart, nearest[..., None], axis=-1)[..., 0]
    told = np.maximum(distance, np.hypot(error[nearest], error[None, :, None]))
    told = np.clip(told, _LEAST_DEVIATION, TOLERANCE)
    count = np.where(distance <= TOLERANCE, 1 + np.log(TOLERANCE / told), 0.0).sum(axis=-1)
    return count, nearest, distance


def find_fair_share(
    t_s: Sequence[float], limit_bytes_per_s: float, tasks: int, bytes_per_call: float
) -> FairShare:
    """Compare modes with the fair share of a limit."""
    if not (limit_bytes_per_s > 0 and tasks > 0 and bytes_per_call > 0):
        raise EnsioError("a fair share needs a limit, a number of tasks and a size of calls above zero")
    rate = limit_bytes_per_s / tasks
    duration_s = bytes_per_call / rate
    speed = tuple(float(duration_s / t) for t in t_s)
    return FairShare(float(limit_bytes_per_s), int(tasks), rate, float(bytes_per_call), duration_s, speed)
