"""What is answered from kept summaries is what a pass over the events gives: JSON and text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensembles.run import kept

from .answers import ANSWERS, Answer, NotThereError, executed
from .commands import lines_of
from .declared import RUNS, Declared
from .test_frozen import QUICK, in_thirds, marks_of

CASES = [pytest.param(one, id=one.name, marks=marks_of(one)) for one in RUNS]
OTHERS = ("events", "export", "collect", "report")


def lines(run: Declared, part: slice) -> list[str]:
    """Command lines that print an answer made of summaries, as JSON and, of some runs, as text."""
    found = [line for line in lines_of(run) if line.split()[0] not in OTHERS]
    found = [*found, f"sites {run.name} --json"][part]
    texts = [line.removesuffix(" --json") for line in found if "--op" not in line]
    return [*found, *texts] if run.name in QUICK else found


def answers(wanted: list[str]) -> dict[str, Answer]:
    """Execute command lines, each in turn."""
    return {line: executed(line.split(), ANSWERS.folder) for line in wanted}


def passes(found: dict[str, Answer]) -> int:
    """How many passes over events the answers took."""
    return sum(len(answer.passes) for answer in found.values())


@pytest.fixture
def keeping(monkeypatch, tmp_path):
    """Keep what is computed of any run, however small and new."""
    monkeypatch.setattr(kept, "LEAST_FILE_BYTES", 1)
    monkeypatch.setattr(kept, "SETTLED_NS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(("run", "part"), in_thirds())
def test_kept_answers_are_those_of_a_pass(run: Declared, part: slice, keeping) -> None:
    wanted = lines(run, part)
    try:
        expected = {line: ANSWERS.answer(line) for line in wanted}  # without what is kept
    except NotThereError as error:
        pytest.skip(str(error))
    fresh = passes(expected)
    json_lines = [line for line in wanted if line.endswith(" --json")]  # these make what texts are made of
    first = answers(json_lines)
    assert first == {line: expected[line] for line in json_lines}
    assert passes(first) <= passes({line: expected[line] for line in json_lines})
    again = answers(wanted)
    assert again == expected
    may_record = not ANSWERS.opened(run.name).reading.is_final
    assert passes(again) == fresh if may_record else passes(again) <= 1 + fresh / 4


@pytest.mark.parametrize("run", CASES)
def test_collected_runs_keep_what_info_says(run: Declared, keeping, monkeypatch) -> None:
    try:
        source = ANSWERS.place(run.name)
    except NotThereError as error:
        pytest.skip(str(error))
    if not os.path.isdir(source):
        return
    name = f"kept-{run.name}.h5"
    made = executed(["collect", run.name, "-o", name], ANSWERS.folder)
    path = Path(ANSWERS.folder, name)
    try:
        wanted = [f"info {name} --json", f"info {name}"]
        found = answers(wanted)
        known = [names for answer in found.values() for names in answer.passes if "table" in names]
        monkeypatch.setenv("ENSIO_CACHE", "0")
        assert answers(wanted) == found
        assert made.exit != 0 or not known
    finally:
        path.unlink(missing_ok=True)
