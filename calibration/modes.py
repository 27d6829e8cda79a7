"""Error rates of `modes` on ensembles with a known truth.

Counts are drawn from the exact probabilities of the bins, so that ten million calls cost as much as a
thousand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.statistics.modes.density import DEPTH_RATIO, LogCells
from ensembles.statistics.modes.harmonics import find_harmonics
from ensembles.statistics.modes.kinds import find_clusters
from ensembles.statistics.modes.modes import Mode, fit_modes
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
    """Return the probability of each bin, of durations in steps of the clock: shape (BIN_COUNT,)."""
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
    return (len(find_clusters(sample, cells)[0]) + 1) // 2


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
    """Measure how often the number of one to five modes, with background and clock, is right."""
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
    for name, median_s, sigma, clock in (
        ("ticks of 10.017 ns, 900 ns", 9e-7, 0.08, ticks),
        ("ticks of 10.017 ns, 300 ns", 3e-7, 0.3, ticks),
        ("doubles since 1970, 0.5 µs", 5e-7, 0.5, doubles_since_1970),
        ("doubles since 1970, 1.2 µs", 1.2e-6, 0.15, doubles_since_1970),
        ("doubles since 1970, 3 µs", 3e-6, 0.15, doubles_since_1970),
    ):
        more = 0
        for _ in range(repeats):
            durations_s = clock(rng.lognormal(np.log(median_s), sigma, 20_000), rng)
            sample = CountedDurations.from_durations(durations_s)
            more += len(fit_modes(sample, size=2, resolution_s=clock_step_s(durations_s))) != 1
        yield f"modes of the clock: {name}, 20,000 calls, raw", f"{more / repeats:.1%} of {repeats}", "0 %"


def ticks(durations_s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Round to a counter that advances every 10.017 ns, then to whole ns."""
    return np.round(np.floor(durations_s * 1e9 / 10.017 + rng.random(len(durations_s))) * 10.017) * 1e-9


def doubles_since_1970(durations_s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Take differences of whole microseconds that are kept as doubles of seconds since 1970."""
    start_s = rng.uniform(0, 600, len(durations_s))
    first_s, last_s = (np.floor(at * 1e6) / 1e6 + 1.6e9 for at in (start_s, start_s + durations_s))
    return np.maximum(last_s - first_s, 0)


def measured(held: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Return the coverage with its standard error, and the median width of the intervals."""
    share, n = float(np.mean(held)), len(held)
    error = np.sqrt(max(share * (1 - share), 1 / n) / n)
    return f"{share:.1%} ± {error:.1%} of {n}, width × {np.median(high / np.maximum(low, 1e-12)):.3g}"


def covered(modes: list[Mode], t_s: float) -> str:
    """Return how often the intervals of these modes hold a place, and how wide they are."""
    low, high = np.array([mode.low_s for mode in modes]), np.array([mode.high_s for mode in modes])
    return measured((low <= t_s) & (t_s <= high), low, high)


def intervals(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure the coverage of 90 % intervals, and their widths."""
    repeats = 20 if quick else 120
    place, sigma, weight = np.log(SCALE_S) + np.array([0, 1.0]), np.array([0.15, 0.15]), np.array([0.7, 0.3])
    for n in (10**3, 10**4, 10**5, 10**6):
        chance = chances(mixture(place, sigma, weight))
        found = [fit_modes(drawn(chance, n, rng)).modes for _ in range(repeats)]
        pairs = [
            (mode, t_log, share)
            for modes in found
            if len(modes) == 2
            for mode, t_log, share in zip(modes, place, weight, strict=True)
        ]
        for what, truth, ends in (
            ("place", [np.exp(t) for _, t, _ in pairs], [(m.low_s, m.high_s) for m, *_ in pairs]),
            ("weight", [s for *_, s in pairs], [(m.weight_low, m.weight_high) for m, *_ in pairs]),
            ("width", [0.15 for _ in pairs], [(m.width_low, m.width_high) for m, *_ in pairs]),
        ):
            low, high = np.array(ends).T
            held = (low <= np.array(truth)) & (np.array(truth) <= high)
            yield f"coverage of {what}: two modes, n = {n:.0e}", measured(held, low, high), "87–93 %"
        for name, cdf, mode_s in (
            ("gamma 2", UNIMODAL["gamma 2"], 2 * SCALE_S),
            ("Weibull 3", UNIMODAL["Weibull 3"], SCALE_S),
        ):
            chance = chances(cdf)
            modes = [fit_modes(drawn(chance, n, rng)).modes[0] for _ in range(repeats)]
            yield f"coverage of place: {name}, n = {n:.0e}", covered(modes, mode_s), "85–95 %"


SMALL = ((5, 8), (10, 16), (5, 200), (20, 64))
"""Phases, and calls of each."""


def small(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure coverage and widths in small ensembles of few phases, as first runs of a user are."""
    repeats = 10 if quick else 400
    shapes: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
        "log-normal 0.5": (lambda phase: rng.lognormal(0, 0.5, len(phase)), 1.0),
        "log-normal 0.2": (lambda phase: rng.lognormal(0, 0.2, len(phase)), 1.0),
        "gamma 2": (lambda phase: rng.gamma(2, 0.5, len(phase)), 1.0),
        "Weibull 3": (lambda phase: rng.weibull(3, len(phase)), 1.0),
        "log-normal 0.5, phases that differ by 0.2": (
            lambda phase: np.exp(rng.normal(0, 0.2, phase[-1] + 1)[phase] + rng.normal(0, 0.5, len(phase))),
            1.0,
        ),
        "log-normal 0.2, phases that differ by 0.2": (
            lambda phase: np.exp(rng.normal(0, 0.2, phase[-1] + 1)[phase] + rng.normal(0, 0.2, len(phase))),
            1.0,
        ),
        "log-normal 0.3, slow calls in few phases": (_with_clustered_slow_calls(rng), 1.0),
        "log-normal 0.3, 5 % far outliers": (_with_outliers(rng), 1.0),
        "log-normal 0.4, a clock of a tenth": (
            lambda phase: np.floor(10 * rng.lognormal(0, 0.4, len(phase)) + 0.5) / 10,
            1.0,
        ),
        "70 % log-normal 0.3, 30 % six times as slow": (
            lambda phase: np.exp(rng.normal(0, 0.3, len(phase)) + np.log(6) * (rng.random(len(phase)) < 0.3)),
            1.0,
        ),
        "log-normal 0.3, the first phase three times as slow": (
            lambda phase: np.exp(rng.normal(0, 0.3, len(phase)) + np.log(3) * (phase == 0)),
            1.0,
        ),
    }
    zero, ensembles = 0, 0
    for phases, calls in SMALL:
        phase = np.repeat(np.arange(phases), calls)
        for name, (draw, t_s) in shapes.items():
            found = [
                fit_modes(
                    CountedDurations.from_durations(SCALE_S * draw(phase), phase),
                    resolution_s=0.1 * SCALE_S if "clock" in name else 0.0,
                )
                for _ in range(repeats)
            ]
            heaviest = [max(f.modes, key=lambda mode: mode.weight) for f in found if f.modes]
            zero += sum(mode.low_s == mode.high_s for f in found for mode in f.modes)
            ensembles += repeats
            what = f"coverage of place: {phases} × {calls}, {name}"
            none = f", no peak in {1 - len(heaviest) / repeats:.0%}" if len(heaviest) < repeats else ""
            yield what, covered(heaviest, t_s * SCALE_S) + none, "85–95 %"
    yield "intervals of width zero", f"{zero} in {ensembles:,} ensembles", "0"


def _with_clustered_slow_calls(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    def draw(phase: np.ndarray) -> np.ndarray:
        share = rng.beta(0.25, 4.75, phase[-1] + 1)[phase]
        return np.exp(rng.normal(0, 0.3, len(phase)) + np.log(8) * (rng.random(len(phase)) < share))

    return draw


def _with_outliers(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    def draw(phase: np.ndarray) -> np.ndarray:
        far = rng.random(len(phase)) < 0.05
        return np.exp(np.where(far, rng.uniform(-6, -3, len(phase)), rng.normal(0, 0.3, len(phase))))

    return draw


def shapes(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often calls without a peak are reported as spread, and calls with one are."""
    repeats = 10 if quick else 200
    laws: dict[str, tuple[Cdf, str]] = {
        "uniform, 1 : 11": (stats.uniform(SCALE_S, 10 * SCALE_S).cdf, "≥ 90 %"),
        "uniform in log time, 1 : 11": (stats.loguniform(SCALE_S, 11 * SCALE_S).cdf, "≥ 90 %"),
        "Pareto 1.5": (UNIMODAL["Pareto 1.5"], "≥ 90 %"),
        "log-normal 0.3": (UNIMODAL["log-normal 0.3"], "≤ 10 %"),
        "log-normal 1.5": (UNIMODAL["log-normal 1.5"], "≤ 10 %"),
        "gamma 2": (UNIMODAL["gamma 2"], "≤ 10 %"),
    }
    for n in (40, 200, 10**4):
        for name, (cdf, goal) in laws.items():
            chance = chances(cdf)
            found = [fit_modes(drawn(chance, n, rng), size=2) for _ in range(repeats)]
            share = np.mean([bool(modes.spread) and not modes.modes for modes in found])
            yield f"reported as spread: {name}, n = {n}", f"{share:.1%} of {repeats}", goal


def shoulders(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure how often shoulders are reported, where there are none and where there is one."""
    repeats = 5 if quick else 60
    for n in (10**3, 10**4, 10**5):
        for name in ("log-normal 0.3", "log-normal 1.5", "gamma 2", "gamma 0.5", "Weibull 3", "Pareto 1.5"):
            chance = chances(UNIMODAL[name])
            false = _with_shoulders(chance, n, repeats, rng)
            yield f"false shoulders: {name}, n = {n:.0e}", f"{false:.1%} of {repeats}", "≤ 2 %"
        for weight, apart in ((0.1, 3.0), (0.2, 3.0), (0.3, 2.5)):
            places = np.log(SCALE_S) + np.array([0, 0.15 * apart])
            chance = chances(mixture(places, np.full(2, 0.15), np.array([1 - weight, weight])))
            seen = _with_shoulders(chance, n, repeats, rng)
            what = f"shoulders found: weight {weight:.0%}, {apart} sigma apart, n = {n:.0e}"
            yield what, f"{seen:.0%} of {repeats}", "frontier"


def _with_shoulders(chance: np.ndarray, n: int, repeats: int, rng: np.random.Generator) -> float:
    found = [fit_modes(drawn(chance, n, rng), size=2).shoulders for _ in range(repeats)]
    return float(np.mean([bool(shoulders) for shoulders in found]))


def phases(quick: bool, rng: np.random.Generator) -> Iterator[Row]:
    """Measure rejected bumps of single phases, and the coverage with dependent calls."""
    repeats = 10 if quick else 100
    told, alone = 0, 0
    modes = []
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
        modes.append(fit_modes(CountedDurations.from_durations(durations_s, phase)).modes[0])
    yield "a bump of one phase of 50 is reported", f"{told / repeats:.0%} of {repeats}", "100 %"
    yield "and is not a mode", f"{alone / repeats:.0%} of {repeats}", "100 %"
    yield "coverage of place: 50 phases that differ", covered(modes, SCALE_S), "85–95 %"


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


PARTS = (
    false_modes,
    frontier,
    numbers,
    clocks,
    intervals,
    small,
    shapes,
    shoulders,
    phases,
    harmonics,
    speed,
)
SEED = 20_261_121


def rows_of(name: str, quick: bool, seed: int) -> list[Row]:
    """Measure one part."""
    part = next(part for part in PARTS if part.__name__ == name)
    return list(part(quick, np.random.default_rng(seed)))


def main(quick: bool = False) -> None:
    """Print the results, one line for each claim."""
    say("Coverage of intervals at 90 % has its standard error and the median width (high / low).")
    # Times are measured last, when the other processes have ended.
    names = [part.__name__ for part in PARTS if part.__name__ != "speed"]
    found = dict(zip(names, in_order(rows_of, [(name, quick, SEED) for name in names]), strict=True))
    found["speed"] = rows_of("speed", quick, SEED)
    for name, rows in found.items():
        show(rows, ("claim: " + name.replace("_", " "), "measured", "goal"))
