"""Python's collector of cyclic garbage is left as it was for callers, and is idle when a program ends."""

import gc
import subprocess
import sys

from ensembles.cli.main import main

AS_PROGRAM = """
import gc, sys
from ensembles.cli.main import main
sys.argv = ["ensio", "link-flags", "--help"]
try:
    main()
finally:
    print("frozen:", gc.get_freeze_count() > 1000)
"""


def test_callers_keep_their_collector(capsys):
    before = gc.get_threshold(), gc.get_freeze_count()
    assert main(["info", "/no/such/run"]) == 2
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    assert "/no/such/run" in capsys.readouterr().err


def test_the_objects_of_a_program_that_ends_are_not_searched():
    done = subprocess.run([sys.executable, "-c", AS_PROGRAM], capture_output=True, text=True, timeout=600)
    assert "frozen: True" in done.stdout, done.stderr
