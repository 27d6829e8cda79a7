"""The nightly job of docs/examples/history, run as cron runs it, and the commands of its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import commands_here
import msgspec
from places import BUILD, ROOT

import ensembles
from ensembles.comparison.compare import compare_read_runs
from ensembles.comparison.report import gate
from ensembles.history.check import judge
from ensembles.history.record import RunRecord

EXAMPLES = ROOT / "docs" / "examples" / "history"
# As cron has it: few variables, and a short PATH.
ENVIRONMENT = {"HOME": "/nonexistent", "PATH": f"{BUILD}/bin:{os.path.dirname(sys.executable)}:/usr/bin:/bin"}


def test_the_nightly_job_adds_checks_and_publishes(tmp_path: Path) -> None:
    settings = ENVIRONMENT | {
        "ENSIO_HISTORY": str(tmp_path / "runs.db"),
        "SITE": str(tmp_path / "pages"),
        "JUNIT": str(tmp_path / "check.xml"),
    }
    for _ in range(2):
        done = subprocess.run(
            [str(EXAMPLES / "nightly.sh"), "dd", "if=/dev/zero", f"of={tmp_path}/out", "bs=64k", "count=200"],
            env=settings,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert "too-few-runs" in done.stdout
    assert 'skipped="1"' in (tmp_path / "check.xml").read_text()
    assert "nightly" in (tmp_path / "pages" / "index.html").read_text()


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "user" / "history.md").read_text()
    lines = [
        re.sub(r"\s{2,}#.*", "", line.strip()) for line in re.findall(r"^    ensio history .*", text, re.M)
    ]
    settings = ENVIRONMENT | {"ENSIO_HISTORY": str(tmp_path / "runs.db")}

    def shell(line: str) -> None:
        done = commands_here.shell(line, tmp_path, settings)
        # A check of real runs may find a regression: its exit status is 0 or 1.
        assert done.returncode in ((0, 1) if " check" in line else (0,)), (line, done.stderr)

    dd = f"dd if=/dev/zero of={tmp_path}/out bs=64k count=50"
    for number in range(12):
        shell(f"ensio run -o night{number} -- {dd}")
    shell(f"ensio run -o run -- {dd}")
    shell(f"ensio run -o slow -- {dd} oflag=dsync")
    history_agrees_with_compare([tmp_path / f"night{number}" for number in range(6)], tmp_path / "slow")
    shell("ensio history add night0 --experiment other --db other.db")
    first, *rest = lines
    assert first.startswith("ensio history add run ")
    nights = " ".join(f"night{number}" for number in range(11))
    shell(f"ensio history add {nights} --experiment nightly-ior --label commit=1f3a --label node=cn07")
    shell(first)
    (tmp_path / "logs" / "a").mkdir(parents=True)
    import darshan

    log = next((Path(darshan.__file__).parent / "examples").rglob("*.darshan"))
    (tmp_path / "logs" / "a" / "one.darshan").write_bytes(log.read_bytes())
    known = []
    for line in rest:
        if "postgresql" in line:
            continue  # test_history_postgresql
        known.append(line)
        shell(line)
    assert len(known) >= 18
    assert (tmp_path / "pages" / "index.html").exists()


def history_agrees_with_compare(nights: list[Path], other: Path) -> None:
    """Whatever these real runs take, history and the gate do not contradict each other."""
    records = [
        msgspec.structs.replace(RunRecord.of_run(ensembles.open(str(path))), findings=[])
        for path in (*nights, other)
    ]
    for order in (records, [records[-1], *records[:-1]], records[:-1]):
        for last in (1, 2):
            before, latest = order[:-last], order[-last:]
            groups = [[record.as_read() for record in group] for group in (before, latest)]
            found = compare_read_runs(groups, names=["before", "latest"])
            said = judge(order, windows=(last,), confirm=False)
            if gate(found, 1.0).failed:
                assert said.verdict == "regression", said.reason
            if found[0].run_times[0].is_shorter(found[0].level):
                assert said.verdict != "regression", said.reason
            alone = judge(order)
            if last == 1 and gate(found, 1.0).failed and alone.verdict == "ok":
                assert "in the latest run, " in alone.reason or "in both" in alone.reason


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    from ensembles.history import context

    source = Path(context.__file__).read_text()
    for panel in json.loads((EXAMPLES / "grafana.json").read_text())["panels"]:
        for target in panel["targets"]:
            name = re.match(r"\w+", target["expr"])
            assert name is not None
            assert f'"{name[0]}"' in source


def test_a_night_with_a_regression_stays_in_the_history_of_github_actions() -> None:
    """The check fails then, and steps after it only run if they say so: the history is saved before it."""
    text = (EXAMPLES / "github.yml").read_text()
    steps = re.split(r"^      - ", text.partition("    steps:\n")[2], flags=re.MULTILINE)[1:]
    (saved,) = (number for number, step in enumerate(steps) if "actions/cache/save@" in step)
    (checked,) = (number for number, step in enumerate(steps) if "ensio history check" in step)
    (added,) = (number for number, step in enumerate(steps) if "ensio history add" in step)
    assert added < saved < checked
    assert "if: always()" in steps[saved]
    assert not re.search(r"actions/cache@", text)
    restored = next(step for step in steps if "actions/cache/restore@" in step)
    keys = [re.search(r"^ +key: (.*)$", step, re.MULTILINE) for step in (restored, steps[saved])]
    assert keys[0] is not None
    assert keys[1] is not None
    assert keys[0][1] == keys[1][1]
