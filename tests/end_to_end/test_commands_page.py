"""docs/reference/commands.md and `man ensio` list every command with the options that its --help has."""

import re
import subprocess
import sys

import pytest
from commands_here import executed
from places import ROOT

from ensembles.cli.main import COMMANDS

PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n?)*)", PAGE, re.M))


def help_of(*words: str) -> str:
    done = executed(*words, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


def described(command: str) -> str:
    """The section of a command, and those that it refers to."""
    text = SECTIONS[command]
    for anchor in re.findall(r"\]\(#([\w-]+)\)", text):
        text += next(body for name, body in SECTIONS.items() if name.lower().replace(" ", "-") == anchor)
    return text


def test_page_is_what_the_commands_say():
    command = [sys.executable, ROOT / "tools" / "docs" / "commands_page.py"]
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert made == PAGE, "docs/reference/commands.md is out of date; run ./dev docs"


def test_man_page_says_of_every_command_and_option_what_the_page_says():
    man = (ROOT / "docs" / "man" / "ensio.1").read_text()
    said = re.sub(r"(?m)^T[{}]|\\f[A-Z]|\\\(..|\W", "", man)
    rows = re.findall(r"(?m)^(?:## (.+)|\| (.+?) \| (.+) \|)$", PAGE)
    plain = [re.sub(r"\]\([^)]*\)|\W", "", cell) for row in rows for cell in row]
    missing = [cell for cell in plain if cell.lower() not in said.lower()]
    assert missing == [], "docs/man is out of date; run ./dev docs"


def test_man_page_of_the_compiler_driver_says_what_its_help_says():
    words = ["sh", ROOT / "libtrace" / "tools" / "ensio-cc", "--help"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout.partition("\n")[2]
    man = re.sub(r"(?m)^\.PP$|\\|\s", "", (ROOT / "docs" / "man" / "ensio-cc.1").read_text())
    assert re.sub(r"\s", "", said) in man


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_the_help_is_on_the_page(command):
    options = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", help_of(command))) - {"--help"}
    assert options == set(re.findall(r"(?<![\w-])--[a-z][\w-]+", described(f"ensio {command}")))


def test_subcommands_are_on_the_page():
    for command in ("pfs run", "pfs status", "scenarios list", "scenarios run"):
        assert f"ensio {command}" in SECTIONS
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", help_of(*command.split()))) - {"--help"}
        assert options <= set(re.findall(r"(?<![\w-])--[a-z][\w-]+", described(f"ensio {command}")))
