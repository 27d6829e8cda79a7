"""Pictures of the slowest of N, splitting, tails and comparisons hold the numbers of the statistics."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.models import Legend, LogScale, Title
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles import viz
from ensembles.model.errors import EnsioError
from ensembles.model.units import seconds_text
from ensembles.statistics.extremes.order_statistics import maximum_distribution
from ensembles.viz.pictures.comparison import QUANTILES


def ensemble(n: int = 4096, scale: float = 1.0, seed: int = 1) -> en.Ensemble:
    random = np.random.default_rng(seed)
    return en.Ensemble(
        scale * random.gamma(4.0, 0.01, n),
        phase=np.arange(n) // 64,
        rank=np.arange(n) % 64,
        name="pwrite",
        op="write",
    )


def find(picture, name: str):
    found = picture.select_one({"name": name})
    assert found is not None, name
    return found


def renderer(fig, name: str) -> dict:
    (found,) = [each for each in fig.renderers if each.name == name]
    return {key: np.asarray(values) for key, values in found.data_source.data.items()}


def labels(fig) -> list[str]:
    return [item.label.value for legend in fig.select({"type": Legend}) for item in legend.items]


def sentences(picture) -> str:
    return " | ".join(" ".join(title.text.split()) for title in picture.select({"type": Title}))


def test_density_and_cdf_of_the_slowest_are_equation_1() -> None:
    e = ensemble()
    picture = viz.tail(e, [16, 64])
    edges_s, chance = maximum_distribution(e.sample, 64)
    drawn = renderer(find(picture, "order_statistic_cdf"), "cdf_64")
    np.testing.assert_allclose(drawn["p"], np.interp(drawn["t"], edges_s, chance), atol=1e-9)
    density = renderer(find(picture, "order_statistic_density"), "density_64")
    # The area under the density, over log duration, is 1.
    assert (density["density"][1:-1] * np.diff(np.log(density["t"][1:]))).sum() == pytest.approx(1.0)
    assert labels(find(picture, "order_statistic_density"))[:3] == [
        "one call",
        "slowest of 16",
        "slowest of 64",
    ]


def test_predictions_are_those_of_the_command() -> None:
    e = ensemble()
    numbers = [16, 64, 256]
    drawn = renderer(find(viz.tail(e, numbers), "order_statistic_predictions"), "predictions")
    tails = [e.tail(number) for number in numbers]
    for name in ("low", "median", "high"):
        np.testing.assert_allclose(drawn[name], [getattr(tail, f"{name}_s") for tail in tails])
    seen = renderer(find(viz.tail(e, numbers), "order_statistic_cdf"), "seen")
    assert seen["x0"] == e.durations_s.max()


def test_numbers_of_tasks_come_from_the_ensemble_and_are_checked() -> None:
    assert viz.tail(ensemble()).yaxis.axis_label == "CDF of the maximum of 64 calls"
    with pytest.raises(EnsioError, match="choose 1 to 6"):
        viz.tail(ensemble(), range(1, 9))
    with pytest.raises(EnsioError):
        viz.tail(en.Ensemble([1.0, 2.0]))


def test_refused_predictions_say_why() -> None:
    few = en.Ensemble([1.0, 2.0, 3.0], rank=[0, 1, 2])
    assert few.tail(1000).refused
    assert "No prediction for the slowest of 1,000" in sentences(viz.tail(few, [1000]))


def test_splitting_shows_the_split() -> None:
    e = ensemble()
    picture = viz.splitting(e, [1, 4], tasks=64)
    split = e.split([1, 4], 64)
    rows = find(picture, "splitting_slowest").renderers[0].data_source.data
    for name in ("low", "median", "high"):
        np.testing.assert_allclose(rows[name], [getattr(one, f"{name}_s") for one in split.splits])
    assert "Speedup: ratio of the means" in sentences(find(picture, "splitting_slowest"))
    assert (
        f"mean {seconds_text(split.splits[1].mean_s)}, speedup {split.splits[1].speedup:.2f}"
        in rows["text"][1]
    )
    assert set(rows["align"]) == {"left"}
    # Of calls that take about as long, a text that began at its bar would be cut by the frame.
    steady = en.Ensemble(np.random.default_rng(1).normal(1.0, 0.02, 640), rank=np.arange(640) % 64)
    rows = find(viz.splitting(steady, [1, 4], tasks=64), "splitting_slowest").renderers[0].data_source.data
    assert set(rows["align"]) == {"right"}
    times = {k: renderer(find(picture, "splitting_times"), f"times_{k}") for k in (1, 4)}
    for one in split.splits:
        t, density = times[one.calls]["t"], times[one.calls]["density"]
        middle, share = 0.5 * (t[1:-1] + t[2:]), density[1:-1] * np.diff(t[1:])
        assert share.sum() == pytest.approx(1.0)
        mean = (middle * share).sum()
        spread = np.sqrt(((middle - mean) ** 2 * share).sum()) / mean
        assert spread == pytest.approx(one.spread, rel=0.1)


def test_splitting_of_times_over_decades_has_logarithmic_axes() -> None:
    e = en.Ensemble(np.random.default_rng(1).lognormal(-4, 1.6, 2560), rank=np.arange(2560) % 64)
    picture = viz.splitting(e, [1, 4], tasks=64)
    above, below = find(picture, "splitting_times"), find(picture, "splitting_slowest")
    assert isinstance(above.x_scale, LogScale)
    assert isinstance(below.x_scale, LogScale)
    for k in (1, 4):
        assert renderer(above, f"times_{k}")["density"][1:-1].sum() == pytest.approx(1.0)  # shares of bins
    bars = below.renderers[0].data_source.data
    assert above.x_range.start < min(bars["low"])
    assert max(bars["high"]) < above.x_range.end


def test_measured_runs_are_sums_of_consecutive_calls() -> None:
    durations_s = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    e = en.Ensemble(durations_s, phase=[1, 1, 2, 2, 2], rank=[0, 0, 0, 0, 0])
    t = renderer(find(viz.splitting({2: e}), "splitting_times"), "times_2")
    # The tenth second is of an incomplete rest: sums are 3 and 7.
    shares = t["density"][1:-1] * np.diff(t["t"][1:])
    assert shares.sum() == pytest.approx(1.0)
    assert t["t"].max() == 7.0
    assert (shares > 0).sum() == 2


def test_comparison_shows_verdict_medians_and_ratios() -> None:
    a, b = ensemble(), ensemble(scale=2.0, seed=2)
    picture = viz.comparison(a, b, names=("old", "new"))
    verdict = en.compare(a, b)
    assert f"{verdict.verdict}, median × {verdict.shift.median_ratio:.3g}" in sentences(picture)
    ratio = find(picture, "comparison_ratio").renderers[1].data_source.data
    level = 0.9**0.5
    one, other = a.quantiles(QUANTILES, level), b.quantiles(QUANTILES, level)
    expected = [
        second.value / first.value for first, second in zip(one.estimates, other.estimates, strict=True)
    ]
    np.testing.assert_allclose(ratio["ratio"], expected)
    assert ((ratio["low"] < ratio["ratio"]) & (ratio["ratio"] < ratio["high"])).all()
    assert labels(find(picture, "comparison_density"))[0].startswith("old (4,096), median ")


def test_comparison_of_runs_draws_the_calls_of_the_verdict(tmp_path) -> None:
    runs = []
    for seed in (1, 2):
        synthetic_run(tmp_path / str(seed), tasks=8, events_per_task=42, seed=seed)
        runs.append(en.open(tmp_path / str(seed)))
    verdict = en.compare(*runs)
    drawn = labels(find(viz.comparison(*runs), "comparison_density"))
    assert [int(label.split("(")[1].split(")")[0]) for label in drawn] == [
        group.calls for group in verdict.groups
    ]


def test_per_call_and_per_mib_are_not_compared() -> None:
    e = ensemble()
    per_mib = en.Ensemble.from_sample(e.sample, per="MiB")
    with pytest.raises(ValueError, match="per MiB"):
        viz.comparison(e, per_mib)
