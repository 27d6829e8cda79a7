"""Docstrings of the Python code: their examples run, and public ones have the sections that readers need.

Examples find ``np`` and ``en`` imported. Their working directory is empty but for ``ensio-ior`` and
``ensio-ior-2``: recorded runs of 8 tasks with 5 phases of writes and 5 of reads, of different seeds.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shutil
from collections import defaultdict
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.run.selection import Filters

ROOT = Path(__file__).resolve().parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Constructors for other parts of the code, which no user calls with a few numbers.
CONSTRUCTORS = {"Ensemble.from_events", "Ensemble.from_sample"}


def modules_with_examples() -> dict[str, list[str]]:
    """Names of the modules of ensembles and ensembles.viz with examples, by folder."""
    found = defaultdict(list)
    for folder, package in (("ensembles", "ensembles"), ("viz", "ensembles.viz")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if re.search(r"^\s*>>> ", path.read_text(), re.MULTILINE):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                name = ".".join((package, *parts)).removesuffix(".__init__")
                found["/".join((folder, *parts[:-1][:1]))].append(name)
    return found


EXAMPLES = modules_with_examples()


@pytest.fixture(scope="module")
def recorded_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs that examples open."""
    folder = tmp_path_factory.mktemp("recorded")
    for seed, name in enumerate(("ensio-ior", "ensio-ior-2")):
        synthetic_run(folder / name, tasks=8, events_per_task=42, seed=seed)
    return folder


METHODS = sorted((ROOT / "docs" / "reference" / "methods").glob("[a-z]*.md"))


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_worked_examples_of_methods_have_the_numbers_of_the_page(path: Path) -> None:
    found = doctest.testfile(str(path), module_relative=False, globs={"np": np, "en": en}, optionflags=FLAGS)
    assert found.attempted >= 3
    assert found.failed == 0


@pytest.mark.parametrize("folder", EXAMPLES)
def test_examples_print_what_the_docstring_says(
    recorded_runs: Path, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, report = doctest.DocTestRunner(optionflags=FLAGS), []
    for name in EXAMPLES[folder]:
        monkeypatch.chdir(shutil.copytree(recorded_runs, tmp_path / name))
        module, before = importlib.import_module(name), runner.tries
        for test in doctest.DocTestFinder().find(module, extraglobs={"np": np, "en": en}):
            runner.run(test, out=report.append)
        assert runner.tries > before, f"{name} has examples that doctest does not find: in no docstring"
    assert not runner.failures, "".join(report)


def public_names() -> dict[str, object]:
    """Public functions and classes, and the functions, properties and cached properties of the tables."""
    found = {name: getattr(en, name) for name in en.__all__ if callable(getattr(en, name))}
    for table in (en.Run, en.Ensemble, en.Events):
        for name in dir(table):
            value = inspect.getattr_static(table, name)
            value = getattr(value, "__func__", value)
            if name[0] != "_" and (
                inspect.isfunction(value) or isinstance(value, property | cached_property)
            ):
                found[f"{table.__name__}.{name}"] = value
    return found


def sections(docstring: str) -> dict[str, str]:
    """Text of each numpydoc section by its title; that before the first has the title ``""``."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def undocumented(name: str, value: object) -> list[str]:
    """What the docstring of a public name lacks: sections, or parameters in their section."""
    found = sections(value.__doc__ or "")
    lacking = [] if found[""].strip() else ["summary"]
    if not inspect.isfunction(value) and not inspect.isclass(value):
        return lacking
    if inspect.isclass(value) and issubclass(value, Exception):
        return lacking
    signature = inspect.signature(value)
    told = found.get("Parameters", "") + (found.get("Attributes", "") if inspect.isclass(value) else "")
    entries = ", ".join(line.split(" :")[0] for line in told.splitlines() if line[:1].strip())
    given = {entry.strip("* ") for entry in entries.split(",")}
    given |= {"self", "cls"}
    given |= set(Filters.__annotations__) if "filters" in given else set()
    lacking += [f"parameter {one}" for one in signature.parameters if one not in given]
    if not inspect.isclass(value) and signature.return_annotation not in ("None", None):
        lacking += [] if found.keys() & {"Returns", "Yields"} else ["Returns"]
    shown = name in en.__all__ or (name.startswith("Ensemble.") and name not in CONSTRUCTORS)
    return lacking + (["Examples"] if shown and "Examples" not in found else [])


def test_public_docstrings_have_their_sections() -> None:
    found = {name: undocumented(name, value) for name, value in public_names().items()}
    assert not {name: ", ".join(lacking) for name, lacking in found.items() if lacking}


def test_a_docstring_without_its_sections_is_found() -> None:
    def documented_in_part(first: int, second: int) -> int:
        """Add two numbers.

        Parameters
        ----------
        first : int
        """
        return first + second

    assert undocumented("compare", documented_in_part) == ["parameter second", "Returns", "Examples"]
