"""Modes that have a common cause: harmonics, time slices and steps of turns; and the fair share of a limit.

Harmonics are modes at t/2, t/4 or t/8 of a fundamental t. They occur if one, two or four tasks share the rate
of a node. Calls that wait for a processor, or for a tick, have modes at whole multiples of a time slice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.fields import Fields
from ensembles.model.levels import A_TENTH, CERTAIN, DRAWS, MOST, SIGNIFICANT
from ensembles.model.units import bytes_text, count_text, number_text, seconds_text, share_text
from ensembles.statistics import special

ORDERS = (2, 4, 8)
"""Orders that are searched for, in addition to 1."""
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
    if chance > SIGNIFICANT:
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


TICKS_S = (0.001, 0.004, 0.010)
"""Ticks of Linux: 1 / CONFIG_HZ for 1,000, 250 and 100 Hz. Time slices are whole numbers of them."""


@dataclass(frozen=True)
class TimeSlices(Fields):
    """Modes at whole multiples of a time slice."""

    slice_s: float  # Time slice in seconds, one of `TICKS_S`
    multiples: tuple[int, ...]  # Multiples that were found, rising
    modes: tuple[int, ...]  # Index of the mode at each of them, from 0, the shortest
    deviation: float  # Largest distance of a mode from its multiple, as a part of the slice
    chance: float  # p-value: probability that as many modes at random positions are as close to multiples
    crowded: str = ""  # Which tasks share processors; ``""``: none, or not known

    def __str__(self) -> str:
        of = ", ".join(f"{count}" for count in self.multiples[:-1])
        why = (
            f"a time slice: {self.crowded}, and calls wait for a processor"
            if self.crowded
            else "a tick of the kernel: such calls wait for a timer or a processor, not for the file system"
        )
        return (
            f"modes at multiples of {slice_text(self.slice_s)} ({of} and {self.multiples[-1]} times, within "
            f"{share_text(self.deviation, 1)} of it, p-value {self.chance:.2g}), as of {why}"
        )


def slice_text(slice_s: float) -> str:
    """Return a time slice as text: a whole number of milliseconds."""
    whole = 1e3 * slice_s
    return f"{whole:.0f} ms" if math.isclose(whole, round(whole)) else seconds_text(slice_s)


def find_time_slices(
    low_s: Sequence[float], t_s: Sequence[float], high_s: Sequence[float], crowded: str = ""
) -> TimeSlices | None:
    """Find modes at equal distances that are a tick of the scheduler.

    docs/reference/methods/modes.md, Harmonics and fair share, has the p-value.
    """
    t, error = np.asarray(t_s, np.float64), (np.asarray(high_s) - np.asarray(low_s)) / 2
    found: list[TimeSlices] = []
    for slice_s in TICKS_S:
        count = np.rint(t / slice_s)
        within = np.flatnonzero((count >= 1) & (count <= ORDERS[-1]))  # later ones are closer than wide
        off = np.abs(t / slice_s - count)[within]
        seen = np.minimum(np.maximum(off, error[within] / slice_s), 0.5)
        near = off <= TOLERANCE
        multiples = count[within][near].astype(int).tolist()
        if len(set(multiples)) < 2:
            continue
        chance = min(len(TICKS_S) * float(special.chdtrc(2 * len(within), -2 * np.log(2 * seen).sum())), 1.0)
        if chance <= (SIGNIFICANT if crowded else CERTAIN):
            modes = tuple(within[near].tolist())
            found.append(
                TimeSlices(slice_s, tuple(multiples), modes, float(off[near].max()), chance, crowded)
            )
    return min(found, key=lambda one: one.chance, default=None)


@dataclass(frozen=True)
class StepsOfTurns(Fields):
    """Phases whose calls begin together and end one after the other, evenly spaced.

    Durations in such a phase are evenly spread from one step to all of them. Its first steps are apart on a
    logarithmic scale, where they look like modes; the others are not resolved.
    """

    unit: str  # What is served in turns: ``"node"`` or ``"task"``
    units: int  # Number of them, in the median phase
    step_s: float  # From one end to the next, in the median phase, in seconds
    longest_s: float  # From the first start to the last end, in the median phase, in seconds
    phases: int  # Phases with evenly spaced ends
    tested: int  # Phases that could show them
    share: float  # Share of the calls of these phases in all calls
    chance: float  # p-value: probability that independent ends are even in as many phases

    @property
    def explain_modes(self) -> bool:
        """Whether most calls are in such phases."""
        return self.share >= MOST

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and whether they explain the modes."""
        return super().to_json() | {"explain_modes": self.explain_modes}

    def __str__(self) -> str:
        where = f"in {self.phases:,} of {count_text(self.tested, 'phase')}"
        said = (
            f"steps {seconds_text(self.step_s)} apart: {self.units:,} {self.unit}s begin together and are "
            f"served one after the other (node-serialisation) {where}, with {share_text(self.share, None)} "
            f"of the calls (p-value {self.chance:.2g}); durations are evenly spread up to "
            f"{seconds_text(self.longest_s)} there"
        )
        return said + ": short modes are single steps, and the longest is the rest" * self.explain_modes
