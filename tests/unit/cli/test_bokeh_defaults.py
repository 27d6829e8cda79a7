"""Pages that are made with remembered defaults are those that Bokeh makes."""

import os
import subprocess
import sys

PROGRAM = """
import hashlib, sys
import bokeh
if sys.argv[1] == "remembering":
    from ensembles.cli.bokeh_defaults import remember_defaults
    remember_defaults()
    from bokeh.core.has_props import HasProps
    from bokeh.model import Model
    assert HasProps._overridden_defaults.__func__.cache_info
    assert "bokeh" in Model.parameters.__func__.__module__
import ensembles
from ensembles.viz.report.page import page_of_run
from synthetic_runs import synthetic_run
synthetic_run(sys.argv[2], 4, 10, seed=2)
print(hashlib.sha256(page_of_run(ensembles.open(sys.argv[2])).encode()).hexdigest())
"""


def test_pages_are_the_same(tmp_path):
    made = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, how, "run"],
            cwd=tmp_path / how,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for how in ("remembering", "as it is")
        if (tmp_path / how).mkdir() is None
    ]
    assert len(made[0].strip()) == 64
    assert made[0] == made[1]
