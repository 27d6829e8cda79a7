"""Models of parallel file systems: parameters from a TOML file, faults from the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ensembles.files.toml_files import read_toml
from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.toml_tables import Lines, named_file
from ensembles.workloads.simulation.program import Setting, known_settings

FAULT = "fault"

_BYTES = ("_MiB", "_KiB")
"""Endings of keys whose values are amounts of data."""

_TASKS_PER_NODE = "tasks_per_node"

_TEXTS = ("title", "source")
"""Keys with a descriptive text."""


@dataclass(frozen=True)
class Model:
    """A model of a parallel file system."""

    name: str  # Name of the file without its ending
    path: Path
    # Parameters that the file sets; the others have the default of ``ensio-simulate``
    parameters: Mapping[str, float]
    faults: Mapping[str, float]  # Strength of each active fault

    def settings_text(self) -> str:
        """Return lines ``key value``, as testbed/pfsmodel/settings.h reads them."""
        lines = [f"{key} {value!r}" for key, value in self.parameters.items()]
        lines += [f"{FAULT}.{name} {strength!r}" for name, strength in self.faults.items()]
        return "".join(f"{line}\n" for line in lines)

    @property
    def tasks_per_node(self) -> int:
        """Number of tasks on a node of the machine."""
        return int(self.parameters.get(_TASKS_PER_NODE, known_settings()[_TASKS_PER_NODE].usual))

    def with_tasks_per_node(self, tasks: int) -> Model:
        """Return the same machine with another number of tasks on a node."""
        return replace(self, parameters={**self.parameters, _TASKS_PER_NODE: tasks})

    def striped(self, hints: Mapping[str, str]) -> Model:
        """Return the same machine with the targets of a file that the hint ``striping_factor`` asks for."""
        text = hints.get("striping_factor", "0").strip()
        if not text.isdecimal():
            raise EnsioError(f'the hint striping_factor must be a whole number, not "{text}"')
        return self.with_settings({"stripe_count": int(text)}, "striping_factor") if int(text) else self

    def divided_by(self, divisor: int) -> Model:
        """Divide the sizes of caches, windows and stripes of a machine.

        Calls with one `divisor`-th of the bytes then take one `divisor`-th of the time, except for the
        constant cost of a call, and fill the caches like the original calls.
        """
        if divisor == 1:
            return self
        parameters = dict(self.parameters)
        for key, setting in known_settings().items():
            if key.endswith(_BYTES):
                parameters[key] = parameters.get(key, setting.usual) / divisor
                if parameters[key] < setting.least:
                    raise EnsioError(
                        f"{self.path}: at 1/{divisor} {key} is {parameters[key]:g}, below the minimum "
                        f"of {setting.least:g}: choose a smaller divisor"
                    )
        return replace(self, parameters=parameters)

    def with_settings(self, settings: Mapping[str, float], where: str) -> Model:
        """Return the same machine with other settings; messages name `where` they are."""
        known = known_settings() if settings else {}
        checked = {key: _number(where, key, value, known) for key, value in settings.items()}
        return replace(self, parameters={**self.parameters, **checked})

    def faults_text(self) -> str:
        """Return the faults as on the command line: ``ID=STRENGTH``, separated by spaces."""
        return " ".join(f"{name}={strength:g}" for name, strength in self.faults.items())


def read_model(name: str, faults: Iterable[str] = ()) -> Model:
    """Read a model, by its name or path, and set strengths of faults: ``ID=STRENGTH``; 0 is off."""
    path = find_model(name)
    text, keys = read_toml(path)
    known = known_settings()
    parameters, strengths = _checked(path, keys, Lines(text), known)
    for fault in faults:
        key, strength = _asked_for(fault, known)
        strengths[key] = strength
    strengths = {key: strength for key, strength in strengths.items() if strength}
    return Model(path.stem, path, parameters, strengths)


def find_model(name: str) -> Path:
    """Find the file of a model."""
    return named_file("model", name)


def _checked(
    path: Path, keys: Mapping[str, object], lines: Lines, known: Mapping[str, Setting]
) -> tuple[dict[str, float], dict[str, float]]:
    parameters: dict[str, float] = {}
    strengths: dict[str, float] = {}
    for key, value in keys.items():
        if key in _TEXTS:
            if not isinstance(value, str):
                raise EnsioError(f"{_place(path, lines, key)}: {key} must be text in quotes")
        elif key == FAULT and isinstance(value, dict):
            for name, strength in value.items():
                where = _place(path, lines, key, name)
                strengths[name] = _number(where, f"{FAULT}.{name}", strength, known)
        else:
            parameters[key] = _number(_place(path, lines, key), key, value, known)
    return parameters, strengths


def _number(where: str, key: str, value: object, known: Mapping[str, Setting]) -> float:
    if key not in known:
        raise EnsioError(f"{where}: {_unknown(key, known)}")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EnsioError(f"{where}: {key} is {value!r}, it must be a number")
    least, most = known[key].least, known[key].most
    if not least <= value <= most:
        raise EnsioError(f"{where}: {key} is {value}, it must be from {least:g} to {most:g}")
    return float(value)


def _unknown(key: str, known: Mapping[str, Setting]) -> str:
    if key.startswith(f"{FAULT}."):
        name = key.removeprefix(f"{FAULT}.")
        faults = [other.removeprefix(f"{FAULT}.") for other in known if other.startswith(f"{FAULT}.")]
        return f"there is no fault {name} in the model: choose from {', '.join(faults)}"
    return f"there is no key {key}: ensio help pfsmodel lists the keys"


def _asked_for(text: str, known: Mapping[str, Setting]) -> tuple[str, float]:
    """Parse a fault of the command line."""
    name, equals, strength = text.partition("=")
    where = f"--fault {text}"
    if not equals:
        raise EnsioError(f"{where}: write a fault as ID=STRENGTH, such as node-serialisation=1")
    try:
        number = float(strength)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise EnsioError(f'{where}: the strength "{strength}" is not a number')
    return name, _number(where, f"{FAULT}.{name}", number, known)


def _place(path: Path, lines: Lines, *keys: str) -> str:
    line = lines.find(keys)
    return f"{path}:{line}" if line else str(path)
