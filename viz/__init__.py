"""Pictures of runs, events and summaries.

Each function takes the data as its first argument and returns a Bokeh figure or layout, without showing it.
`moments` returns a table.

Examples
--------
>>> from bokeh.io import show
>>> from ensembles import viz
>>> run = en.open("ensio-ior")
>>> figure = viz.rate(run)
>>> show(figure)  # doctest: +SKIP
"""

from ensembles.viz.cdf import cdf
from ensembles.viz.experiment import experiment
from ensembles.viz.explore import explore
from ensembles.viz.histogram import histogram
from ensembles.viz.modes import modes
from ensembles.viz.moments import moments
from ensembles.viz.progress import progress
from ensembles.viz.rate import rate
from ensembles.viz.report import write_report
from ensembles.viz.sizer import sizer
from ensembles.viz.surroundings import surroundings
from ensembles.viz.tail import tail
from ensembles.viz.trace_diagram import trace_diagram

# A function has the name of its module. All are imported here, because a later import of a module would
# replace the function by the module.
__all__ = [
    "cdf",
    "experiment",
    "explore",
    "histogram",
    "modes",
    "moments",
    "progress",
    "rate",
    "sizer",
    "surroundings",
    "tail",
    "trace_diagram",
    "write_report",
]
