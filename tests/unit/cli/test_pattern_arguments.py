"""What the options of commands that take a pattern mean."""

import argparse
from pathlib import Path

import pytest
from project import ROOT

from ensembles.cli.workload_args import PAPER, add_pattern_arguments, find_pattern, parse_overrides, planned
from ensembles.model.errors import EnsioError

PATTERNS = ROOT / "testbed" / "patterns"
MIB = 1 << 20


def arguments(*words, **how):
    parser = argparse.ArgumentParser()
    add_pattern_arguments(parser, **how)
    return parser.parse_args([str(word) for word in words])


def plan_of(name, *words, **how):
    return planned(arguments(PATTERNS / f"{name}.toml", *words, **how))[1]


def test_options_set_the_parameters_of_their_names():
    given = arguments("ior", "--tasks", 2, "--set", "block_bytes=1MiB", "--calls", 4, "--repetitions", 3)
    assert parse_overrides(given) == {"tasks": 2, "block_bytes": MIB, "calls": "4", "repetitions": "3"}


@pytest.mark.parametrize(
    ("value", "bytes"),
    [("3MiB", 3 * MIB), ("4096", 4096), ("2 * tasks * KiB", 16384), ("1.5 MiB", 3 * MIB // 2)],
)
def test_any_parameter_can_be_set_to_a_size_or_an_expression(value, bytes):
    assert plan_of("ior", "--set", f"block_bytes={value}").parameters["block_bytes"] == bytes


def test_scale_divides_the_sizes_of_the_paper():
    assert plan_of("ior", "--scale", "1/1").parameters["block_bytes"] == 512 * MIB
    assert plan_of("ior", "--scale", "1").parameters["block_bytes"] == 512 * MIB
    assert plan_of("ior", "--scale", "1/64").parameters["block_bytes"] == 8 * MIB
    assert plan_of("ior", "--scale", "1/64").tasks == 8


def test_sizes_are_the_papers_where_a_command_wants_them_and_otherwise_a_laptops():
    assert plan_of("madbench").tasks == 8
    assert plan_of("madbench", "--sizes", "paper").tasks == 256
    assert plan_of("madbench", sizes=PAPER).tasks == 256
    assert plan_of("madbench", "--tasks", 16, sizes=PAPER).parameters["matrix_bytes"] == 300_000_000
    assert plan_of("madbench", "--sizes", "laptop", sizes=PAPER).tasks == 8


def test_layer_replaces_the_patterns_own():
    assert "mpiio.seek" in plan_of("gcrm", "--layer", "mpiio").calls


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--set", "block_bytes"], "--set block_bytes: write it as NAME=VALUE"),
        (["--set", "blocks=1"], "there is no parameter blocks: choose from tasks"),
        (["--set", "block_bytes=1 +"], '"1 +": is not an expression'),
        (["--set", "block_bytes=3 lumps"], 'size "3 lumps" is not a number of bytes'),
        (["--set", "tasks=0"], "tasks is 0, it must be at least 1"),
        (["--scale", "2"], '"2" is not a scale: write 1 for the published sizes, or 1/N'),
        (["--scale", "1/0"], '"1/0" is not a scale'),
        (["--scale", "64"], '"64" is not a scale'),
        (["--layer", "hdf5"], '"seek" is not a call of layer hdf5'),
        (["--layer", "tape"], 'layer "tape" has no calls on files'),
    ],
)
def test_what_makes_no_sense_is_told_in_one_sentence(words, problem):
    with pytest.raises(EnsioError) as raised:
        plan_of("ior", *words)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_scale_of_a_pattern_without_sizes_is_refused():
    with pytest.raises(EnsioError, match=r"twophase\.toml: there is no parameter shrink"):
        plan_of("twophase", "--scale", "1/2")


class TestFinding:
    @pytest.fixture
    def installation(self, tmp_path, monkeypatch):
        """An installation with one pattern, and the program by which it is found."""
        for folder in ("bin", "share/ensio/patterns"):
            (tmp_path / folder).mkdir(parents=True)
        program = tmp_path / "bin" / "ensio-cc"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (tmp_path / "share/ensio/patterns/mine.toml").write_text("")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.delenv("ENSIO_PRELOAD", raising=False)
        return tmp_path

    def test_name_is_looked_up_in_the_installation_on_path(self, installation):
        assert find_pattern("mine") == installation / "share/ensio/patterns/mine.toml"

    def test_path_is_taken_as_it_is(self, installation):
        assert find_pattern("./mine") == Path("mine")
        assert find_pattern("other.toml") == Path("other.toml")

    def test_unknown_name_is_told_with_those_there_are(self, installation):
        with pytest.raises(
            EnsioError, match=r"other: no such pattern in .*: choose from .*mine.*, or name a file"
        ):
            find_pattern("other")
