"""The commands of TAPIOCA's model on docs/reference/simulation.md print what the page shows."""

import json
import re
import subprocess
import sys

import pytest
from places import PATIENCE_S, ROOT

from testbed.tapioca.machine_files import read_machine

PAGE = ROOT / "docs" / "reference" / "simulation.md"
SHOWN = re.findall(
    r"^    \$ python (-m testbed\.tapioca .*)\n((?:    .*\n)*)", PAGE.read_text(), re.MULTILINE
)


def started(words: str, folder) -> subprocess.CompletedProcess:
    command = [sys.executable, *words.split()]
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=PATIENCE_S
    )


@pytest.fixture
def folder(tmp_path):
    """An empty folder but for the machine of the page."""
    (own,) = re.findall(r"\n\n(    title = .*\n(?:.*\n)*?)(?=\S)", PAGE.read_text())
    (tmp_path / "own.toml").write_text(re.sub("^    ", "", own, flags=re.MULTILINE))
    return tmp_path


def test_there_are_commands():
    assert len(SHOWN) == 4


@pytest.mark.parametrize(("words", "output"), SHOWN)
def test_a_command_prints_what_the_page_shows(folder, words, output):
    done = started(words, folder)
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        line[4:].rstrip() for line in output.splitlines()
    ]


def test_the_table_of_agreement_has_the_numbers_of_the_model(folder):
    (rows,) = re.findall(r"### What agrees with the paper\n\n((?:\|.*\n)*)", PAGE.read_text())
    model = [row.split("|")[3].strip() for row in rows.splitlines()[2:]]
    table = json.loads(started("-m testbed.tapioca table --json", folder).stdout)
    rates = {row["buffer : stripe"]: f"{row['simulated GB/s']:.2f}" for row in table}
    assert model[0] == ", ".join(rates[ratio] for ratio in ("1 : 8", "1 : 1"))
    assert model[1] == ", ".join(rates[ratio] for ratio in ("1 : 4", "1 : 2", "2 : 1", "4 : 1"))
    sweep = json.loads(started("-m testbed.tapioca sweep mira --json", folder).stdout)
    shares = [int(row["of peak"].rstrip("%")) for row in sweep]
    assert model[2] == f"{min(shares)} to {max(shares)} %"
    aos = [row["gain"] for row in sweep if row["case"].endswith("AOS")]
    assert model[4] == f"{min(aos)} to {max(aos)} ×"
    gains = [row["gain"] for row in json.loads(started("-m testbed.tapioca gains --json", folder).stdout)]
    assert [model[3], *model[5:8], model[9]] == [f"{gains[place]:.1f} ×" for place in (0, 3, 5, 4, 1)]


def test_one_target_of_theta_is_as_fast_as_the_paper_measures():
    """Predicted from the rates with 48 targets: 10 GB/s for writes, 36 GB/s for reads."""
    (row,) = re.findall(r"^\| IOR on one target.*$", PAGE.read_text(), re.MULTILINE)
    storage = read_machine("theta").storage
    writes, reads = storage.target_bytes_per_s, storage.target_bytes_per_s * storage.read_factor
    assert row.split("|")[3].strip() == f"{writes / 1e6:.0f}, {reads / 1e6:.0f}"
    assert [writes, reads] == pytest.approx([200e6, 800e6], rel=0.1)


def test_what_cannot_be_simulated_is_said_in_one_line(folder):
    done = started(
        "-m testbed.tapioca run --machine own.toml --tasks 64 --bytes 1MiB --aggregators 4 --buffer 1MiB",
        folder,
    )
    assert done.returncode == 2
    assert done.stderr == "tapioca: 64 tasks need 16 nodes of 4 tasks; the topology has 8\n"
    (folder / "own.toml").write_text("tasks_per_node = 0\n")
    done = started(
        "-m testbed.tapioca run --machine own.toml --tasks 4 --bytes 4 --aggregators 1 --buffer 4", folder
    )
    assert done.returncode == 2
    assert done.stderr == "tapioca: own.toml: [machine] tasks_per_node: a number above 0\n"


def test_the_example_of_the_readme_runs(folder):
    readme = (ROOT / "testbed" / "tapioca" / "README.md").read_text()
    (code,) = re.findall(r"\n\n((?:    .*\n|\n(?=    ))+)", readme)
    (folder / "example.py").write_text(re.sub("^    ", "", code, flags=re.MULTILINE))
    done = started("example.py", folder)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(12, rel=0.3)  # the paper's factor on Mira
