"""Pictures of runs, events and summaries: each takes the data first, and returns a figure, not shown."""

from ensembles.viz.histogram import histogram
from ensembles.viz.moments import moments
from ensembles.viz.rate import rate
from ensembles.viz.report import write_report
from ensembles.viz.trace_diagram import trace_diagram

# A picture has the name of its module. All are imported here, at once, because a later import of a module
# would put the module in the place of the function.
__all__ = ["histogram", "moments", "rate", "trace_diagram", "write_report"]
