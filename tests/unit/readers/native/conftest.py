"""The coder, for all tests of job files."""

import pytest
from coder import Coder


@pytest.fixture(scope="session")
def coder() -> Coder:
    return Coder()
