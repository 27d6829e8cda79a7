"""A pattern makes the calls of its program: fingerprints of real runs against replays of the patterns."""

import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from commands_here import executed
from places import ROOT

from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS

PATTERNS = ROOT / "testbed" / "patterns"
FINGERPRINTS = sorted((PATTERNS / "fingerprints").glob("*.json"))


def compared(folder: Path, kept: dict, path: Path, *more: str) -> int:
    """Replays the pattern of a fingerprint, and compares in this process.

    With `romio_hints` the library is ROMIO, for the program as for the pattern: without collective buffering
    and data sieving it makes a system call for each piece of a data type. `layers` are those that both
    recorded.
    """
    environment = dict(ANY_TASKS)
    if "layers" in kept:
        environment["ENSIO_LAYERS"] = kept["layers"]
    if "romio_hints" in kept:
        hints = folder / "hints"
        hints.write_text("".join(f"{key} {value}\n" for key, value in kept["romio_hints"].items()))
        environment.update(OMPI_MCA_io="romio321", ROMIO_HINTS=str(hints))
    pattern = PATTERNS / f"{kept['pattern']}.toml"
    replay = ["replay", pattern, *kept["options"], *more, "--directory", folder, "-o", folder / "run"]
    with patch.dict(os.environ, environment):
        done = executed(*replay)
    assert done.returncode == 0, done.stderr
    command = ["fingerprint", folder / "run", "--by", "run", *kept["filters"], "--against", path]
    return main([str(word) for word in command])


# These repeat replays of others, with other calls of the same run.
MORE = ("gcrm-tasks", "ior-mpiio-tasks")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem in MORE else ())
        for path in FINGERPRINTS
    ],
)
def test_a_pattern_makes_the_calls_of_its_program(tmp_path, path, capsys):
    kept = json.loads(path.read_text())
    assert kept["program"]
    assert kept["version"]
    assert kept["command"]
    code = compared(tmp_path, kept, path)
    out, told = capsys.readouterr()
    assert code == 0, out + told
    assert out.startswith("Equal: ")


def test_a_pattern_with_another_parameter_differs(tmp_path, capsys):
    path = PATTERNS / "fingerprints" / "ior.json"
    assert compared(tmp_path, json.loads(path.read_text()), path, "--calls", "2") == 1
    assert "the whole run: 40 and 20 calls of write" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pattern", "options", "filters"),
    [("gcrm", [], []), ("hacc", ["--tasks", "2", "--set", "shrink=1000"], ["--layer", "mpiio"])],
)
def test_simulated_and_replayed_patterns_make_the_same_calls(tmp_path, pattern, options, filters):
    real, virtual = tmp_path / "real", tmp_path / "virtual"
    replay = ["replay", pattern, *options, "--directory", tmp_path, "-o", real]
    simulate = ["simulate", pattern, *options, "--fs", "healthy", "--set", "sizes=laptop", "-o", virtual]
    with patch.dict(os.environ, ANY_TASKS):
        for command in (replay, simulate, ["fingerprint", real, *filters, "--against", virtual]):
            done = executed(*command)
            assert done.returncode == 0, done.stdout + done.stderr
