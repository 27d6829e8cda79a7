"""The data set of ./dev evaluate: runs, logs, truth and a scorer that needs only Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

import ensembles as en
from ensembles.run.requests import requests_of_run

sys.path.insert(0, str(ROOT))
from calibration.evaluate.dataset import write_dataset
from calibration.evaluate.scorer import Judged
from calibration.evaluate.truth import make_seeded

SEED = 941_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    runs = [
        (made / f"run{number:04}", make_seeded(SEED, number, made / f"run{number:04}")) for number in (1, 3)
    ]
    said = [en.diagnose(en.open(path)).to_json() for path, _ in runs]
    judged = [(path, Judged(truth, answer)) for (path, truth), answer in zip(runs, said, strict=True)]
    write_dataset(made / "set", "a test", judged)
    return made / "set"


def scored(folder: Path, answers: object) -> str:
    (folder / "mine.json").write_text(json.dumps(answers))
    words = [sys.executable, "-I", folder / "score.py", folder / "mine.json"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_the_scorer_alone_scores_any_answers(folder: Path) -> None:
    truth = json.loads((folder / "truth.json").read_text())
    right = {
        run: {"findings": [{"id": cause["id"]} for cause in each["causes"]]} for run, each in truth.items()
    }
    planted = sum(bool(each["causes"]) for each in truth.values())
    assert planted
    assert f"{planted} of {planted} (100%)" in scored(folder, right)
    assert f"0 of {planted} (0%)" in scored(folder, {})
    assert scored(folder, {}).startswith(f"0 of {len(truth)} ")  # have an answer
    assert scored(folder, json.loads((folder / "answers/ensio.json").read_text()))
    refused = subprocess.run([sys.executable, "-I", folder / "score.py"], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr[:6]) == (2, "usage:")


def test_a_log_has_the_sums_of_its_run(folder: Path) -> None:
    for log in sorted(folder.glob("darshan/*.darshan")):
        run, of_log = en.open(folder / "runs" / log.stem), en.open(log)
        assert of_log.tasks == run.tasks
        sums = [
            {(row.layer, row.op): (row.count, row.bytes) for row in requests_of_run(one)}
            for one in (run, of_log)
        ]
        assert sums[1]
        assert sums[1].items() <= sums[0].items()


def test_the_card_says_what_was_measured(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    assert card.startswith("# Runs with measured causes")
    assert "2 runs, of which" in card
    assert "BSD 3-Clause" in card
