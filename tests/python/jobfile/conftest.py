"""The coder, for all tests of job files. Property tests must not depend on how fast the machine is."""

import pytest
from coder import Coder
from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(scope="session")
def coder() -> Coder:
    return Coder()
