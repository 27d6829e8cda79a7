"""A program is recorded, collected and analysed by the commands that a user types first."""

import json
from collections import Counter

import pytest
from commands_here import executed

pytestmark = pytest.mark.quick
ROUNDS = 2000


@pytest.fixture
def ensio(recorder, tmp_path):
    """A program that was recorded, and a function that runs ``ensio`` and returns its JSON."""
    program = recorder.build("mixture")
    recorder.execute(program, tmp_path, ROUNDS, check=True)

    def ask(*words):
        done = executed(*words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return ask


def test_recorded_collected_and_analysed(ensio, recorder, tmp_path):
    info = ensio("info", recorder.run, "--json")
    stream = sum(i % 13 for i in range(ROUNDS))
    written = sum(512 if i % 4 == 0 else i * 7919 % 3000 for i in range(ROUNDS))
    counts = {call: row["count"] for call, row in info["calls"].items()}
    assert counts["pwrite"] == counts["fwrite"] == ROUNDS
    assert counts["lseek"] == len(range(0, ROUNDS, 5))
    assert info["calls"]["write"]["errors"] == len(range(0, ROUNDS, 11))
    assert info["bytes_written"] == written + stream

    trace = tmp_path / "trace.h5"
    ensio("collect", recorder.run, "-o", trace)
    assert ensio("info", trace, "--json")["calls"] == info["calls"]
    # Sizes are analysed apart: by default the class that took the most time.
    apart = ensio("modes", trace, "--call", "pwrite", "--json")
    sizes = [512 if i % 4 == 0 else i * 7919 % 3000 for i in range(ROUNDS)]
    assert apart["n"] in Counter(size.bit_length() for size in sizes).values()
    all_sizes = ("--call", "pwrite", "--size", "0..3000")
    modes = ensio("modes", trace, *all_sizes, "--json")
    assert modes["n"] == ROUNDS
    assert 0 < sum(mode["weight"] for mode in modes["modes"]) <= 1 + 1e-9
    tail = ensio("tail", trace, *all_sizes, "--tasks", 1, "--json")
    assert tail["n"] == ROUNDS
    assert tail["refused"] or tail["low_s"] <= tail["median_s"] <= tail["high_s"]
    assert f"{ROUNDS:,}" in ensio("info", recorder.run)
