"""What the tests of the corpus share."""

import os

import pytest

from .answers import ANSWERS


@pytest.fixture(scope="session", autouse=True)
def answers_of_the_session(tmp_path_factory):
    """Processes of one session compute each answer once: they find each other's in its temporary folder."""
    base = tmp_path_factory.getbasetemp()
    ANSWERS.shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "answers"
    yield
    ANSWERS.shared = None
