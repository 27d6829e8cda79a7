"""The layout parsed from the headers: against the C compiler, and with headers that make no sense."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from project import ROOT

from ensembles.model import c_layout
from ensembles.model.errors import EnsioError

HEADERS = ROOT / "libtrace" / "include"
STRUCTURES = (c_layout.EVENT, c_layout.SPOOL, c_layout.WINDOW, c_layout.TEXT)


def members(dtype: np.dtype, prefix: str = "", base: int = 0) -> list[tuple[str, int, int]]:
    """Path in C, offset and size of every member."""
    found = []
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]
        if field.names:
            found += members(field, f"{prefix}{name}.", base + offset)
        else:
            found.append((prefix + name, base + offset, field.itemsize))
    return found


def test_offsets_and_sizes_are_those_of_the_c_compiler(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to compare with")
    lines, expected = [], []
    for structure in STRUCTURES:
        lines.append(f'printf("%zu\\n", sizeof(struct {structure.name}));')
        expected.append(f"{structure.size}")
        for name, offset, size in members(structure.dtype):
            kind = f"struct {structure.name}"
            lines.append(f'printf("%zu %zu\\n", offsetof({kind}, {name}), sizeof((({kind} *)0)->{name}));')
            expected.append(f"{offset} {size}")
    source = tmp_path / "layout.c"
    includes = "#include <stddef.h>\n#include <stdio.h>\n#include <ensio/event.h>\n"
    source.write_text(includes + "int main(void) {" + "\n".join(lines) + "return 0; }")
    subprocess.run([compiler, f"-I{HEADERS}", source, "-o", tmp_path / "layout"], check=True)
    printed = subprocess.run([tmp_path / "layout"], check=True, capture_output=True, text=True).stdout
    assert printed.split("\n")[:-1] == expected


def test_an_event_is_at_most_48_bytes() -> None:
    assert c_layout.EVENT.size <= 48


def test_magic_spells_ensiospl() -> None:
    assert c_layout.CONSTANTS["ENSIO_SPOOL_MAGIC"].to_bytes(8, "little") == b"ENSIOSPL"


def test_a_structure_unpacks_what_it_packed() -> None:
    packed = c_layout.SPOOL.pack(rank=-1, first_ticks=2**64 - 1, pid=7)
    head = c_layout.SPOOL.unpack(packed)
    assert (head.rank, head.first_ticks, head.pid, head.magic) == (-1, 2**64 - 1, 7, 0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("#define SIZE (1 << 4)", "SIZE is not a plain number"),
        ("struct a {\n    long x;\n};", "not a member of fixed width"),
        ("struct a {\n    uint32_t x : 3;\n};", "not a member of fixed width"),
        ("struct a {\n    uint32_t x[];\n};", "not a member of fixed width"),
        ("struct a {\n    uint32_t x[NONE];\n};", "not the length of an array"),
        ("struct a {\n    uint16_t x;\n    uint32_t y;\n};", "unnamed padding before y"),
        ("struct a {\n    uint32_t x;\n    uint16_t y;\n};", "unnamed padding at the end"),
        ("struct a {\n    uint32_t x;\n", "has no end"),
        ("typedef int number;", "neither a definition nor a structure"),
    ],
)
def test_a_header_that_makes_no_sense_is_an_error_with_its_line(text: str, complaint: str) -> None:
    parse = c_layout.parse_constants if text.startswith("#define") else c_layout.parse_structures
    with pytest.raises(EnsioError, match=f"event.h.*{complaint}"):
        parse(text, "event.h")
