"""The summary that a picture shows, computed from the data that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.enclosed import among_themselves
from ensembles.model.events import Call, Events
from ensembles.model.holds import Holds
from ensembles.passes.group import SummaryRequest
from ensembles.passes.spec import summarize_chunks
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run.rasters import kept_raster
from ensembles.run.run import Run
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.raster import Raster, raster_request
from ensembles.viz.common.figures import ensemble_from

S = TypeVar("S", bound=Summary)


def data_for(data: Any, kind: type[S]) -> S:
    """Compute the summary that a picture shows."""
    if isinstance(data, kind):
        return data
    if isinstance(data, Ensemble) and kind is LogHistogram:
        return _histogram_of_ensemble(data)  # type: ignore[return-value]
    if isinstance(data, Run) and kind is Raster and (known := kept_raster(data)) is not None:
        return known  # type: ignore[return-value]
    found: S = all_data_for(data, kind)[0]
    return found


def all_data_for(data: Run | Events, *kinds: type[Summary]) -> list[Any]:
    """Compute several summaries of the same data in one pass."""
    requests = {kind.__name__: request_for(kind) for kind in kinds}
    if isinstance(data, Run):
        if not all(kind.of_all_calls for kind in kinds):
            need_calls(data)
        return list(data.summarize(requests).summaries.values())
    if isinstance(data, Events):
        alone = among_themselves(data)
        return list(summarize_chunks(requests, iter([alone]), alone).summaries.values())
    raise TypeError(f"a run, events or a {kinds[0].__name__} is needed, not {type(data).__name__}")


def partial_sentence(data: Any) -> str:
    """Say that a picture of single calls shows some of them only; ``""``: it shows all."""
    return "; ".join(data.info.notes_on_calls) if isinstance(data, Run) else ""


def need_calls(run: Run) -> None:
    """Refuse runs without single calls, of which a picture would be empty."""
    run.reading.need(Holds.SOME_CALLS, "this picture shows single calls (its histogram is known)")


def request_for(kind: type[Summary]) -> SummaryRequest:
    """Return the request for a summary of a class, as input of a pass."""
    return raster_request() if kind is Raster else SummaryRequest(ignoring_run(kind))


def _histogram_of_ensemble(ensemble: Ensemble) -> LogHistogram:
    histogram = LogHistogram()
    if len(ensemble):
        name = ensemble.name or "calls"
        call = Call(name if ensemble.per == "call" else f"{name} per MiB", "", ensemble.op or "meta")
        histogram.counts[call] = ensemble.sample.counts.copy()
    return histogram


def labelled_ensembles(data: Any) -> dict[str, Ensemble]:
    """Return the ensembles of a picture by label."""
    if isinstance(data, Mapping):
        found = {str(label): ensemble_from(each) for label, each in data.items()}
    elif isinstance(data, list | tuple):
        each = [ensemble_from(one) for one in data]
        found = {f"{number}: {one.name or 'calls'}": one for number, one in enumerate(each, 1)}
    else:
        one = ensemble_from(data)
        found = {one.name or "calls": one}
    if len({ensemble.per for ensemble in found.values()}) > 1:
        raise ValueError("durations per call and per MiB cannot share an axis: draw two figures")
    return found
