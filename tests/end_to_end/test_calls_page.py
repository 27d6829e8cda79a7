"""docs/reference/calls.md says what the recorder records."""

import re
import subprocess
import sys

import pytest
from places import BUILD, ROOT

import ensembles

pytestmark = pytest.mark.quick

PAGE = ROOT / "docs" / "reference" / "calls.md"
SCRIPT = ROOT / "libtrace" / "tools" / "calls_page.py"
ROW = re.compile(r"\| (\d+) \| `(\w+)` \| (\w+) \| (\w+) \| (.*) \|")


def rows() -> list[re.Match]:
    return [match for line in PAGE.read_text().splitlines() if (match := ROW.fullmatch(line))]


def test_page_is_what_the_tables_say():
    made = subprocess.run([sys.executable, SCRIPT], check=True, capture_output=True, text=True).stdout
    assert PAGE.read_text() == made, "docs/reference/calls.md is out of date; run ./dev docs"


def test_every_symbol_that_is_wrapped_stands_on_it():
    options = [file.read_text() for file in (BUILD / "share" / "ensio").glob("*.rsp")]
    wrapped = set(re.findall(r"--wrap=(\S+)", " ".join(options)))
    text = PAGE.read_text()
    tables, watched = text.split("## posix", 1)[1], re.findall(r"^Only watched.*$", text, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join([*(row[5] for row in rows()), *watched])))
    named = {name for name in named if "TYPE" not in name and "RANK" not in name} | {
        symbol
        for name in named - wrapped  # families: a symbol for each type of data, and rank
        for symbol in wrapped
        if re.fullmatch(name.replace("TYPE", r"[a-z]+\d*").replace("RANK_KIND", r"\w+"), symbol)
    }
    assert named <= wrapped
    ranks = {
        symbol for symbol in wrapped - named if re.fullmatch(r"mpi_(init|finalize)\w*", symbol, re.IGNORECASE)
    }
    assert wrapped - named == ranks
    assert len(named) > 200
    assert "`__read_chk`" in tables


def test_recorded_runs_have_the_same_calls(recorder, tmp_path):
    recorder.execute(recorder.build("acknowledge"), tmp_path / "out", 1, check=True)
    calls = [(call.name, call.layer, call.op) for call in ensembles.open(recorder.run).calls[1:]]
    # The program's own phases and regions are distinguished from calls.
    assert sorted(calls) == sorted((row[2], row[3], row[4]) for row in rows() if row[3] != "program")
