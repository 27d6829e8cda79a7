"""Import directions: which part of the Python code may import which, and the violations that are left.

Imports are read from the syntax tree; nothing is run. Each has a kind: "top" (run when the module is
imported), "lazy" (inside a function) or "type" (under TYPE_CHECKING). The tables of violations may only
shrink: a test fails when a violation is new, and when a listed one is gone but still listed.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Modules whose part is not that of their folder. Every other module belongs to the part named as its folder.
MODULES = {
    "api": "ensembles",
    "model": "errors events filter_texts metadata printable regiontable toml_files units",
    "recorder": "elf otf2_program recorder regions run_directory",
    "run": "collection job opening run selection source",
    "ensemble": "ensemble ensemble_of_run ensemble_of_summary ensemble_text names_of_calls successive",
    "comparison": "compared_calls comparing",
}

# What each part may import, besides itself. The order is that of the layers, from the bottom to the top.
ALLOWED = {
    "headers": "",
    "model": "",
    "recorder": "model",
    "patterns": "model",
    "passes": "model",
    "summaries": "model passes",
    "statistics": "model summaries",
    "readers": "model recorder passes summaries",
    "writers": "model recorder summaries readers",
    "run": "model summaries passes readers writers",
    "structure": "model summaries passes run",
    "ensemble": "model summaries passes statistics run structure",
    "comparison": "model passes summaries statistics run ensemble",
    "diagnosis": "model summaries passes statistics run structure ensemble",
    "simulation": "model recorder patterns summaries readers writers run",
    "api": "model recorder run ensemble comparison diagnosis",
    "viz": "model summaries passes statistics run structure ensemble comparison diagnosis api",
    "cli": "model recorder patterns summaries passes statistics readers writers run structure ensemble "
    "comparison diagnosis simulation api viz",
}

# Imports against the arrows, as the syntax tree has them, with what would remove them.
KNOWN = {
    # Events.ensemble: Ensemble.of_events is the other way to the same, and opens the largest loop
    "events -> ensemble",
    # the layout of C structures: to the model
    "summaries.bins -> readers.layout",
    "summaries.cells -> readers.layout",
    "summaries.classes -> readers.layout",
    # methods of a run that are functions of a run
    "run -> ensemble",
    "run -> ensemble_of_run",
    "run -> structure.long_runs",
    "run -> structure.ordinals",
    "run -> structure.phases",
    "selection -> structure.ordinals",
    # a writer of a whole run, and what a file must hold
    "writers.extract -> run",
    "writers.extract -> selection",
    "writers.otf2 -> run",
    "viz.report -> writers.readership",
    "viz.report -> writers.wholefile",
    # a type
    "statistics.slowest.curve -> ensemble",
}

# Modules that reach each other through imports of these kinds: the strongly connected sets.
LOOPS: dict[tuple[str, ...], list[str]] = {
    ("top",): [],
    ("top", "lazy"): [
        """
        ensemble events statistics.atoms statistics.histogram statistics.modes.density
        statistics.modes.modes statistics.modes.of_phases statistics.modes.peak_fit
        statistics.modes.places statistics.moments statistics.places_of_calls statistics.quantiles
        statistics.robust statistics.sample statistics.slowest.backtest statistics.slowest.beyond
        statistics.slowest.blocks_in_time statistics.slowest.equation1
        statistics.slowest.exchangeability statistics.slowest.phases_as_sample
        statistics.slowest.shoulder statistics.slowest.slow_calls_of_phases statistics.slowest.tail
        statistics.slowest.tail_result statistics.slowest.threshold statistics.slowest.within_reach
        statistics.split statistics.studentised_l_moments summaries.callsums summaries.histogram
        summaries.phasecounts
        """,
        "readers.foreign.dftracer readers.foreign.recognising",
        "statistics.comparison.result statistics.comparison.text",
    ],
}


class Import(NamedTuple):
    """An import of one of our modules."""

    module: str
    kind: str
    line: int


def modules() -> dict[str, Path]:
    """File of each module, by name without ``ensembles.``; the folder viz is installed as ensembles.viz."""
    found = {}
    for folder, package in (("ensembles", ()), ("viz", ("viz",))):
        for path in (ROOT / folder).rglob("*.py"):
            names = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((*package, *names)).removesuffix("__init__").rstrip(".") or "ensembles"] = path
    return found


def short(name: str) -> str:
    """A module as the tables name it; "" for one that is not ours, as statistics of the standard library."""
    return name.removeprefix("ensembles.") if name.split(".")[0] == "ensembles" else ""


def imports(path: Path, names: set[str]) -> list[Import]:
    """The imports of modules of these names."""
    found: list[Import] = []

    def visit(node: ast.AST, kind: str) -> None:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            for alias in node.names:
                inner = short(f"{node.module}.{alias.name}")
                outer = short(str(node.module))
                found.append(Import(inner if inner in names else outer, kind, node.lineno))
        elif isinstance(node, ast.Import):
            found.extend(Import(short(alias.name), kind, node.lineno) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.body:
                visit(child, "type")
            for child in node.orelse:
                visit(child, kind)
        else:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                visit(child, "lazy" if is_function and kind == "top" else kind)

    visit(ast.parse(path.read_text(encoding="utf-8")), "top")
    return [row for row in found if row.module in names]


def part(module: str) -> str:
    """The part that a module belongs to."""
    for name, members in MODULES.items():
        if module in members.split():
            return name
    return module.split(".")[0]


def loops(graph: dict[str, list[Import]], kinds: tuple[str, ...]) -> list[list[str]]:
    """Sets of modules that reach each other, largest first (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def go(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for row in graph[module]:
            if row.kind not in kinds or row.module == module:
                continue
            if row.module not in index:
                go(row.module)
                low[module] = min(low[module], low[row.module])
            elif row.module in stack:
                low[module] = min(low[module], index[row.module])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in index:
            go(module)
    return sorted(found, key=lambda group: (-len(group), group))


@pytest.fixture(scope="module")
def graph() -> dict[str, list[Import]]:
    files = modules()
    return {name: imports(path, set(files)) for name, path in files.items()}


def against_the_arrows(graph: dict[str, list[Import]]) -> dict[str, str]:
    """The imports that no arrow allows, with their kinds and lines."""
    found = {}
    for module, rows in graph.items():
        for other, kind, line in rows:
            if part(other) not in (part(module), *ALLOWED[part(module)].split()):
                found[f"{module} -> {other}"] = f"{kind}, line {line}: {part(module)} -> {part(other)}"
    return found


def test_arrows_make_no_cycle() -> None:
    layers = list(ALLOWED)
    for name, others in ALLOWED.items():
        for other in others.split():
            assert layers.index(other) < layers.index(name), f"{name} -> {other} points upwards"


def test_every_module_belongs_to_a_part(graph: dict[str, list[Import]]) -> None:
    assert not [name for name in graph if part(name) not in ALLOWED]


def test_the_tables_name_no_module_that_is_gone(graph: dict[str, list[Import]]) -> None:
    assert not [name for members in MODULES.values() for name in members.split() if name not in graph]


def test_imports_follow_the_arrows(graph: dict[str, list[Import]]) -> None:
    found = against_the_arrows(graph)
    new = [f"{key} ({found[key]})" for key in sorted(set(found) - KNOWN)]
    assert not new, "imports against the arrows: change them, or the table ALLOWED\n" + "\n".join(new)
    gone = sorted(KNOWN - set(found))
    assert not gone, "gone: take them out of the table KNOWN\n" + "\n".join(gone)


@pytest.mark.parametrize("kinds", LOOPS, ids="+".join)
def test_import_loops_are_the_known_ones(graph: dict[str, list[Import]], kinds: tuple[str, ...]) -> None:
    found = {frozenset(group) for group in loops(graph, kinds)}
    known = {frozenset(group.split()) for group in LOOPS[kinds]}
    new = "\n".join(" ".join(sorted(group)) for group in found - known)
    assert found <= known, f"new loops, or more modules in a loop: open them, or list what is left\n{new}"
    gone = "\n".join(" ".join(sorted(group)) for group in known - found)
    assert found == known, f"gone: take them out of the table LOOPS\n{gone}"


def test_imports_are_found_where_they_are(tmp_path: Path) -> None:
    source = tmp_path / "some.py"
    source.write_text(
        "from typing import TYPE_CHECKING\n"
        "import ensembles.run, statistics\n"
        "if TYPE_CHECKING:\n"
        "    from ensembles.events import Events\n"
        "def f():\n"
        "    from ensembles.readers import layout, nothing\n"
    )
    found = imports(source, {"run", "events", "statistics", "readers", "readers.layout"})
    lines = [("run", "top", 2), ("events", "type", 4), ("readers.layout", "lazy", 6), ("readers", "lazy", 6)]
    assert found == lines


def test_loops_are_found_by_the_kinds_of_their_imports() -> None:
    graph = {
        "a": [Import("b", "top", 1)],
        "b": [Import("c", "top", 1)],
        "c": [Import("a", "lazy", 1), Import("d", "top", 2)],
        "d": [Import("c", "type", 1)],
    }
    assert loops(graph, ("top",)) == []
    assert loops(graph, ("top", "lazy")) == [["a", "b", "c"]]
    assert loops(graph, ("top", "lazy", "type")) == [["a", "b", "c", "d"]]
