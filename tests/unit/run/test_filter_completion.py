"""Filters are offered where a person types: in IPython, in the kernel of a notebook, in help()."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path

import pytest
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.answers import scaling
from ensembles.run import requests, tables
from ensembles.run.selection import Filters

FILTERS = list(Filters.__annotations__)

TAKE_FILTERS = [
    en.Run.select,
    en.Run.ensemble,
    en.Run.by_file,
    en.Run.by_rank,
    en.Run.by_site,
    en.Run.rate,
    en.Run.ordinals,
    en.compare,
    requests.requests_of_run,
    scaling.scaling,
    tables.totals_by_file,
    viz.files,
    viz.ranks,
    viz.comparison,
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> en.Run:
    return run_of(tmp_path_factory.mktemp("completion") / "run", [[("pwrite", 0.0, 0.1, 4096)]])


@pytest.mark.parametrize("function", TAKE_FILTERS, ids=lambda function: function.__qualname__)
def test_signatures_name_every_filter(function) -> None:
    parameters = inspect.signature(function).parameters
    assert set(FILTERS) <= set(parameters)
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    parsed = inspect.signature(en.Run.select).parameters
    assert {name: parameters[name].default for name in FILTERS} == {
        name: parsed[name].default for name in FILTERS
    }
    shown = pydoc.plain(pydoc.render_doc(function))
    assert all(f"{name}:" in shown for name in FILTERS)


def test_what_the_signature_names_is_taken(run: en.Run) -> None:
    bound = inspect.signature(run.select).bind(op="write")
    bound.apply_defaults()
    assert len(run.select(**bound.kwargs)) == len(run.select(op="write")) == 1
    with pytest.raises(TypeError, match="did you mean op"):
        run.select(opp="write")


@pytest.mark.parametrize("use_jedi", [True, False])
@pytest.mark.parametrize("line", ["run.select(", "run.rate(", "run.by_file(", "run.select(op='write', "])
def test_ipython_offers_the_filters(run: en.Run, line: str, use_jedi: bool) -> None:
    from IPython.core.completer import IPCompleter, provisionalcompleter

    completer = IPCompleter(namespace={"run": run}, use_jedi=use_jedi)
    with provisionalcompleter():
        offered = {each.text for each in completer.completions(line, len(line))}
    assert {"rank=", "size=", "per_byte="} <= offered


def test_a_kernel_of_jupyter_offers_the_filters(run: en.Run, tmp_path: Path) -> None:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        client.execute_interactive(f"import ensembles as en\nrun = en.open({run.path!r})", timeout=600)
        for line in ("run.select(", "run.rate(", "run.ensemble("):
            reply = client.complete(line, reply=True, timeout=600)
            assert {"op=", "rank=", "file="} <= set(reply["content"]["matches"]), line
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
