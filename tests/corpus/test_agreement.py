"""The answers of several commands on one run agree."""

from __future__ import annotations

import pytest

from .agreement import AGREEMENTS, Agreement, printed
from .answers import ANSWERS, NotThereError
from .declared import RUNS, Declared
from .test_frozen import QUICK

CASES = [pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.slow) for one in RUNS]


@pytest.mark.parametrize("agree", AGREEMENTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("run", CASES)
def test_answers_on_one_run_agree(run: Declared, agree: Agreement) -> None:
    try:
        answers = ANSWERS.of(run)
    except NotThereError as error:
        pytest.skip(str(error))
    broken = list(agree(printed(run.name, answers)))
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
