"""The tutorial's commands print what it shows, but for what is measured and what belongs to the machine."""

import importlib.util
import os
import subprocess
import sys

from places import BUILD, ROOT

SCRIPT = ROOT / "tools" / "docs" / "transcripts.py"
TUTORIAL = ROOT / "docs" / "user" / "tutorial.md"


def transcripts():
    spec = importlib.util.spec_from_file_location("transcripts", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tutorial_shows_what_its_commands_print():
    path = f"{BUILD}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, SCRIPT, TUTORIAL], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 commands, 0 with another output" in done.stdout


def test_tutorial_uses_the_commands_that_it_promises():
    told = [command for block in transcripts().blocks(TUTORIAL.read_text()) for command, _ in block]
    subcommands = [command.split()[1] for command in told if command.startswith("ensio ")]
    assert subcommands == ["run", "info", "phases", "report", "simulate", "modes", "tail", "split"]


def test_another_word_is_noticed_and_another_number_is_not():
    masked = transcripts().masked
    shown = [
        "  mode    duration       90% interval",
        "     1      8.00 s  7.92 s – 8.05 s     6.9% (3.4% – 8.8%)",
    ]
    assert masked(shown) == masked([shown[0], "  1   81.0 ms  7 ms – 0.91 s  16.9% (3.4% – 8.8%)"])
    assert masked(shown) != masked([shown[0].replace("duration", "time"), shown[1]])
    assert masked(shown) != masked(shown[:1])
    # What else happened on the machine differs, also where it takes two lines.
    busy = ["node I/O   up to 3 MiB dirty pages · some task on the node", "           waited for I/O"]
    assert masked([*busy, *shown]) == masked(shown)
    assert masked([*shown, busy[1]]) != masked(shown)


def test_numbers_of_simulated_runs_are_compared_digit_by_digit():
    module = transcripts()
    commands = ["ensio info run", "ensio simulate ior --fs franklin -o made", "ensio split made --op write"]
    assert module.are_simulated(commands) == [False, True, True]
    assert module.are_simulated(["ensio split made --op write", "ls made"]) == [False, False]
    row = "    4  31.9 s  30.2 s – 33.7 s  31.9 s     1.35     1.76    0.15"
    other = row.replace("31.9", "32.6")
    assert module.masked([row]) == module.masked([other])
    assert module.masked([row], with_numbers=True) != module.masked([other], with_numbers=True)


def test_writing_a_page_keeps_all_but_the_output():
    module = transcripts()
    page = "# A\n\nBefore:\n\n    $ one\n    old\n    older\n\n    $ two\n\nAfter.\n"
    made = module.written(page, [["new"], ["newer", "", "newest"]])
    assert made == "# A\n\nBefore:\n\n    $ one\n    new\n\n    $ two\n    newer\n\n    newest\n\nAfter.\n"
    assert module.written(made, [["new"], ["newer", "", "newest"]]) == made
