"""What ``ensio try`` says of measured times."""

import math

import pytest

from ensembles.answers.trial import LEVEL, TrialAnswer, decides, median_interval, middle_pair, stands_for
from ensembles.diagnosis.finding import Gain


def answer(pairs, recorded_s=1.0, control=(1.0, 1.02, 0.99), of_calls_s=0.5, **more):
    return TrialAnswer(
        run="run",
        remedy="join=1MiB",
        recorded_s=(recorded_s, 0.5),
        recorded_range_s=((0.9 * recorded_s, 1.1 * recorded_s), (0.4, 0.6)),
        control_s=tuple((time_s, of_calls_s) for time_s in control),
        pairs_s=pairs,
        same_contents=True,
        conditions={"cache": "warm", "think_time": "keep"},
        **more,
    )


PAIRS = ((1.0, 0.4), (1.1, 0.5), (1.0, 0.45), (1.2, 0.5), (1.0, 0.41))


@pytest.mark.parametrize("n", range(5, 40))
def test_interval_of_the_median_covers_what_it_promises(n):
    low, high = map(int, median_interval(range(n)))
    inside = sum(math.comb(n, below) for below in range(low + 1, high + 1)) / 2**n
    assert inside >= LEVEL
    assert low == n - 1 - high
    if n > 7:  # one value narrower, it would not
        assert sum(math.comb(n, below) for below in range(low + 2, high)) / 2**n < LEVEL


def test_gain_and_its_interval_are_those_of_the_pairs():
    found = answer(PAIRS, predicted=Gain(0.3, 0.7))
    assert found.gain_s == pytest.approx(0.6)
    assert found.interval_s == pytest.approx((0.55, 0.7))
    text = " ".join(str(found).split())
    assert "predicted 300 ms to 700 ms shorter; measured 600 ms shorter (550 ms to 700 ms) of 1.00 s" in text
    assert "same contents" in text


def test_the_table_is_of_the_pair_whose_gain_is_the_sentence():
    found = answer(PAIRS, entries=(("sync per write", 0.7, 0.7, 0.1),))
    without, with_it = found.pairs_s[middle_pair(found.pairs_s)]
    assert without - with_it == pytest.approx(found.gain_s)
    assert "pair 1" in " ".join(str(found).split())


def test_a_loss_is_called_longer():
    pairs = tuple((after, before) for before, after in PAIRS)
    text = " ".join(str(answer(pairs, 0.45, (0.45, 0.46, 0.44))).split())
    assert "measured 600 ms longer (550 ms to 700 ms)" in text


def test_pairs_that_are_another_run_than_the_recorded_one_are_refused():
    """The first replays were slow, as a disk may be: the later ones are what is measured."""
    text = " ".join(str(answer(tuple((0.4, 0.3) for _ in PAIRS))).split())
    assert "1.00 s were recorded, and 400 ms to 400 ms are made again" in text


def test_what_is_not_seen_is_not_a_gain():
    pairs = ((1.0, 1.1), (1.0, 0.9), (1.0, 1.05), (1.0, 0.98), (1.0, 1.0))
    assert not decides([one - other for one, other in pairs])
    assert "no gain is seen" in str(answer(pairs)).replace("\n", " ")


def test_a_replay_that_takes_other_time_than_the_run_is_refused():
    assert stands_for(((0.9, 1.1),), ((1.0, 0.0), (1.1, 0.0)))
    assert not stands_for(((0.9, 1.1),), ((1.5, 0.0), (1.52, 0.0)))
    found = answer((), control=(1.5, 1.52, 1.51))
    assert "does not stand for the run" in found.to_json()["refused"]
    assert found.to_json()["gain_s"] is None


@pytest.mark.parametrize(("lost_s", "is_idle_machine"), [(0.8, False), (0.1, True)])
def test_calls_that_are_not_made_again_are_the_reason_if_they_take_the_difference(lost_s, is_idle_machine):
    found = answer((), control=(1.5, 1.52, 1.51), lost_s=lost_s).to_json()["refused"]
    assert ("idle machine" in found) == is_idle_machine
    assert ("800 ms" in found) != is_idle_machine


def test_a_replay_whose_changed_calls_take_other_time_is_refused_although_the_run_takes_as_long():
    found = answer(PAIRS, of_calls_s=0.01).to_json()
    assert "500 ms were recorded, and 10.0 ms" in found["refused"]
    assert found["gain_s"] is None


def test_a_prediction_with_next_to_no_lower_end_has_the_form_of_the_diagnosis():
    text = " ".join(str(answer(PAIRS, predicted=Gain(0.03, 0.5))).split())
    assert "predicted up to 500 ms shorter; measured" in text
