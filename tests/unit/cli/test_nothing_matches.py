"""Filters that match no call are refused with what the run has, and typos with the nearest names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.cli.main import build_parser, main
from ensembles.run.nothing_selected import _CONDITIONS, why_nothing
from ensembles.run.selection import Selection

COMMANDS = {
    "events": (),
    "phases": (),
    "ordinals": (),
    "rate": (),
    "files": (),
    "ranks": (),
    "sites": (),
    "modes": (),
    "tail": ("--tasks", "4"),
    "split": (),
}
NOTHING = {
    "--op sync": "--op sync: the run has close, open, read, write",
    "--call fsync": "the run has close, open, pread, pwrite",
    "--file hared.dat": "the run used 1 file, such as /scratch/synthetic/shared.dat",
    "--file *shred.dat": "the run used 1 file, such as /scratch/synthetic/shared.dat",
    "--rank 99": "the run has calls of ranks 0-3",
    "--size 7": "the calls of the run request from 0 B to 1 MiB",
    "--time 1000..": "the calls of the run start from ",
    "--where duration>1h": "--where duration: the calls of the run take from ",
    "--where offset>1TiB": "--where offset: the calls of the run begin at offsets from 0 B to ",
    "--phase 999": "phases, numbered from 1",
    "--where ordinal=999": "no task makes so many calls",
    "--op open --size 1MiB": "matches all filters together (--op, --size)",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    synthetic_run(folder, 4, 40)
    return folder


@pytest.mark.parametrize("filters", NOTHING)
@pytest.mark.parametrize("command", COMMANDS)
def test_one_sentence_names_what_the_run_has(
    run: Path, command: str, filters: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command, str(run), *COMMANDS[command], *filters.split()])
    out, told = capsys.readouterr()
    assert (code, out, told.count("\n")) == (2, "", 1)
    if command == "rate" and "--op" in filters:
        assert "only reads and writes have a data rate" in told
    elif not (command == "ordinals" and "--phase" in filters):
        assert NOTHING[filters] in told


@pytest.mark.parametrize("filters", NOTHING)
@pytest.mark.parametrize("command", ["compare", "export"])
def test_comparisons_and_exports_of_nothing_are_refused_too(
    run: Path, tmp_path: Path, command: str, filters: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "calls.csv"
    more = [str(run)] if command == "compare" else ["--to", "csv", str(made)]
    code = main([command, str(run), *more, *filters.split()])
    out, told = capsys.readouterr()
    assert (code, out, told.count("\n")) == (2, "", 1)
    assert NOTHING[filters] in told
    assert not made.exists()


def test_every_condition_has_words() -> None:
    # Windows and marks of pictures do not come from users; the last two are set with others.
    others = ("under_way_ns", "spans", "site_numbers")
    conditions = {name for name in vars(Selection()) if name not in others}
    assert conditions == set(_CONDITIONS)


def test_python_raises_the_same(run: Path) -> None:
    opened = en.open(run)
    with pytest.raises(en.EnsioError, match="the run has calls of ranks 0-3"):
        opened.ensemble(rank=99)
    assert len(opened.select(rank=99)) == 0
    assert "the outermost calls" not in why_nothing(opened, Selection.parse(per_byte=True, op="open"))
    with pytest.raises(TypeError, match='there is no filter "opp": did you mean op'):
        opened.select(opp="write")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["inof", "RUN"], 'there is no command "inof": did you mean info?'),
        (["info", "RUN", "--jsn"], 'there is no option "--jsn": did you mean --json? see ensio info --help'),
        (
            ["info", "RUN", "--rank", "3"],
            "whole runs: ensio report, ranks, files, requests, phases, modes and",
        ),
        (
            ["diagnose", "RUN", "--op=write"],
            'there is no option "--op=write", because ensio diagnose is about',
        ),
        (
            ["events", "RUN", "--csv"],
            'there is no option "--csv": did you mean --format csv? see ensio events',
        ),
        (["ranks", "RUN", "--by", "byts"], 'there is no --by "byts": did you mean bytes?'),
        (["events", "RUN", "--slowest", "1.5"], "write it like 20 or 0.01"),
        (["events", "RUN", "--slowest", "0"], "write it like 20 or 0.01"),
        (["files", "RUN", "--call", "pwrit"], "did you mean pwrite"),
        (["files", "RUN", "--layer", "posx"], "did you mean posix?"),
    ],
)
def test_typos_get_the_nearest_names(
    run: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(run) if word == "RUN" else word for word in words]
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert told in printed.err


def test_the_slowest_are_those_with_the_longest_durations(run: Path) -> None:
    events = en.open(run).events
    longest = sorted(events.duration.tolist(), reverse=True)
    assert events.slowest(7).duration.tolist() == longest[:7]
    assert len(events.slowest(0.1)) == round(0.1 * len(events))
    assert len(events.slowest(10**9)) == len(events)
    assert len(events.slowest(0)) == 0
    for wrong in (-1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="neither a number of calls nor a share"):
            events.slowest(wrong)


def test_a_share_and_a_number_give_the_same_calls(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    calls = len(en.open(run).select(op="write"))
    for most in ("5%", "0.05", str(round(0.05 * calls))):
        assert main(["events", str(run), "--op", "write", "--slowest", most, "--format", "csv"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]
    assert printed[0].count("\n") == 1 + round(0.05 * calls)


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a command and of those below it that help shows."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from options(below)
        elif action.help != argparse.SUPPRESS:
            yield from (option for option in action.option_strings if option.startswith("--"))


def test_there_are_sixty_options() -> None:
    assert len(set(options(build_parser())) - {"--help", "--version"}) <= 60


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("events RUN --duration 1us..", "events RUN --where duration=1us.."),
        ("events RUN --failed", "events RUN --where failed"),
        ("modes RUN --ordinal=1-3", "modes RUN --where ordinal=1-3"),
        ("files RUN --sort bytes", "files RUN --by bytes"),
        ("fingerprint RUN --whole", "fingerprint RUN --by run"),
        ("ordinals RUN --within phase", "ordinals RUN --by phase"),
        ("compare RUN RUN --fail-on-difference", "compare RUN RUN --fail-on difference"),
    ],
)
def test_an_old_name_works_and_the_new_one_is_said(
    run: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for words in (old, new):
        status = main(words.replace("RUN", str(run)).split())
        printed.append((status, *capsys.readouterr()))
    (note, *rest), others = printed[0][2].splitlines(), printed[1][2].splitlines()
    assert printed[0][:2] == printed[1][:2]
    assert rest == others
    assert f"is {new.rpartition('RUN ')[2]} now" in note.replace("'", "")
