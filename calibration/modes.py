"""Error rates of `modes` on ensembles with a known truth.

Counts are drawn from the exact probabilities of the bins, so that ten million calls cost as much as a
thousand. Run: python -m calibration.modes [PART ...] [--quick]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from calibration.page import show
from ensembles.statistics.modes.density import DEPTH_RATIO, LogCells
from ensembles.statistics.modes.harmonics import find_harmonics
from ensembles.statistics.modes.modes import fit_modes, highs_and_lows
from ensembles.statistics.samples.clock_step import clock_step_of_counts_s, clock_step_s
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_low_ns

Row = tuple[str, str, str]
Cdf = Callable[[np.ndarray], np.ndarray]

SCALE_S = 1e-3
UNIMODAL: dict[str, Cdf] = {
    "log-normal 0.3": stats.lognorm(0.3, scale=SCALE_S).cdf,
    "log-normal 1.5": stats.lognorm(1.5, scale=SCALE_S).cdf,
    "gamma 2": stats.gamma(2, scale=SCALE_S).cdf,
    "gamma 0.5": stats.gamma(0.5, scale=SCALE_S).cdf,
    "Weibull 0.7": stats.weibull_min(0.7, scale=SCALE_S).cdf,
    "Weibull 3": stats.weibull_min(3, scale=SCALE_S).cdf,
    "Pareto 1.5": stats.pareto(1.5, scale=SCALE_S).cdf,
    "shifted exponential": stats.expon(SCALE_S, SCALE_S).cdf,
    "log-normal 100 ns": stats.lognorm(0.5, scale=1e-7).cdf,
}


def chances(cdf: Cdf, step_s: float = 1e-9) -> np.ndarray:
    """Return the probability of each bin: shape (BIN_COUNT,).

    Durations are rounded to the step of the clock.
    """
    edges = np.append(bin_low_ns().astype(np.float64), 2.0**63) - 0.5
    multiple = np.ceil(edges * 1e-9 / step_s - 1e-6)
    return np.diff(np.append(0.0, cdf((multiple[1:] - 0.5) * step_s)))


def drawn(chance: np.ndarray, n: int, rng: np.random.Generator) -> CountedDurations:
    """Draw a sample of n independent calls."""
    counts = rng.multinomial(n, chance / chance.sum())
    used = np.flatnonzero(counts)
    edges_s = np.append(bin_low_ns().astype(np.float64), 2.0**64) * 1e-9
    return CountedDurations(
        phase=np.zeros(1, np.int64),
        n=np.array([n]),
        min_s=edges_s[used[:1]],
        max_s=edges_s[used[-1:] + 1] - 1e-9,
        begin=np.array([0, len(used)]),
        bin=used,
        count=counts[used],
        phases_known=False,
    )


def mixture(place_log: np.ndarray, sigma: np.ndarray, weight: np.ndarray, background: float = 0.0) -> Cdf:
    """Make a mixture of log-normal modes and a background that is uniform in log time."""
    low, high = place_log.min() - 1.0, place_log.max() + 1.0

    def cdf(t_s: np.ndarray) -> np.ndarray:
        x = np.log(np.maximum(t_s, 1e-300))
        parts = stats.norm.cdf((x[:, None] - place_log) / sigma) @ weight
        return (1 - background) * parts + background * np.clip((x - low) / (high - low), 0, 1)

    return cdf


def true_modes(cdf: Cdf, low: float, high: float, depth: float = 1.0) -> int:
    """Count maxima of the density of log time that exceed antimodes by a factor."""
    x = np.linspace(low, high, 4001)
    density = np.diff(cdf(np.exp(x)))
    density = np.maximum(density, 1e-9 * density.max())
    density = density[np.append(True, np.diff(density) != 0)]
    turns = np.concatenate([[0], np.flatnonzero(np.diff(np.sign(np.diff(density)))) + 1, [len(density) - 1]])
    heights = list(density[turns])
    while len(heights) > 2:  # the shallowest step between neighbours goes first
        steps = np.abs(np.diff(np.log(heights)))
        least = int(np.argmin(steps))
        if steps[least] > np.log(depth):
            break
        inner = [i for i in (least, least + 1) if 0 < i < len(heights) - 1]
        del heights[inner[0] : inner[-1] + 1]
    return sum(1 for a, b, c in zip(heights, heights[1:], heights[2:], strict=False) if b > a and b > c) or 1


def _number(sample: CountedDurations) -> int:
    cells = LogCells.from_counts(sample.counts, clock_step_of_counts_s(sample.counts))
    return (len(highs_and_lows(cells)[0]) + 1) // 2


def false_modes(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often a second mode is found in ensembles with one mode."""
    for n, repeats in ((10**3, 200), (10**4, 100), (10**5, 60), (10**6, 40), (10**7, 40), (10**9, 20)):
        repeats = max(5, repeats // 20) if quick else repeats
        for name, cdf in UNIMODAL.items():
            chance = chances(cdf)
            wrong = np.mean([_number(drawn(chance, n, rng)) != 1 for _ in range(repeats)])
            yield f"false second modes: {name}, n = {n:.0e}", f"{wrong:.1%} of {repeats}", "≤ 2 %"


def frontier(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often two modes are found, by distance, weight and number of calls."""
    repeats = 4 if quick else 20
    for weight in (0.02, 0.1, 0.5):
        for distance in (3.0, 4.0, 5.0, 7.0):
            found = []
            for n in (10**3, 10**4, 10**5, 10**6):
                cdf = mixture(
                    np.log(SCALE_S) + np.array([0, 0.15 * distance]), 0.15, np.array([1 - weight, weight])
                )
                truth = true_modes(cdf, np.log(SCALE_S) - 1, np.log(SCALE_S) + 3, DEPTH_RATIO)
                right = np.mean([_number(drawn(chances(cdf), n, rng)) == 2 for _ in range(repeats)])
                found.append(f"{right:.0%}" if truth == 2 else "–")
            what = f"two modes found: weight {weight:.0%}, {distance:.0f} sigma apart, n = 1e3, 1e4, 1e5, 1e6"
            yield what, " · ".join(found), "frontier"


def numbers(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often the number of one to five modes is right.

    Ensembles have a background and rounding by the clock.
    """
    repeats = 6 if quick else 60
    for n in (10**3, 10**4, 10**5, 10**6, 10**7):
        for background, step_s in ((0.0, 1e-9), (0.1, 1e-9), (0.0, 1e-6), (0.05, 1e-6)):
            right = 0
            for _ in range(repeats):
                modes = int(rng.integers(1, 6))
                weight = rng.dirichlet(np.full(modes, 3.0))
                least = 0.10 if n < 10**4 else 0.05 if n < 10**5 else 0.02
                weight = least + (1 - modes * least) * weight
                sigma = rng.uniform(0.03, 0.08)
                apart = rng.uniform(np.log(1.3), np.log(4), modes)
                apart = np.maximum(apart, (7.0 if n < 10**4 else 5.0) * sigma)
                cdf = mixture(np.log(3e-5) + np.cumsum(apart), sigma, weight, background)
                right += _number(drawn(chances(cdf, step_s), n, rng)) == modes
            clock = f"{step_s:.0e} s clock"
            what = f"right number: 1–5 modes, {background:.0%} background, {clock}, n = {n:.0e}"
            yield what, f"{right / repeats:.1%} of {repeats}", "≥ 95 %"


def clocks(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often a coarse clock is taken for modes, from bins and from durations."""
    repeats = 10 if quick else 100
    for name, center, sigma in (
        ("34 values", 9.0, 0.35),
        ("few values", 1.5, 0.4),
        ("many values", 60.0, 0.4),
    ):
        for rounding in (np.rint, np.floor):
            binned, raw = 0, 0
            for _ in range(repeats):
                durations_s = 1e-6 * rounding(rng.lognormal(np.log(center), sigma, 20_000))
                sample = CountedDurations.from_durations(durations_s)
                binned += _number(sample) != 1
                raw += len(fit_modes(sample, size=2, resolution_s=clock_step_s(durations_s))) != 1
            how = f"µs clock ({rounding.__name__}), {name}, 20,000 calls"
            yield f"modes of the clock: {how}, bins", f"{binned / repeats:.1%} of {repeats}", "0 %"
            yield f"modes of the clock: {how}, raw", f"{raw / repeats:.1%} of {repeats}", "0 %"


def intervals(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure the coverage of 90 % intervals."""
    repeats = 20 if quick else 120
    place, sigma, weight = np.log(SCALE_S) + np.array([0, 1.0]), np.array([0.15, 0.15]), np.array([0.7, 0.3])
    for n in (10**3, 10**4, 10**5, 10**6):
        chance = chances(mixture(place, sigma, weight))
        held = np.zeros(3)
        trials = 0
        for _ in range(3 * repeats if n == 10**3 else repeats):
            found = fit_modes(drawn(chance, n, rng))
            if len(found) != 2:
                continue
            for mode, t_log, share in zip(found.modes, place, weight, strict=True):
                trials += 1
                held[0] += mode.low_s <= np.exp(t_log) <= mode.high_s
                held[1] += mode.weight_low <= share <= mode.weight_high
                held[2] += mode.width_low <= 0.15 <= mode.width_high
        for what, share in zip(("place", "weight", "width"), held / max(trials, 1), strict=True):
            yield f"coverage of {what}: two modes, n = {n:.0e}", f"{share:.1%} of {trials}", "87–93 %"
        for name, cdf, mode_s in (
            ("gamma 2", UNIMODAL["gamma 2"], 2 * SCALE_S),
            ("Weibull 3", UNIMODAL["Weibull 3"], SCALE_S),
        ):
            chance = chances(cdf)
            found = [fit_modes(drawn(chance, n, rng)).modes[0] for _ in range(repeats)]
            share = np.mean([mode.low_s <= mode_s <= mode.high_s for mode in found])
            yield f"coverage of place: {name}, n = {n:.0e}", f"{share:.1%} of {repeats}", "87–93 %"


def phases(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure rejected bumps of single phases, and the coverage with dependent calls."""
    repeats = 10 if quick else 100
    told, alone, held = 0, 0, 0
    phase = np.repeat(np.arange(50), 200)
    for _ in range(repeats):
        durations_s = rng.lognormal(np.log(SCALE_S), 0.2, len(phase))
        durations_s[phase == 17] *= 5
        found = fit_modes(CountedDurations.from_durations(durations_s, phase))
        told += any(bump.phase == 17 for bump in found.bumps)
        alone += len(found) == 1
        durations_s = np.exp(
            np.log(SCALE_S) + rng.normal(0, 0.15, 50)[phase] + rng.normal(0, 0.2, len(phase))
        )
        mode = fit_modes(CountedDurations.from_durations(durations_s, phase)).modes[0]
        held += mode.low_s <= SCALE_S <= mode.high_s
    yield "a bump of one phase of 50 is told", f"{told / repeats:.0%} of {repeats}", "100 %"
    yield "and is not a mode", f"{alone / repeats:.0%} of {repeats}", "100 %"
    yield "coverage of place: 50 phases that differ", f"{held / repeats:.1%} of {repeats}", "85–95 %"


def harmonics(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often harmonics are found, in the paper's first figure and in random modes."""
    repeats = 20 if quick else 200
    found = 0
    for _ in range(repeats):
        order = rng.choice([1, 2, 4], 4096, p=[0.6, 0.25, 0.15])
        result = fit_modes(
            CountedDurations.from_durations(32.0 / order * np.exp(rng.normal(0, 0.06, 4096)))
        ).harmonics
        found += result is not None and result.orders == (1, 2, 4) and abs(result.fundamental_s - 32) < 1
    yield "harmonics R, R/2, R/4 found, 4,096 calls", f"{found / repeats:.0%} of {repeats}", "≥ 95 %"
    width = 0.08
    for modes in (2, 3, 5, 8):
        false, times = 0, 2 * repeats
        for seed in range(times):
            place = modes_apart(modes, 2.5 * width, rng)
            known = (place * 0.99, place, place * 1.01)
            reach = np.log(place[-1] / place[0]) + 4.65 * width  # as far as 98 % of the calls
            false += find_harmonics(*known, reach, seed, [width] * modes) is not None
        yield f"harmonics among {modes} modes at random", f"{false / times:.1%} of {times}", "≤ 5 %"


def modes_apart(modes: int, least: float, rng: np.random.Generator) -> np.ndarray:
    """Draw locations of modes over two decades, at distinguishable distances."""
    while True:
        place_log = np.sort(rng.uniform(0, np.log(100), modes))
        if np.diff(place_log).min() >= least:
            return np.exp(place_log)


def speed(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure processor time in seconds, the median of five."""
    for name in ("log-normal 0.3", "log-normal 1.5", "Weibull 0.7"):
        for n in (10**3, 10**6, 10**9):
            sample, times = drawn(chances(UNIMODAL[name]), n, rng), []
            for _ in range(3 if quick else 5):
                begin = time.thread_time()
                fit_modes(sample)
                times.append(time.thread_time() - begin)
            yield f"time of modes: {name}, n = {n:.0e}", f"{np.median(times):.3f} s", "≤ 0.3 s"


PARTS = (false_modes, frontier, numbers, clocks, intervals, phases, harmonics, speed)


def main(quick: bool = False, seed: int = 20_261_121, names: tuple[str, ...] = ()) -> None:
    """Print the results, one line for each claim."""
    for part in PARTS:
        if names and part.__name__ not in names:
            continue
        rows = list(part(quick, np.random.default_rng(seed)))
        show(rows, ("claim: " + part.__name__.replace("_", " "), "measured", "goal"))


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    main(quick="--quick" in sys.argv, names=tuple(words))
