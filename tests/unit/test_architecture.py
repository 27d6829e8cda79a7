"""Import directions: which part of the Python code may import which, without loops and without exceptions.

Imports are read from the syntax tree; nothing is run. Each has a kind: "top" (run when the module is
imported), "lazy" (inside a function) or "type" (under TYPE_CHECKING).
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What each part may import, besides itself: a part is a folder of ``ensembles``, or its module in C. The
# order is that of the layers, from the bottom to the top.
ALLOWED = {
    "_compiled": "",
    "headers": "",
    "model": "headers",
    "faces": "model",
    "files": "model",
    "recorder": "model files",
    "passes": "model files",
    "summaries": "_compiled model passes",
    "statistics": "model summaries",
    "readers": "_compiled model files recorder passes summaries",
    "structure": "_compiled model summaries passes readers",
    "writers": "model files recorder passes summaries readers structure",
    "run": "model faces files summaries passes readers writers structure",
    "ensemble": "model summaries passes statistics structure run",
    "workloads": "model files recorder passes summaries readers writers run",
    "diagnosis": "_compiled model summaries passes statistics run structure ensemble workloads",
    "comparison": "model passes summaries statistics run ensemble diagnosis",
    "history": "model faces files passes summaries statistics structure readers run comparison diagnosis",
    "answers": "_compiled model files passes summaries statistics structure ensemble run comparison "
    "diagnosis history faces",
    "viz": "model files summaries passes statistics run structure ensemble comparison diagnosis history "
    "faces answers",
    "api": "model faces recorder passes summaries run ensemble comparison diagnosis answers viz",
    "cli": "_compiled model files recorder summaries passes statistics readers writers run structure "
    "ensemble comparison diagnosis history workloads api viz faces answers",
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
        for path in sorted((ROOT / folder).rglob("*.py*")):
            if path.suffix not in (".py", ".pyi"):
                continue
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
    if module == "ensembles":
        return "api"
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


def against_the_arrows(graph: dict[str, list[Import]]) -> list[str]:
    """The imports that no arrow allows, with their kinds and lines."""
    found = []
    for module, rows in graph.items():
        for other, kind, line in rows:
            if part(other) not in (part(module), *ALLOWED[part(module)].split()):
                found.append(f"{module} -> {other} ({kind}, line {line}: {part(module)} -> {part(other)})")
    return found


def test_arrows_make_no_cycle() -> None:
    layers = list(ALLOWED)
    for name, others in ALLOWED.items():
        for other in others.split():
            assert layers.index(other) < layers.index(name), f"{name} -> {other} points upwards"


def test_every_module_belongs_to_a_part(graph: dict[str, list[Import]]) -> None:
    assert not [name for name in graph if part(name) not in ALLOWED]


def test_imports_follow_the_arrows(graph: dict[str, list[Import]]) -> None:
    found = against_the_arrows(graph)
    assert not found, "imports against the arrows: change them, or the table ALLOWED\n" + "\n".join(found)


def test_imports_make_no_loop(graph: dict[str, list[Import]]) -> None:
    found = loops(graph, ("top", "lazy", "type"))
    assert not found, "modules that import each other:\n" + "\n".join(map(" ".join, found))


def test_only_the_package_itself_lies_at_the_root() -> None:
    assert [path.name for path in sorted((ROOT / "ensembles").glob("*.py"))] == ["__init__.py"]


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
