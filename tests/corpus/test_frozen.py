"""Every answer on the corpus is the frozen one, to rounding; what must hold of all does; they agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import freeze, frozen
from .agreement import AGREEMENTS, Answers, printed
from .answers import ANSWERS, Answer, NotThereError
from .declared import RUNS, SEVERAL, Declared, Several
from .invariants import INVARIANTS
from .making.pack import HELD, MACHINE, contents_of

ASKED = (*RUNS, *SEVERAL)
FIRST_OF_TAG = {tag: run.name for run in reversed(RUNS) for tag in run.tags}
QUICK = {*FIRST_OF_TAG.values(), *(several.name for several in SEVERAL)}
"""What ``./dev test --quick`` runs: together these are asked every command."""
_FORMS = (
    "replay-collected replay-profile replay-tail killed dropped overlap-aio no-call one-call forty-calls "
    "otf2-of-others dftracer-4.3.0 dxt dxt-ior counters counters-no-posix dlio bufwr-1 clustered-slow"
)
EVERY_FORM = QUICK | set(_FORMS.split())
"""What ``./dev test`` asks: every form of a run, every command. ``./dev test-long`` asks all runs."""
_LENGTHY = (
    "sim-healthy-1 sim-ior-1024 vpic dlio bufwr-1 forty-calls "
    "overlap-aio dxt counters clustered-slow"  # as flights-ompio, dxt-ior, counters-no-posix and replay-ior-8
)
LENGTHY = set(_LENGTHY.split())
"""Runs that take long and have the form of shorter ones: ``./dev test`` asks them once only."""


def mark_of(asked: Declared | Several) -> pytest.MarkDecorator | tuple[()]:
    """Which of the commands of ``./dev`` asks a run."""
    return () if asked.name in QUICK else pytest.mark.slow if asked.name in EVERY_FORM else pytest.mark.long


def marks_of(run: Declared) -> pytest.MarkDecorator | tuple[()]:
    """Which does where a test asks a run several times over."""
    return pytest.mark.long if run.name in LENGTHY else mark_of(run)


def in_thirds() -> list:
    """Runs with the slices of a list of commands: a third for ``./dev test``, by turns, and all of them."""
    thirds = [
        (one, slice(turn % 3, None, 3)) for turn, one in enumerate(run for run in RUNS if not is_long(run))
    ]
    found = [pytest.param(one, part, id=one.name, marks=marks_of(one)) for one, part in thirds]
    every = slice(None)
    return [*found, *(pytest.param(one, every, id=f"{one.name}-all", marks=pytest.mark.long) for one in RUNS)]


def is_long(run: Declared) -> bool:
    """Whether only ``./dev test-long`` asks a run several times over."""
    return marks_of(run) == pytest.mark.long


CASES = [pytest.param(one, id=one.name, marks=mark_of(one)) for one in ASKED]
SHOWN = 40
MOST_BYTES, MOST_BYTES_OF_ALL = 1 << 20, 8 << 20


def violations(asked: Declared | Several, answers: dict[str, Answer]) -> Iterator[str]:
    """What must hold of every answer, and between those on one run, and does not."""
    for line, answer in answers.items():
        for holds in INVARIANTS:
            for sentence in holds(asked, line, answer):
                yield f"{asked.name} | {line} | {holds.__name__}: {sentence}"
    for agree in AGREEMENTS if isinstance(asked, Declared) else ():
        for sentence in agree(printed(asked.name, answers)):
            yield f"{asked.name} | {agree.__name__}: {sentence}"


@pytest.mark.parametrize("asked", CASES)
def test_answers_are_the_frozen_ones_and_hold_what_all_must(asked: Declared | Several) -> None:
    before = frozen.read(asked.name)
    assert before, f"{asked.name} was never frozen: python -m tests.corpus.freeze {asked.name}"
    try:
        answers = ANSWERS.of(asked)
    except NotThereError as error:
        pytest.skip(str(error))
    after = {line: frozen.condensed(answer) for line, answer in answers.items()}
    found = [*map(str, frozen.differences(asked.name, before, after)), *violations(asked, answers)]
    if found:
        rows = "\n".join(found[:SHOWN])
        more = f"\nand {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        pytest.fail(
            f"{len(found)} differences (run | command | place: before -> after)\n{rows}{more}", pytrace=False
        )


class Watched(dict):
    """Answers that remember which of them were asked for."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers)
        self.asked: set[str] = set()

    def get(self, key: str, default: object = None) -> object:
        """Remember the key."""
        self.asked.add(key)
        return super().get(key, default)

    def items(self):
        """Remember all keys."""
        self.asked.update(self)
        return super().items()


def test_each_agreement_sees_answers() -> None:
    """An agreement that no longer finds its keys would hold of everything."""
    run = next(run for run in RUNS if run.name == "replay-madbench")
    answers = printed(run.name, ANSWERS.of(run))
    for agree in AGREEMENTS:
        watched = Watched(answers)
        list(agree(watched))
        assert watched.asked & set(answers), agree.__name__


@pytest.mark.parametrize("command", ["info", "rate", "ordinals"])
def test_worker_processes_give_the_frozen_answers(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensembles.passes.executors.LEAST_EVENTS", 0)
    line = f"{command} replay-ior-64 --json"
    before = frozen.read("replay-ior-64")[line]
    after = frozen.condensed(ANSWERS.answer(f"{line} --workers 2"))
    assert frozen.differences("replay-ior-64", {line: before}, {line: after}) == []


def test_each_frozen_file_belongs_to_a_declared_run() -> None:
    assert {path.stem for path in frozen.FOLDER.iterdir()} == {asked.name for asked in ASKED}


def test_the_page_lists_what_is_declared() -> None:
    assert freeze.table_text() in freeze.README.read_text(), (
        "python -m tests.corpus.freeze writes the table anew"
    )


def test_held_runs_name_no_machine_and_are_small() -> None:
    whole = 0
    for path in [*HELD.iterdir(), *frozen.FOLDER.iterdir()]:
        whole += path.stat().st_size
        assert path.stat().st_size <= MOST_BYTES, path
        contents = contents_of(path) if path.suffix == ".xz" else {path.name: path.read_bytes()}
        for name, content in contents.items():
            found = MACHINE.search(content)
            assert found is None, f"{path.name}: {name} names {found.group().decode()}…"
    assert whole <= MOST_BYTES_OF_ALL


def test_freezing_says_what_changed(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(frozen, "FOLDER", tmp_path)
    monkeypatch.setattr(freeze, "write_table", lambda: None)
    assert freeze.main(["one-call"]) == 0
    assert "one-call: new, 15 commands" in capsys.readouterr().out
    assert freeze.main(["one-call"]) == 0
    assert "nothing changed" in capsys.readouterr().out
    kept = frozen.read("one-call")
    kept["info one-call --json"]["out"]["span_s"] *= 2
    kept["tail one-call --json"]["out"]["refused"] = None
    frozen.write("one-call", kept)
    assert freeze.main(["one-call", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "1 number, 1 value" in told
    assert "$.out.span_s: 3.5392e-05 -> 1.7696e-05  (-0.5)" in told
    assert frozen.read("one-call") == kept
    assert freeze.main(["one-call"]) == 0
    assert frozen.read("one-call") != kept


def test_what_is_not_compared_is_there() -> None:
    kept = {line: answer for asked in ASKED for line, answer in frozen.read(asked.name).items()}
    for line, place in frozen.UNSTEADY:
        value = kept[line]
        for key in place.split(".")[1:]:
            value = value[key]


def test_a_changed_number_value_or_key_is_a_difference() -> None:
    before = {
        "tail r": {"exit": 0, "out": {"n": 4, "median_s": 1.0, "call": "write", "modes": [1.5], "of": None}}
    }

    def kinds(**changed: object) -> list[str]:
        after = {"tail r": {"exit": 0, "out": before["tail r"]["out"] | changed}}
        return [difference.kind for difference in frozen.differences("r", before, after)]

    assert kinds() == kinds(median_s=1.0 + 1e-9) == []
    assert kinds(n=5) == kinds(median_s=1.00001) == kinds(modes=[1.6]) == ["number"]
    assert kinds(call="read") == kinds(of=0.5) == ["value"]
    assert kinds(more=1) == kinds(modes=[1.5, 2.5]) == ["shape"]
    assert [difference.kind for difference in frozen.differences("r", before, {})] == ["shape"]


def test_changes_within_long_lists_are_seen() -> None:
    values = [float(number) for number in range(100)]
    rows = [{"t_s": value, "call": "write"} for value in values]
    short = frozen._short(rows)
    for place, changed in ((50, {"t_s": 50.001}), (7, {"call": "read"}), (3, {"t_s": None})):
        other = [row | changed if number == place else row for number, row in enumerate(rows)]
        assert frozen.differences("r", {"l": short}, {"l": frozen._short(other)})
    exchanged = [rows[1], rows[0], *rows[2:]]
    assert frozen.differences("r", {"l": short}, {"l": frozen._short(exchanged)})
