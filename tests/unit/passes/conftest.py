"""Tests of passes make each pass: nothing that an earlier test computed is taken."""

import pytest


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    """Switch the cache off, also for the programs that a test starts."""
    monkeypatch.setenv("ENSIO_CACHE", "0")


@pytest.fixture(autouse=True)
def with_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands start worker processes for short runs too."""
    monkeypatch.setattr("ensembles.passes.executors.LEAST_EVENTS", 0)
