"""How many clusters there are: antimodes of kernel estimates of the density of log duration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ensembles.statistics.modes.density import (
    DEPTH_RATIO,
    LEAST_CALLS,
    LEAST_SHARE,
    LogCells,
    shortest_span,
)

LEVEL = 0.02
"""Largest p-value of an antimode: the false second modes that the calibration allows."""

_MOST_CELLS = 256
_OCTAVES = range(-5, 8)
_DRAWS = 200
_DEEP = 0.25
"""Part of the depth of an antimode up to which the density is low."""
_FLAT = 2.0
"""Standard errors within which the density of the null hypothesis is flat around an antimode."""

Span = tuple[float, float]


class Scales:
    """Kernel estimates of counts in cells, with bandwidths an octave apart.

    The evidence of an antimode is the difference of the density to the lower one of the highest densities on
    both sides, in standard errors, less a penalty for the number of places at its bandwidth. Two high and a
    low place of a flat density differ by z standard errors with a probability of about ``exp(-2 z**2 / 3)``,
    for each of ``places**3`` triples. Bandwidths other than Silverman's and its double need one more.
    """

    def __init__(self, edges: np.ndarray, counts: np.ndarray, least: float) -> None:
        from ensembles.statistics.special import ndtr

        self.widths, self._least = np.diff(edges), least
        self.middles, total = 0.5 * (edges[1:] + edges[:-1]), counts.sum()
        quarters = np.interp(total * np.array([0.25, 0.75]), np.append(0, np.cumsum(counts)), edges)
        spread = float(counts @ (self.middles - counts @ self.middles / total) ** 2 / total)
        finest, whole = 0.5 * float(np.median(self.widths)), float(edges[-1] - edges[0])
        silverman = 0.9 * min(float(np.ptp(quarters)) / 1.349, np.sqrt(spread)) * total**-0.2
        silverman = min(max(silverman, finest), whole / 4)
        self.kernels = []
        for octave in _OCTAVES:
            bandwidth = silverman * 2.0**octave
            if octave and not finest <= bandwidth <= whole / 4:
                continue
            kernel = np.diff(ndtr((edges[:, None] - self.middles) / bandwidth), axis=0) / self.widths[:, None]
            penalty = np.sqrt(4.5 * np.log1p(whole / (4 * bandwidth))) + (octave not in (0, 1))
            self.kernels.append((bandwidth, kernel, self.widths @ kernel**2, penalty))

    def evidence(self, counts: np.ndarray, of_hills: bool = False) -> np.ndarray:
        """Return the evidence of antimodes, or of hills: rows of counts to shape (scales, rows, cells)."""
        found = []
        for _, kernel, squares, penalty in self.kernels:
            density = counts @ kernel
            if of_hills:  # a density that is cut off at its ends has no hill there
                inside = self.widths @ kernel
                high, squares = density / inside, squares / inside**2
                low = -np.minimum(*_highest(-high))
            else:
                high, low = np.minimum(*_highest(density)), density
            deep = (high - low >= self._least * squares) & (high > DEPTH_RATIO * low)
            error = np.sqrt(np.maximum((high + low) * squares, 1e-300))
            found.append(np.where(deep, (high - low) / error, -np.inf) - penalty)
        return np.stack(found)

    def without(self, counts: np.ndarray, scale: int, place: int) -> np.ndarray:
        """Return probabilities of cells as flat as the counts allow, without an antimode there."""
        _, kernel, squares, _ = self.kernels[scale]
        density = counts @ kernel
        peak = min(density[:place].max(), density[place:].max())
        level = 0.5 * (peak + density[place])
        flat = np.where(np.abs(density - level) < _FLAT * np.sqrt(level * squares), level, density)
        side = slice(0, place + 1) if density[:place].max() < density[place:].max() else slice(place, None)
        flat[side] = np.minimum(flat[side], level)
        chance = np.minimum(*_highest(flat)) * self.widths
        unimodal: np.ndarray = chance / chance.sum()
        return unimodal


def _highest(density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the highest densities up to, and from, each place on."""
    from_here = np.maximum.accumulate(density[..., ::-1], axis=-1)[..., ::-1]
    return np.maximum.accumulate(density, axis=-1), from_here


def find_antimodes(cells: LogCells) -> tuple[list[Span], float]:
    """Find intervals of log time in which the density is significantly high and low.

    The p-value is that of as much evidence in 200 samples of a density without this antimode, which is
    otherwise that of the calls: a smoothed bootstrap of the multiscale statistic. The parts on both sides of
    a significant antimode are searched in turn.
    """
    edges, counts = cells.joined(_MOST_CELLS)
    valleys, chance = _valleys(edges, counts, max(LEAST_CALLS, LEAST_SHARE * counts.sum()))
    first = float(cells.edges[0]), float(cells.edges[0])
    last = float(cells.edges[-1]), float(cells.edges[-1])
    highs = [_densest(cells, low, high) for (_, low), (high, _) in pairwise([first, *valleys, last])]
    return [span for pair in zip(highs, [*valleys, last], strict=True) for span in pair][:-1], chance


def _densest(cells: LogCells, low: float, high: float) -> Span:
    """Return the shortest interval of whole cells that holds half of the calls between two places."""
    first, last = np.searchsorted(cells.edges, [low, high])
    if not cells.counts[first : max(last, first + 1)].sum():
        return low, high
    begin, end = shortest_span(cells, low, high, 0.5)
    first = int(np.searchsorted(cells.edges[:-1], begin, "right")) - 1
    last = int(np.searchsorted(cells.edges[1:-1], end, "left")) + 1  # rounding may pass the last edge
    return max(low, float(cells.edges[max(first, 0)])), min(high, float(cells.edges[last]))


def _valleys(edges: np.ndarray, counts: np.ndarray, least: float) -> tuple[list[Span], float]:
    """Return intervals around significant antimodes, and the p-value of the deepest one."""
    if len(counts) < 3 or counts.sum() < 2 * least:
        return [], 1.0
    scales = Scales(edges, counts, least)
    evidence = scales.evidence(counts[None].astype(np.float64))[:, 0]
    scale, place = (int(at) for at in np.unravel_index(int(evidence.argmax()), evidence.shape))
    if not np.isfinite(deepest := float(evidence[scale, place])):
        return [], 1.0
    without = scales.without(counts.astype(np.float64), scale, place)
    chance = _chance(scales, int(counts.sum()), without, deepest)
    if chance > LEVEL:
        return [], chance
    density = counts @ scales.kernels[scale][1]
    floor, peak = density[place], min(density[:place].max(), density[place:].max())
    valley = _around(edges, density < floor + _DEEP * (peak - floor), place)
    left = _valleys(edges[: place + 1], counts[:place], least)[0]
    right = _valleys(edges[place:], counts[place:], least)[0]
    low, high = valley
    if left:  # a mode lies between two antimodes
        low = max(low, 0.5 * (left[-1][1] + float(edges[place])))
    if right:
        high = min(high, 0.5 * (right[0][0] + float(edges[place + 1])))
    return [*left, (low, high), *right], chance


def _around(edges: np.ndarray, inside: np.ndarray, place: int) -> Span:
    """Return the ends of the interval of cells around a place."""
    outside = np.flatnonzero(~inside)
    after = int(np.searchsorted(outside, place))
    first = int(outside[after - 1]) + 1 if after else 0
    last = int(outside[after]) if after < len(outside) else len(inside)
    return float(edges[first]), float(edges[last])


def has_hill(edges: np.ndarray, counts: np.ndarray, without: np.ndarray) -> bool:
    """Return whether the density is significantly higher than on both sides; `without`: one that is not."""
    scales = Scales(edges, counts, max(LEAST_CALLS, LEAST_SHARE * counts.sum()))
    highest = float(scales.evidence(counts[None].astype(np.float64), True).max())
    return np.isfinite(highest) and _chance(scales, int(counts.sum()), without, highest, True) <= LEVEL


def _chance(scales: Scales, n: int, without: np.ndarray, most: float, of_hills: bool = False) -> float:
    """Return the p-value of evidence: from draws without it, beyond the highest one as of three places."""
    rng, drawn = np.random.default_rng(0), np.zeros(0)
    while len(drawn) < _DRAWS and np.count_nonzero(drawn >= most) <= LEVEL * _DRAWS:
        counts = rng.multinomial(n, without, _DRAWS // 4).astype(np.float64)
        drawn = np.append(drawn, scales.evidence(counts, of_hills).max(axis=(0, 2)))
    share = (1 + np.count_nonzero(drawn >= most)) / (1 + len(drawn))
    beyond = max(most - max(float(drawn.max()), 0.0), 0.0)
    return float(share * np.exp(-2 / 3 * beyond**2))
