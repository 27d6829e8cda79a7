"""``ensio split``, started as a person starts it."""

import json

import numpy as np
import pytest
from commands_here import executed as ensio
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.statistics.sums.split import predict_split

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    synthetic_run(folder, 32, 52, seed=5, tasks_per_node=8)
    return folder


def test_json_is_what_the_function_says_of_the_same_calls(run):
    told = json.loads(ensio("split", run, "--op", "write", "--calls", "1,2,4", "--json").stdout)
    writes = en.open(run).select(op="write")
    known = writes.ensemble()
    assert (told["tasks"], told["n"], told["refused"]) == (32, len(writes), None)
    expected = predict_split(known.sample, (1, 2, 4), 32, known.successive, attributes=known.calls)
    for found, split in zip(told["splits"], expected.splits, strict=True):
        assert found == pytest.approx(vars(split))
    assert np.all(np.diff([split["median_s"] for split in told["splits"]]) < 0)


def test_text_has_a_line_for_every_number_of_calls(run):
    done = ensio("split", run, "--op", "write", "--tasks", "1024", "--calls", "1,16")
    assert done.returncode == 0
    assert done.stdout.startswith("The slowest of 1,024 tasks, if each of ")
    rows = [line.split()[0] for line in done.stdout.splitlines() if line[:1] == " " and line.strip()]
    assert {"1", "16"} <= set(rows)


def test_ensemble_per_mib_is_told_in_its_unit(run):
    done = ensio("split", run, "--op", "write", "--per-byte")
    assert "ms/MiB" in done.stdout or "s/MiB" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--calls", "0"), "0 is below 1"),
        (("--calls", "two"), '"two" is not a number of calls'),
        (("--level", "1.5"), '"1.5" is not a share'),
        (("--tasks", "-3"), '"-3" is not a number of tasks'),
    ],
)
def test_wrong_usage_is_one_sentence(run, arguments, sentence):
    done = ensio("split", run, *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_ensemble_that_says_too_little_is_refused(run):
    done = ensio("split", run, "--op", "open", "--rank", "0", "--calls", "1", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["splits"] == []
    assert "too few" in told["refused"]
