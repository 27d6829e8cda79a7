"""Phases of a run, as text and HTML: phases without data in one row, 80 columns, collective calls."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_runs import run_of

import ensembles as en
from ensembles.answers.phases import PhasesAnswer, without_data
from ensembles.cli.main import main
from ensembles.faces.html import answer_html
from ensembles.faces.text import answer_text
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.inner_waits import IdleTime
from ensembles.structure.phases.table import CriticalCall, PhaseTotals

IDLE = IdleTime(4, 4.0, 2.0, 0.125, 0, 0.0)
ALONE = replace(IDLE, tasks=1)
RUNS = Path(__file__).resolve().parents[2] / "corpus" / "runs"


def totals_of(number: int, written: int = 0, tasks: int = 4, name: str | None = None) -> PhaseTotals:
    last = CriticalCall("MPI_File_write_at_all", "mpiio", "/scratch/data.out", 1.0, 0.5)
    return PhaseTotals(
        number, name, tasks, 8, 0, written, float(number), number + 0.5, 0.5, 3, last, 0.25, 0.125
    )


@pytest.fixture(scope="module")
def btio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with tarfile.open(RUNS / "replay-btio.tar.xz") as archive:
        archive.extractall(folder)
    return folder / "replay-btio"


@pytest.fixture(scope="module")
def phases(btio: Path) -> Phases:
    found = en.open(btio).phases
    assert found is not None
    return found


def answer_of(found: Phases, totals: list[PhaseTotals], **more: Any) -> PhasesAnswer:
    return PhasesAnswer(found=found, phases=tuple(totals), **({"idle": IDLE} | more))


MADBENCH = [*map(totals_of, range(1, 6)), totals_of(6, 1 << 20), totals_of(7), totals_of(8, 1 << 20)]


def test_successive_phases_without_data_are_one_row(phases: Phases) -> None:
    (stretch,) = without_data(MADBENCH)
    assert (stretch["from"], stretch["to"], stretch["phases"], stretch["calls"]) == (1, 5, 5, 40)
    assert (stretch["start_s"], stretch["time_s"], stretch["lost_s"]) == (1.0, 2.5, 1.25)
    answer = answer_of(phases, MADBENCH)
    lines = str(answer).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("-----"))
    assert [line.split()[0] for line in lines[first + 1 : first + 5]] == ["1–5", "6", "7", "8"]
    assert lines[first + 1].endswith("no data")
    assert "more phases" not in "\n".join(lines)
    # Those with most idle time are shown.
    shown = answer_text(answer.parts, 2)
    assert "2 more phases: raise --limit to see them" in shown
    assert [line.split()[0] for line in shown.splitlines()[first + 1 : first + 3]] == ["1–5", "6"]
    crowded = "8 tasks share the 2 processors of n1"
    idle = f"{crowded}: a part of this is waiting for a processor."
    assert idle not in "\n".join(lines)
    with_crowd = replace(answer, crowded=crowded)
    assert idle in str(with_crowd)
    page = answer_html(with_crowd.parts, 2, "ensio phases")
    assert idle in page
    assert "2 more phases: ensio phases lists all." in page
    assert '<tr title="Rank 3 came last, with MPI_File_write_at_all (500 ms) on data.out."><td>6</td>' in page


def test_runs_without_any_data_and_named_phases_keep_their_rows() -> None:
    assert without_data(MADBENCH[:5]) == []
    assert without_data([replace(entry, name="S") for entry in MADBENCH]) == []


def test_short_phases_without_data_between_others_have_no_row(phases: Phases) -> None:
    totals = [
        entry
        for number in range(1, 13, 2)
        for entry in (
            totals_of(number, 1 << 20),
            replace(totals_of(number + 1), time_s=0.01, lost_s=0.0),
        )
    ]
    found = replace(phases, count=12)

    def rows(entries: list[PhaseTotals]) -> tuple[list[str], str]:
        text = str(answer_of(found, entries))
        lines = text.splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("-----")) + 1
        return [line.split()[0] for line in lines[first : lines.index("", first)]], text.replace("\n", " ")

    shown, text = rows(totals)
    assert shown == ["1", "3", "5", "7", "9", "11"]
    assert "6 phases without data, with 48 calls and 60.0 ms in all, have no row (--json has them)." in text
    assert "--limit" not in text
    # Those in which tasks are idle, and those that were chosen, keep their rows.
    assert len(rows([replace(entry, lost_s=0.25) for entry in totals])[0]) == 12
    assert len(rows(totals[:10])[0]) == 10


def test_a_long_last_call_is_shorter_and_the_numbers_are_not(phases: Phases) -> None:
    totals = [*MADBENCH, replace(totals_of(9, 1 << 20, tasks=1), bytes_read=1 << 20)]
    text = str(answer_of(phases, totals))
    assert max(map(len, text.splitlines())) <= 80
    assert "3 write_at_all" in text
    assert "…" not in text
    assert "1.00 MiB" in text
    assert "Most in phase 1, 250 ms: rank 3 came last, with MPI_File_write_at_all" in text.replace("\n", " ")


def test_where_not_even_ranks_fit_the_table_is_two(phases: Phases) -> None:
    """Phases of GCRM's kernel with 10,240 tasks: long names, and last calls with five digits of a rank."""
    last = CriticalCall("H5Fclose", "hdf5", "/scratch/gcrm.h5", 1.0, 0.5)
    name = "metadata-of-six-records"
    row = replace(totals_of(7, 98 << 30, 10240, name), calls=349438, bytes_read=153 << 20, last_call=last)
    row = replace(row, slowest_task=10238, lost_s=155000.0, start_s=1150.108)
    text = str(answer_of(phases, [row, replace(row, phase=8, tasks=1)]))
    assert max(map(len, text.splitlines())) <= 80
    tables = [line.split() for line in text.splitlines() if line.startswith("phase ")]
    assert len(tables) == 2
    assert all(
        told in text for told in (name, "349,438", "1150.108", "153 MiB", "98.0 GiB", "10238 H5Fclose")
    )
    assert "…" not in text


def test_what_matters_least_is_left_out_first(phases: Phases) -> None:
    def table_of(**changes) -> list[str]:
        row = replace(totals_of(7, 98 << 30, name="input"), bytes_read=98 << 30, **changes)
        lines = str(answer_of(phases, [row, replace(row, phase=8, tasks=1)], idle=ALONE)).splitlines()
        assert max(map(len, lines)) <= 80
        return [line for line in lines if line.startswith(("phase", "    7"))]

    last = CriticalCall("read", "posix", "/scratch/in", 1.0, 0.5)
    head, row = table_of(last_call=last, calls=8)
    assert " ".join(head.split()) == "phase name from (s) time tasks calls read written idle last"
    assert row.endswith("3 read")
    head, row = table_of(last_call=last, calls=1_234_567, start_s=1459.282, lost_s=1481.0)
    assert "tasks" not in head
    assert row.split()[-2:] == ["s", "3"]


def test_a_name_of_any_length_fits(phases: Phases) -> None:
    row = totals_of(7, 1 << 20, name="a/very-long-name-that-a-program-gave/" * 10 + "end")
    text = str(answer_of(phases, [row]))
    assert max(map(len, text.splitlines())) <= 80
    assert "/end " in text


def test_chosen_phases_are_not_folded_and_collective_calls_have_a_sentence(
    btio: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["phases", str(btio), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    collective = found["collective"]
    assert collective["time_s"] == pytest.approx(collective["storage_s"] + collective["above_storage_s"])
    assert main(["phases", str(btio)]) == 0
    text = capsys.readouterr().out.replace("\n", " ")
    assert "Collective I/O: some task was in a collective call for" in text
    assert f"({100 * collective['above_storage_share']:.0f} %) no task was in a storage call" in text
    assert main(["phases", str(btio), "--phase", "1-2", "--json"]) == 0
    chosen = json.loads(capsys.readouterr().out)
    assert (chosen["without_data"], chosen["collective"]) == ([], None)
    # Of the layers above alone, nothing is said of storage.
    assert main(["phases", str(btio), "--layer", "mpiio", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collective"] is None


def test_info_says_the_same_of_collective_calls(btio: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(btio), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["phases", str(btio), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collective"] == told["collective"]
    rows = {(row["layer"], row["op"], row["by"]): row for row in told["layer_traffic"]}
    assert rows["mpiio", "write", "posix"]["amplification"] == pytest.approx(1.0)
    assert main(["info", str(btio)]) == 0
    assert "collective I/O: some task was in a collective call" in capsys.readouterr().out


@pytest.mark.parametrize("with_messages", [False, True])
def test_the_layer_of_messages_is_not_advised_where_it_was_recorded(
    phases: Phases, with_messages: bool
) -> None:
    more = {"without_io": {"steps": 2, "time_s": 0.1}, "has_messages": with_messages}
    text = str(answer_of(phases, MADBENCH, **more)).replace("\n", " ")
    assert "2 steps between collective calls had no I/O" in text
    assert ("had no I/O and no messages" in text) == with_messages
    assert ("--layers default,mpimsg" in text) != with_messages


def test_named_phases_without_a_call_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the steps of the two-phase benchmark in which tasks only exchange messages."""
    run = str(tmp_path / "run")
    assert main(["simulate", "twophase", "--fs", "sdumont", "--seed", "1", "-o", run]) == 0
    capsys.readouterr()
    assert main(["phases", run]) == 0
    told = capsys.readouterr().out
    assert "No task made an I/O call in 4 phases: 1-ranges, 2-counts, 3-offsets, 4-data." in told
    assert main(["phases", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["phases_without_calls"] == [1, 2, 3, 4]


def test_the_help_names_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    told = " ".join(capsys.readouterr().out.split()).replace("- ", "-")  # lines are folded there too
    for model in (Path(__file__).parents[3] / "testbed" / "models").glob("*.toml"):
        assert f" {model.stem}," in told


def test_the_calls_of_ranks_include_waiting(
    btio: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = run_of(tmp_path / "alone", [[("pwrite", 0.1, 0.1, 1000)]])
    for path, waits in ((btio, True), (alone.path, False)):
        assert main(["ranks", str(path)]) == 0
        assert ("Calls that wait for other tasks are among" in capsys.readouterr().out) == waits
        assert main(["phases", str(path)]) == 0
        assert ("dle" in capsys.readouterr().out) == waits  # a single task waits for none
