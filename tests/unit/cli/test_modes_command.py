"""``ensio modes``, started as a person starts it."""

import json

import pytest
from commands_here import executed as ensio
from synthetic_runs import synthetic_run

from ensembles.faces.words import cell

pytestmark = pytest.mark.slow

TASKS = 16
FAIR_SHARE_S = 1 / 64
"""Of a call of 1 MiB in the synthetic runs; some tasks have twice that, or four times."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("modes") / "run"
    synthetic_run(path, TASKS, 802, seed=5, phases=20)
    return path


def test_modes_of_writes_are_the_fair_share_and_its_harmonics(run):
    done = ensio("modes", run, "--op", "write", "--json", "--maximum", f"{64 * TASKS}MiB/s", "--tasks", TASKS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] == 400 * TASKS
    assert [mode["t_s"] for mode in found["modes"]] == pytest.approx(
        [FAIR_SHARE_S / 4, FAIR_SHARE_S / 2, FAIR_SHARE_S], rel=0.05
    )
    assert all(mode["low_s"] <= mode["t_s"] <= mode["high_s"] for mode in found["modes"])
    assert sum(mode["weight"] for mode in found["modes"]) == pytest.approx(1)
    assert found["harmonics"]["orders"] == [1, 2, 4]
    assert found["harmonics"]["fundamental_s"] == pytest.approx(FAIR_SHARE_S, rel=0.05)
    assert found["fair_share"]["duration_s"] == pytest.approx(FAIR_SHARE_S)
    assert found["fair_share"]["speed"] == pytest.approx([4, 2, 1], rel=0.06)


def test_modes_are_a_table_for_people(run):
    done = ensio("modes", run, "--op", "write", "--per-byte")
    assert done.returncode == 0, done.stderr
    assert "3 modes in 6,400 calls (pwrite)" in done.stdout
    assert "s per MiB" in done.stdout
    assert "Harmonics: modes at R, R/2, R/4" in done.stdout


def test_phases_of_a_mode_are_never_half_of_them_by_rounding() -> None:
    shown = [cell(each, "of all") for each in ((1.32, 2), (4.9, 5), (2.4, 8), (1.32, None))]
    assert shown == ["1.3/2", "5/5", "2/8", "1"]


def test_few_calls_are_told_in_one_sentence(run):
    done = ensio("modes", run, "--op", "write", "--rank", "0", "--where", "ordinal=1-3")
    assert (done.returncode, done.stdout) == (
        0,
        "3 calls: too few for modes, which need at least 5.\n",
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--maximum", "1GB/s"], "needs both --maximum and --tasks"),
        (["--tasks", "4"], "needs both --maximum and --tasks"),
        (["--maximum", "1GB/h", "--tasks", "4"], "write it like 16GB/s"),
        (["--maximum", "0", "--tasks", "4"], "must be at least 1 B/s"),
        (["--maximum", "much", "--tasks", "4"], "write it like 4096 or 1MiB"),
        (["--op", "open", "--maximum", "1GB/s", "--tasks", "4"], "a fair share needs calls"),
    ],
)
def test_wrong_use_is_told_in_one_sentence(run, options, told):
    done = ensio("modes", run, *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_the_former_name_of_the_maximum_is_taken_and_not_shown(run):
    words = ["modes", run, "--op", "write", "--json", "--tasks", TASKS]
    assert ensio(*words, "--limit", "1GB/s").stdout == ensio(*words, "--maximum", "1GB/s").stdout
    assert "--limit" not in ensio("modes", "--help").stdout
