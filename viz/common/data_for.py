"""Pictures of several runs, events or ensembles: one below the other, on the same axes.

The summary that a picture shows, computed from the data that it is given.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any, TypeVar, cast

from bokeh.layouts import column
from bokeh.models import Column, Range1d
from bokeh.models.plots import Plot
from bokeh.plotting import figure

from ensembles.ensemble.ensemble import Ensemble
from ensembles.model.enclosed import among_themselves
from ensembles.model.events import Call, Events
from ensembles.model.holds import Holds
from ensembles.passes.group import SummaryRequest
from ensembles.passes.spec import summarize_chunks
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run.rasters import kept_raster
from ensembles.run.run import Run
from ensembles.run.selection import Filters
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.raster import Raster, raster_request
from ensembles.viz.common.figures import ends, ensemble_from, plain, retitle

F = TypeVar("F", bound=Callable[..., Any])


def of_several(picture: F) -> F:
    """Let a picture take a list or a mapping of what it shows, too.

    The pictures of all are below each other in a column. Each has its label in the title, and horizontal
    axes that show the same are linked. Summaries, such as a list of `RankTotals`, are not several.
    """

    @functools.wraps(picture)
    def drawn(data: Any, *arguments: Any, **options: Any) -> Any:
        several = named(data)
        if several is None:
            return picture(data, *arguments, **options)
        parts = {label: picture(each, *arguments, **options) for label, each in several.items()}
        return below_each_other(parts, picture.__name__)

    return cast(F, drawn)


def named(data: Any) -> dict[str, Any] | None:
    """Return several runs, events or ensembles by label.

    None: it is not a list or mapping of them.
    """
    values = list(data.values()) if isinstance(data, Mapping) else data
    if not isinstance(values, list | tuple) or not values:
        return None
    if not all(isinstance(each, Run | Events | Ensemble) for each in values):
        return None
    if isinstance(data, Mapping):
        return {str(label): each for label, each in data.items()}
    names = [_name(each) for each in values]
    if len(set(names)) < len(names) or not all(isinstance(each, Run) for each in values):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return dict(zip(names, values, strict=True))


def _name(data: Any) -> str:
    if isinstance(data, Run):
        return os.path.basename(os.path.normpath(data.path)) or data.path
    return getattr(data, "name", "") or "calls"


def below_each_other(parts: Mapping[str, Any], name: str) -> Column:
    """Arrange pictures of several runs by label, with linked horizontal axes where these show the same."""
    known: dict[str, list[Plot]] = {}
    for number, (label, part) in enumerate(parts.items(), 1):
        figures = [model for model in part.references() if isinstance(model, Plot)]
        for fig in figures:
            known.setdefault(fig.name or "", []).append(fig)
            if isinstance(fig, figure) and fig.title is not None:
                text = str(getattr(fig.title, "text", "")).replace("\n", " ")
                retitle(fig, f"{plain(label)[-40:]}: {text}")
        if number > 1:  # names are unique on a page
            for model in part.references():
                if model.name:
                    model.name = f"{model.name}_{number}"
    for figures in known.values():
        if len({tuple(str(axis.axis_label) for axis in fig.xaxis) for fig in figures}) == 1:
            _link([fig.x_range for fig in figures])
        if figures[0].name == "tasks_inside" and len({fig.yaxis.axis_label for fig in figures}) == 1:
            top = max(ends(fig.y_range)[1] for fig in figures)
            for fig in figures:
                if isinstance(fig.y_range, Range1d):
                    fig.y_range.end = top
    return column(list(parts.values()), sizing_mode="stretch_width", name=f"{name}_of_several")


def _link(ranges: Sequence[Any]) -> None:
    """Let ranges of equal pictures have the same ends, at first and after each zoom."""
    own = list({each.id: each for each in ranges}.values())
    if len(own) < 2 or not all(type(each) is Range1d for each in own):
        return
    start, end = min(each.start for each in own), max(each.end for each in own)
    for each in own:
        each.update(start=start, end=end)
    for one, other in permutations(own, 2):
        one.js_link("start", other, "start")
        one.js_link("end", other, "end")


R = TypeVar("R")
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


def rows_from(data: Any, kind: type[R], total: Callable[..., list[R]], filters: Filters) -> list[R]:
    """Return the rows of a table of totals: those of a run or of events, or rows as they are."""
    if isinstance(data, Run | Events):
        return total(data, **filters)
    if isinstance(data, list) and all(isinstance(row, kind) for row in data):
        return data
    raise TypeError(f"a run, events or a list of {kind.__name__} is needed, not {type(data).__name__}")


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
