"""The programs that measure how often the statistics are right still run."""

import importlib

import pytest

from calibration.__main__ import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_calibration_is_there(name: str) -> None:
    assert callable(importlib.import_module(f"calibration.{name}").main)
