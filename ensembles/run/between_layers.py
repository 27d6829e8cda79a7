"""What happens between the layers of a run: bytes that libraries move, and collective calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.structure.layer_traffic import collective_sentence, traffic_rows, traffic_sentences
from ensembles.structure.library_time import library_rows, library_sentences
from ensembles.summaries.collective_time import CollectiveTime
from ensembles.summaries.layer_traffic import LayerTraffic

if TYPE_CHECKING:
    from ensembles.summaries.layers import LayerTimes


def layer_requests() -> dict[str, SummaryRequest]:
    """Return the requests for the summaries that `between_layers` takes."""
    return {
        "traffic": SummaryRequest(ignoring_run(LayerTraffic)),
        "collective": SummaryRequest(ignoring_run(CollectiveTime)),
    }


def between_layers(found: Mapping[str, Any], times: LayerTimes) -> dict[str, Any]:
    """Return what ``ensio info --json`` has of it.

    Parameters
    ----------
    found : mapping of str to Summary or None
        Summaries of `layer_requests` by name. None: not all calls are events.

    Returns
    -------
    dict
        ``layer_traffic`` (`ensembles.structure.layer_traffic.traffic_rows`), ``read_inside`` (by function:
        bytes that storage calls read inside calls that ask for none, such as opens), ``in_libraries``
        (`ensembles.structure.library_time.library_rows`) and ``collective``
        (`ensembles.summaries.collective_time.CollectiveTime.to_json`), each None if it is not known.
    """
    if found["traffic"] is None:
        return {"layer_traffic": None, "read_inside": None, "in_libraries": None, "collective": None}
    return {
        "layer_traffic": traffic_rows(found["traffic"]),
        "read_inside": {name: sums.bytes for name, sums in found["traffic"].read_inside.items()},
        "in_libraries": library_rows(times, found["traffic"]),
        "collective": found["collective"].to_json(),
    }


def layer_sentences(information: Mapping[str, Any]) -> list[str]:
    """Return what happens between the layers, in sentences without a full stop."""
    collective = collective_sentence(information["collective"])
    found = library_sentences(information["in_libraries"], ("mpiio",) if collective else ())
    found += [*traffic_sentences(information["layer_traffic"] or []), collective]
    return [text for text in found if text]
