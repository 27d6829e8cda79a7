"""Every answer on the corpus is the frozen one, to rounding; what must hold of all does; they agree."""

from __future__ import annotations

import pytest

from . import freeze, frozen
from .agreement import AGREEMENTS, Agreement, printed
from .answers import ANSWERS, NotThereError
from .declared import RUNS, SEVERAL, Declared, Several
from .invariants import INVARIANTS, Invariant
from .making.pack import HELD, MACHINE, contents_of

ASKED = (*RUNS, *SEVERAL)
FIRST_OF_TAG = {tag: run.name for run in reversed(RUNS) for tag in run.tags}
QUICK = {*FIRST_OF_TAG.values(), *(several.name for several in SEVERAL)}
"""What ``./dev test --quick`` runs: together these are asked every command."""
_FORMS = (
    "replay-collected replay-profile replay-tail killed dropped overlap-aio no-call one-call forty-calls "
    "otf2-of-others dftracer-4.3.0 dxt counters dlio bufwr-1 clustered-slow"
)
EVERY_FORM = QUICK | set(_FORMS.split())
"""What ``./dev test`` asks several times over, from kept summaries and with filters: every form of a run."""


def marks_of(run: Declared) -> pytest.MarkDecorator | tuple[()]:
    """Where a test that asks a run several times over runs: other runs are left to ``./dev test-long``."""
    return () if run.name in QUICK else pytest.mark.slow if run.name in EVERY_FORM else pytest.mark.long


CASES = [pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.slow) for one in ASKED]
SHOWN = 40
MOST_BYTES, MOST_BYTES_OF_ALL = 1 << 20, 8 << 20


def _answers_of(asked: Declared | Several):
    try:
        return ANSWERS.of(asked)
    except NotThereError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("asked", CASES)
def test_answers_are_the_frozen_ones(asked: Declared | Several) -> None:
    before = frozen.read(asked.name)
    assert before, f"{asked.name} was never frozen: python -m tests.corpus.freeze {asked.name}"
    after = {line: frozen.condensed(answer) for line, answer in _answers_of(asked).items()}
    found = frozen.differences(asked.name, before, after)
    if found:
        rows = "\n".join(map(str, found[:SHOWN]))
        more = f"\nand {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        pytest.fail(
            f"{len(found)} differences (run | command | place: before -> after)\n{rows}{more}", pytrace=False
        )


@pytest.mark.parametrize("holds", INVARIANTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("asked", CASES)
def test_what_must_hold_of_every_answer(asked: Declared | Several, holds: Invariant) -> None:
    answers = _answers_of(asked).items()
    broken = [f"{line}: {sentence}" for line, answer in answers for sentence in holds(asked, line, answer)]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("agree", AGREEMENTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("run", CASES[: len(RUNS)])
def test_answers_on_one_run_agree(run: Declared, agree: Agreement) -> None:
    broken = list(agree(printed(run.name, _answers_of(run))))
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("agree", AGREEMENTS, ids=lambda one: one.__name__)
def test_each_agreement_sees_answers(agree: Agreement) -> None:
    """An agreement that no longer finds its keys would hold of everything."""
    answers = printed(
        "replay-madbench", ANSWERS.of(next(run for run in RUNS if run.name == "replay-madbench"))
    )
    asked: set[str] = set()

    class Watched(dict):
        def get(self, key, default=None):
            asked.add(key)
            return super().get(key, default)

        def items(self):
            asked.update(self)
            return super().items()

    list(agree(Watched(answers)))
    assert asked & set(answers)


@pytest.mark.parametrize("command", ["info", "rate", "ordinals"])
def test_worker_processes_give_the_frozen_answers(command: str) -> None:
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


def test_freezing_says_what_changed_and_takes_only_what_it_may(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(frozen, "FOLDER", tmp_path)
    monkeypatch.setattr(freeze, "write_table", lambda: None)
    assert freeze.main(["one-call"]) == 0
    assert "one-call: new, 15 commands" in capsys.readouterr().out
    assert freeze.main(["one-call"]) == 0
    assert "nothing changed" in capsys.readouterr().out
    kept = frozen.read("one-call")
    kept["info one-call --json"]["out"]["span_s"] *= 2
    kept["tail one-call --json"]["out"]["refused"] = "as it was said before"
    frozen.write("one-call", kept)
    assert freeze.main(["one-call", "--only", "words"]) == 1
    told = capsys.readouterr().out
    assert "1 number, 1 words" in told
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


def test_a_changed_number_word_or_key_is_a_difference() -> None:
    before = {
        "tail r": {"exit": 0, "out": {"n": 4, "median_s": 1.0, "note": "one two", "modes": [1.5], "of": None}}
    }

    def kinds(**changed: object) -> list[str]:
        after = {"tail r": {"exit": 0, "out": before["tail r"]["out"] | changed}}
        return [difference.kind for difference in frozen.differences("r", before, after)]

    assert kinds() == kinds(median_s=1.0 + 1e-9) == []
    assert kinds(n=5) == kinds(median_s=1.00001) == kinds(modes=[1.6]) == ["number"]
    assert kinds(note="one three") == ["words"]
    assert kinds(of=0.5) == ["value"]
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
