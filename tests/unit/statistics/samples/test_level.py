"""A level outside of 0 to 1 is refused by every statistic, with one sentence."""

import numpy as np
import pytest

from ensembles import Ensemble
from ensembles.model.errors import EnsioError

durations_s = np.random.default_rng(1).lognormal(0, 0.3, 200)
ENSEMBLE = Ensemble(durations_s, phase=np.repeat(np.arange(20), 10), rank=np.tile(np.arange(10), 20))


@pytest.mark.parametrize("level", [2, -1, 0, 1.0, float("nan"), True, "0.9"])
@pytest.mark.parametrize(
    "question",
    [
        lambda level: ENSEMBLE.tail(10, level=level),
        lambda level: ENSEMBLE.backtest(level=level),
        lambda level: ENSEMBLE.split((1, 2), level=level),
        lambda level: ENSEMBLE.quantiles(level=level),
        lambda level: ENSEMBLE.moments(level=level),
        lambda level: ENSEMBLE.modes(level=level),
    ],
    ids=["tail", "backtest", "split", "quantiles", "moments", "modes"],
)
def test_a_level_that_is_none_is_refused_in_one_sentence(question, level):
    with pytest.raises(EnsioError, match=r"^the level .* is not between 0 and 1: give for example 0\.9$"):
        question(level)
