"""Numbers that a page writes in the browser have the form of those that Python writes."""

from __future__ import annotations

import importlib.util
import json

import pytest

if importlib.util.find_spec("playwright") is None:
    pytest.skip("playwright is not installed: no browser is tried", allow_module_level=True)

from browser import chromium, new_context

from ensembles.model.units import bytes_text, seconds_text
from ensembles.viz.common.style import NUMBERS_JS

TIMES_S = [
    0,
    4.2e-10,
    9.994e-7,
    9.996e-7,
    1.74e-3,
    1.799e-3,
    0.1,
    0.99949,
    0.9996,
    1,
    12.04,
    99.96,
    119.6,
    121,
    3599,
    7384,
    1e5,
]
SIZES = [0, 1, 1023, 1024, 1536, 10 * 1024, 102_399, 1_048_570, 1 << 20, 5 << 30, 3 << 50]


@pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH: pages are not tried")
def test_times_and_sizes_are_written_as_in_python() -> None:
    program = f"""(() => {{
        {NUMBERS_JS}
        const [times, sizes] = {json.dumps([TIMES_S, SIZES])};
        const moments = [1.74e-3, 1.799e-3, 107.1204, 0, 5e-8, 1234.5];
        return [times.map(time_text), sizes.map(bytes_text), moments.map(moment_text)];
    }})()"""
    with new_context() as context:
        times, sizes, moments = context.new_page().evaluate(program)
    assert times == [seconds_text(each) for each in TIMES_S]
    assert sizes == [bytes_text(each) for each in SIZES]
    assert moments == ["1.740 ms", "1.799 ms", "107.120 s", "0 ns", "50 ns", "1,234.500 s"]
