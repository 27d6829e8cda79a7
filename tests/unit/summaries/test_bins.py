"""The bin law in Python: against its definition in words, and against the C header."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from ensembles.summaries.bins import BIN_COUNT, RELATIVE_WIDTH, bin_edges_s, bin_index, bin_low_ns

INTERESTING = sorted(
    value + step
    for value in (0, *(2**k for k in range(64)), 2**64 - 1)
    for step in (-1, 0, 1)
    if 0 <= value + step < 2**64
)


def test_durations_below_32_ns_have_bins_of_their_own() -> None:
    assert bin_index(np.arange(64)).tolist() == list(range(64))


def test_bins_tile_the_axis_and_are_never_wider_than_a_32nd_of_their_lower_edge() -> None:
    low = [int(value) for value in bin_low_ns()] + [2**64]
    assert low[0] == 0
    for number in range(BIN_COUNT):
        width = low[number + 1] - low[number]
        assert width >= 1
        assert width == 1 or width <= low[number] * RELATIVE_WIDTH


def test_first_and_last_value_of_every_bin_belong_to_it() -> None:
    low = bin_low_ns()
    last = np.append(low[1:] - np.uint64(1), np.uint64(2**64 - 1))
    assert (bin_index(low) == np.arange(BIN_COUNT)).all()
    assert (bin_index(last) == np.arange(BIN_COUNT)).all()


def test_edges_in_seconds_are_those_in_nanoseconds() -> None:
    edges = bin_edges_s()
    assert edges.shape == (BIN_COUNT + 1,)
    np.testing.assert_allclose(edges[:-1], bin_low_ns() * 1e-9, rtol=1e-15)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) to compile bins.h with")
def test_python_and_c_agree_on_every_power_of_two_and_its_neighbours(tmp_path) -> None:
    values = ", ".join(f"{value}ULL" for value in INTERESTING)
    source = tmp_path / "law.c"
    source.write_text(
        "#include <stdio.h>\n#include <ensio/bins.h>\n"
        f"static const uint64_t values[] = {{{values}}};\n"
        "int main(void) {\n"
        "  for (unsigned i = 0; i < sizeof values / sizeof *values; i++)\n"
        '    printf("%u %llu\\n", ensio_bin(values[i]), 0ULL + ensio_bin_low(ensio_bin(values[i])));\n'
        "}\n"
    )
    include = tmp_path / "include" / "ensio"
    include.mkdir(parents=True)
    (include / "bins.h").write_text(files("ensembles.headers").joinpath("bins.h").read_text())
    subprocess.run(["cc", f"-I{tmp_path / 'include'}", "-o", tmp_path / "law", source], check=True)
    printed = subprocess.run([tmp_path / "law"], check=True, capture_output=True, text=True).stdout
    found = np.array(re.findall(r"(\d+) (\d+)", printed), dtype=np.uint64)
    bins = bin_index(np.array(INTERESTING, dtype=np.uint64))
    np.testing.assert_array_equal(found[:, 0], bins)
    np.testing.assert_array_equal(found[:, 1], bin_low_ns()[bins])
