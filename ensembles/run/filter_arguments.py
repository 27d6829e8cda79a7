"""Filters by name: completion in IPython and Jupyter and ``help()`` do not look into ``**filters``."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ensembles.model.holds import Holds
from ensembles.run.selection import Filters, Selection

if TYPE_CHECKING:
    from ensembles.run.run import Run

_Function = TypeVar("_Function", bound=Callable[..., Any])

_TYPES = {name: getattr(kind, "__forward_arg__", kind) for name, kind in Filters.__annotations__.items()}


def with_filters(function: _Function) -> _Function:
    """Name each filter in the signature of a function that takes ``**filters``, for completion."""
    found = signature(function)
    *others, last = found.parameters.values()
    assert last.kind is Parameter.VAR_KEYWORD
    named = {other.name for other in others}
    filters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=False if name in ("per_byte", "failed") else None,
            annotation=_TYPES[name],
        )
        for name in Filters.__annotations__
        if name not in named
    ]
    function.__signature__ = found.replace(parameters=[*others, *filters])  # type: ignore[attr-defined]
    return function


def filtered(run: Run, **filters: Unpack[Filters]) -> Selection | None:
    """Return the selection of filters for sums over calls; None: there are no filters."""
    selection = Selection.parse(**filters)
    if selection.selects_all:
        return None
    run.reading.need(Holds.ALL_CALLS, "filters choose among single calls (leave them out)")
    return selection.for_run(run)
