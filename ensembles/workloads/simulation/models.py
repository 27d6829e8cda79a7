"""Models of parallel file systems: a machine's parameters from a TOML file, faults from the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ensembles.files.toml_files import read_toml
from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import install_prefixes
from ensembles.workloads.patterns.toml_tables import Lines
from ensembles.workloads.simulation.program import Setting, known_settings

FAULT = "fault"

_BYTES = ("_MiB", "_KiB")
"""How keys end whose values are amounts of data."""

_TASKS_PER_NODE = "tasks_per_node"

_TEXTS = ("title", "source")
"""Keys whose texts are for people."""


@dataclass(frozen=True)
class Model:
    """A model of a parallel file system.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    path : Path
    parameters : dict of str to float
        As the file gives them; the others have the values that the program knows.
    faults : dict of str to float
        Strength of each fault that is on: those of the file, and those that were asked for.
    """

    name: str
    path: Path
    parameters: Mapping[str, float]
    faults: Mapping[str, float]

    def settings_text(self) -> str:
        """Lines ``key value``, as testbed/pfsmodel/settings.h reads them."""
        lines = [f"{key} {value!r}" for key, value in self.parameters.items()]
        lines += [f"{FAULT}.{name} {strength!r}" for name, strength in self.faults.items()]
        return "".join(f"{line}\n" for line in lines)

    @property
    def tasks_per_node(self) -> int:
        """How many tasks a node of the machine has."""
        return int(self.parameters.get(_TASKS_PER_NODE, known_settings()[_TASKS_PER_NODE].usual))

    def with_tasks_per_node(self, tasks: int) -> Model:
        """The same machine with so many tasks on each of its nodes."""
        return replace(self, parameters={**self.parameters, _TASKS_PER_NODE: tasks})

    def divided_by(self, divisor: int) -> Model:
        """The same machine with caches, windows and stripes of one `divisor`-th.

        Calls of one `divisor`-th of the bytes then take one `divisor`-th of the time, but for what each takes
        whatever its size, and fill the caches as the large ones did.

        Raises
        ------
        EnsioError
            If one of them would become smaller than the model can be.
        """
        if divisor == 1:
            return self
        parameters = dict(self.parameters)
        for key, setting in known_settings().items():
            if key.endswith(_BYTES):
                parameters[key] = parameters.get(key, setting.usual) / divisor
                if parameters[key] < setting.least:
                    raise EnsioError(
                        f"{self.path}: at 1/{divisor} {key} is {parameters[key]:g}, below the least that the "
                        f"model can be, {setting.least:g}: choose a smaller divisor"
                    )
        return replace(self, parameters=parameters)

    def faults_text(self) -> str:
        """The faults as on the command line: ``ID=STRENGTH``, with blanks between them."""
        return " ".join(f"{name}={strength:g}" for name, strength in self.faults.items())


def read_model(name: str, faults: Iterable[str] = ()) -> Model:
    """Read a model, and switch faults on.

    Parameters
    ----------
    name : str
        A path (with a ``/``, or ending in ``.toml``), or the name of a model that comes with ensio.
    faults : iterable of str
        ``ID=STRENGTH``: instead of the strength that the file gives, if any; 0 switches the fault off.

    Raises
    ------
    EnsioError
        There is no such model, or a key, a number or a fault in it makes no sense.
    """
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
    """The file of a model.

    Raises
    ------
    EnsioError
        No model of that name came with ensio.
    """
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    folders = [prefix / "share" / "ensio" / "models" for prefix in install_prefixes()]
    for folder in folders:
        if (folder / f"{name}.toml").is_file():
            return folder / f"{name}.toml"
    names = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
    raise EnsioError(f"{name}: no such model: it may be {', '.join([*names, 'the path of a TOML file'])}")


def _checked(
    path: Path, keys: Mapping[str, object], lines: Lines, known: Mapping[str, Setting]
) -> tuple[dict[str, float], dict[str, float]]:
    parameters: dict[str, float] = {}
    strengths: dict[str, float] = {}
    for key, value in keys.items():
        if key in _TEXTS:
            if not isinstance(value, str):
                raise EnsioError(f"{_place(path, lines, key)}: {key} must be a text")
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
        return f"there is no fault {name} in the model: it may be {', '.join(faults)}"
    return f"there is no key {key}: docs/reference/pfsmodel.md lists those that there are"


def _asked_for(text: str, known: Mapping[str, Setting]) -> tuple[str, float]:
    """A fault of the command line."""
    name, equals, strength = text.partition("=")
    where = f"--fault {text}"
    if not equals:
        raise EnsioError(f"{where}: a fault is ID=STRENGTH, such as node-serialisation=1")
    try:
        number = float(strength)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise EnsioError(f'{where}: the strength "{strength}" is no number')
    return name, _number(where, f"{FAULT}.{name}", number, known)


def _place(path: Path, lines: Lines, *keys: str) -> str:
    line = lines.find(keys)
    return f"{path}:{line}" if line else str(path)
