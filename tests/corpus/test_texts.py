"""Text, JSON, Python and report give the same numbers."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path

import pytest

from ensembles.model.holds import Holds

from .answers import ANSWERS, NotThereError
from .declared import RUNS, SEVERAL, Declared
from .invariants import sentences_have_no_internal_values
from .numbers import Known, numbers_in
from .test_frozen import EVERY_FORM, FIRST_OF_TAG, marks_of

TEXTS: dict[str, tuple[str, ...]] = {
    "info": (),
    "phases": (),
    "ordinals": (),
    "rate": ("8 calls", "1 % of the bytes", "1 burst"),  # what makes plateaus and bursts
    "files": (),
    "ranks": (),
    "requests": (),
    "pattern": (),
    "diagnose": (),
    "modes": ("p < 1e-6", "9 %"),  # the least p-value that is printed, and the width of a bin of pictures
    "tail": (),
    "split": (),
    "sites": (),
}
"""Commands whose texts have the numbers of their JSON, and constants that their texts state besides."""

CASES = [pytest.param(one, id=one.name, marks=marks_of(one)) for one in RUNS if "large" not in one.tags]


AXIS = re.compile(r"^(?:[ \d+]+\n)?.*\n(?=  Number of calls by )", re.M)
"""Below a histogram are the numbers of modes, and round durations."""


def _answers(line: str):
    try:
        return ANSWERS.answer(f"{line} --json"), ANSWERS.answer(line)
    except NotThereError as error:
        pytest.skip(str(error))


def _sums(command: str, out: dict) -> list[str]:
    """What a text computes: calls without names, bytes read inside, factors of widths, shares of I/O."""
    covered = out.get("covered") if command == "pattern" else None
    inside = out.get("read_inside") if command == "info" else None
    calls = [f"{sum(one['count'] for one in covered['others'][6:])} calls"] if covered else []
    wide = [str(math.exp(mode["width"])) for mode in out["modes"]] if command == "modes" else []
    account = (out.get("account") or {}) if command == "diagnose" else {}
    times_s = [entry["time_s"] for entry in account.get("entries", ())]
    for principles in ({"rate"}, {"undecided"}, {"rate", "undecided"}):
        parts = [entry["time_s"] for entry in account.get("entries", ()) if entry["principle"] in principles]
        times_s.append(sum(parts))
    shares = [time_s / account["io_s"] for time_s in times_s if account.get("io_s")]
    shares += [1 - share for share in shares[-1:]] + [account["io_s"] / account["run_s"] for _ in shares[:1]]
    of_io = [f"{100 * share:.9f} %" for share in shares]
    return calls + ([f"{sum(inside.values())} B"] if inside else []) + wide + of_io


def missing_numbers(run: Declared, command: str) -> list[str]:
    """Numbers of the text of a command that its JSON has not."""
    told, text = _answers(f"{command} {run.name}")
    assert (text.exit, text.messages) == (told.exit, told.messages), command
    if told.exit == 2:
        return []
    broken = list(sentences_have_no_internal_values(run, command, text))
    assert not broken, (command, broken)
    known = Known(told.out, *told.messages, *TEXTS[command], *_sums(command, told.out))
    # Both ends of an interval of shares have the unit of the share before it.
    shown = re.sub(r"% \((\d+\.\d) – (\d+\.\d)\)", r"% (\1 % – \2 %)", AXIS.sub("", text.out))
    return [number.text for number in numbers_in(shown) if not known.has(number)]


@pytest.mark.parametrize("run", CASES)
def test_every_number_of_a_text_is_in_its_json(run: Declared) -> None:
    missing = {command: found for command in TEXTS if (found := missing_numbers(run, command))}
    assert not missing, "\n".join(
        f"{found} in\n{_answers(f'{line} {run.name}')[1].out}" for line, found in missing.items()
    )


COMPARED = {
    several.name: lines
    for several in SEVERAL
    if (lines := [line for line in several.lines if line.startswith("compare ")])
}


def _too_wide(text: str) -> list[str]:
    """Return the lines of more than 80 columns, but for those that are as long by the paths in them."""
    path = re.compile(r"\S*/(?!s\b)\S+")  # MiB/s is none
    wide = [line for line in text.splitlines() if len(line) > 80]
    return [line for line in wide if not path.search(line) or len(path.sub("", line)) > 80]


@pytest.mark.parametrize("several", COMPARED)
def test_every_number_of_a_comparison_is_in_its_json_and_lines_have_80_columns(several: str) -> None:
    for line in COMPARED[several]:
        told, text = _answers(line.removesuffix(" --json"))
        assert (text.exit, text.messages) == (told.exit, told.messages), line
        known = Known(told.out, *told.messages, "p < 1e-6")
        missing = [number.text for number in numbers_in(text.out) if not known.has(number)]
        assert told.exit == 2 or not missing, f"{line}: {missing} in\n{text.out}"
        assert not _too_wide(text.out), line


TABLES = (*TEXTS, "modes --per-byte", "events", "events --slowest 20", "fingerprint", "files --by bytes")
"""Commands that print tables of a run."""

OF_ALL = {run.name for run in RUNS}


@pytest.mark.parametrize("names", [None, pytest.param(OF_ALL, marks=pytest.mark.long)], ids=["third", "all"])
@pytest.mark.parametrize("command", TABLES)
def test_lines_have_at_most_80_columns(command: str, names: set[str] | None) -> None:
    """``./dev test`` takes a third of the forms of a run for each command, by turns."""
    names = names or set(sorted(EVERY_FORM)[TABLES.index(command) % 3 :: 3])
    wide = {}
    for run in RUNS:
        if run.name not in names or (
            "large" in run.tags and command not in ("info", "phases", "files", "ranks")
        ):
            continue
        with contextlib.suppress(NotThereError):
            answer = ANSWERS.answer(
                f"{command.partition(' ')[0]} {run.name} {command.partition(' ')[2]}".strip()
            )
            wide[run.name] = answer.exit != 2 and _too_wide(answer.out)
    assert len(wide) > len(names) / 2
    assert not any(wide.values()), {name: lines for name, lines in wide.items() if lines}


def test_lines_of_the_list_of_scenarios_have_at_most_80_columns() -> None:
    assert not _too_wide(_answers("scenarios list")[1].out)


def test_numbers_are_found_and_compared() -> None:
    text = "4 tasks, 1,024 calls: 64.0 MiB in 2 min 03 s, 12.5 % (1.50 GiB/s), MPI_File_write_at 3 of 0-7"
    assert [round(told.value, 3) for told in numbers_in(text)] == [123, 4, 1024, 2**26, 0.125, 1610612736, 3]
    known = Known({"tasks": 4, "share": 0.1249, "s": 1.2344, "rows": [{"b": 64.02 * 2**20}]})
    assert all(map(known.has, numbers_in("4 tasks, 12.5 %, 1.23 s, 64.0 MiB")))
    assert not any(map(known.has, numbers_in("5 tasks, 12.6 %, 1.24 s, 64.1 MiB")))


FIRST = sorted({FIRST_OF_TAG[tag] for tag in ("whole", "structure", "layers", "report")})


@pytest.mark.parametrize("name", FIRST)
def test_python_gives_what_the_json_says(name: str) -> None:
    run = ANSWERS.opened(name)
    from ensembles.run.information import collect_information

    info = json.loads(json.dumps(collect_information(run)))
    told = dict(ANSWERS.answer(f"info {name} --json").out)
    assert info.pop("run").endswith(told.pop("run"))
    assert info == told
    if run.info.has(Holds.ALL_CALLS):
        files, ranks = run.by_file(), run.by_rank()
        assert [row.to_json() for row in files] == ANSWERS.answer(f"files {name} --json").out["files"]
        assert [row.to_json() for row in ranks] == ANSWERS.answer(f"ranks {name} --json").out["ranks"]
        slowest = run.events.slowest(5)
        rows = ANSWERS.answer(f"events {name} --slowest 5 --format jsonl").out
        assert [row["duration"] for row in rows] == slowest.duration.tolist()
        assert [row["start"] for row in rows] == slowest.start.tolist()


@pytest.mark.parametrize("name", [run.name for run in RUNS if "report" in run.tags])
def test_the_report_holds_what_info_says(name: str, tmp_path: Path) -> None:
    from ensembles.viz.report.page import write_report

    run = ANSWERS.opened(name)
    write_report(run, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text().replace("\xa0", " ")
    embedded = json.loads(re.search(r'(?s)id="ensio-info">(.*?)</script>', page)[1])
    told = dict(ANSWERS.answer(f"info {name} --json").out)
    assert embedded.pop("run").endswith(told.pop("run"))
    assert embedded == told
    known = Known(told)
    shown = re.sub(r"<[^>]*>", " ", page.partition('<div class="facts">')[2].partition("<section")[0])
    missing = [number.text for number in numbers_in(shown) if not known.has(number)]
    assert "written" in shown
    assert not missing, missing
