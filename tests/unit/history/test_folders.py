"""One command adds all runs below the folders of a site, and names what is missing."""

from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

from ensembles.cli.main import main
from ensembles.history.store import History


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for seed, name in enumerate(("ann/2026/11/28/a-1", "ann/2026/11/29/a-2", "bob/2026/11/29/b-3")):
        synthetic_run(tmp_path / "site" / name, tasks=2, events_per_task=50, seed=seed)
    damaged = tmp_path / "site/bob/2026/11/29/b-4"
    damaged.mkdir()
    (damaged / "node-1-1.spool").write_bytes(b"none" * 2048)
    return tmp_path / "site"


def test_every_run_is_added_once_and_the_damaged_one_is_named(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(site / "runs.db")
    assert main(["history", "add", str(site), "--db", place]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("3 runs added to ")
    assert "1 not added" in said.out
    assert str(site / "bob/2026/11/29/b-4") in said.err
    assert {Path(path).name for path in History(place).paths()} == {"a-1", "a-2", "b-3"}
    assert main(["history", "add", str(site / "ann"), "--db", place]) == 0
    assert "0 runs added to 0 experiments, 2 were there already, 0 not added" in capsys.readouterr().out


def test_jobs_without_a_run_are_named(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, jobs = str(site / "runs.db"), site / "jobs"
    history = History(place, make=True)
    assert main(["history", "add", str(site), "--db", place, "--experiment", "x"]) == 0
    recorded = {run.labels["job"].partition(".")[0] for run in history.runs("x") if "job" in run.labels}
    jobs.write_text("".join(f"{job} COMPLETED\n" for job in [*sorted(recorded), "777"]) + "\n778\n")
    capsys.readouterr()
    assert main(["history", "add", str(site), "--db", place, "--jobs", str(jobs)]) == 0
    assert "2 jobs not recorded: 777, 778" in capsys.readouterr().out


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs").touch()
    place = ["--db", str(tmp_path / "runs.db")]
    assert main(["history", "add", str(tmp_path), "--jobs", str(tmp_path / "jobs"), *place]) == 2
    assert "holds a run" in capsys.readouterr().err
    assert not (tmp_path / "runs.db").exists()
