"""Log histogram of the time that calls took per MiB."""

from __future__ import annotations

from ensembles.model.events import Events
from ensembles.summaries.callsums import SUM_COLUMNS
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.phasecounts import duration_per_mib_ns


class LogHistogramPerMib(LogHistogram):
    """A mergeable summary: as `LogHistogram`, of durations per MiB. Calls that moved nothing are left out.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.histogram_per_mib import LogHistogramPerMib
    >>> histogram = en.open("ensio-ior").summarize(ignoring_run(LogHistogramPerMib))
    >>> write = next(call for call in histogram.counts if call.name == "pwrite")
    >>> round(float(histogram.quantile_s(write, [0.5])[0]), 4)  # seconds per MiB: the writes are of 1 MiB
    0.0134
    """

    columns = tuple(dict.fromkeys((*SUM_COLUMNS, "moved")))

    def add(self, chunk: Events) -> None:
        """Add events."""
        moving = chunk.moved > 0
        some = chunk if moving.all() else chunk[moving]
        columns = {name: getattr(some, name) for name in SUM_COLUMNS}
        columns["duration"] = duration_per_mib_ns(some.duration, some.moved)
        super().add(Events.partly(columns, some.calls, some.files, some.sites))
