"""What happens between the layers of a run: bytes that libraries move, and collective calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.structure.layer_traffic import traffic_rows
from ensembles.summaries.collective_time import CollectiveTime
from ensembles.summaries.layer_traffic import LayerTraffic


def layer_requests() -> dict[str, SummaryRequest]:
    """Return the requests for the summaries that `between_layers` takes."""
    return {
        "traffic": SummaryRequest(ignoring_run(LayerTraffic)),
        "collective": SummaryRequest(ignoring_run(CollectiveTime)),
    }


def between_layers(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what ``ensio info --json`` has of it.

    Parameters
    ----------
    found : mapping of str to Summary, or None
        Summaries of `layer_requests` by name. None: not all calls are events.

    Returns
    -------
    dict
        ``layer_traffic`` (`ensembles.structure.layer_traffic.traffic_rows`) and ``collective``
        (`ensembles.summaries.collective_time.CollectiveTime.to_json`), each None if it is not known.
    """
    if found is None:
        return {"layer_traffic": None, "collective": None}
    return {"layer_traffic": traffic_rows(found["traffic"]), "collective": found["collective"].to_json()}
