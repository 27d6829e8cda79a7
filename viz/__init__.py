"""Pictures of runs, events and summaries: each takes the data first, and returns a figure, not shown."""

from ensembles.viz.histogram import histogram
from ensembles.viz.modes import modes
from ensembles.viz.moments import moments
from ensembles.viz.rate import rate
from ensembles.viz.report import write_report
from ensembles.viz.tail import tail
from ensembles.viz.trace_diagram import trace_diagram

# A picture has the name of its module. All are imported here, at once, because a later import of a module
# would put the module in the place of the function.
__all__ = ["histogram", "modes", "moments", "rate", "tail", "trace_diagram", "write_report"]
