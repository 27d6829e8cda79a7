"""Machines in TOML files: those in the folder ``machines``, and others by path."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ensembles.files.toml_files import read_toml
from ensembles.model.errors import EnsioError
from testbed.tapioca.simulate import Machine
from testbed.tapioca.storage import Storage
from testbed.tapioca.topology import Table, topology_of

FOLDER = Path(__file__).with_name("machines")
MIB = 1 << 20


def names() -> list[str]:
    """Return the names of the machines that come with the testbed."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_machine(name: str) -> Machine:
    """Read a machine."""
    path = FOLDER / f"{name}.toml" if name in names() else Path(name)
    _, content = read_toml(path)
    topology, storage = content.pop("topology", {}), content.pop("storage", {})
    try:
        if not isinstance(topology, dict) or not isinstance(storage, dict):
            raise ValueError("[topology] and [storage] are tables")
        title = content.pop("title", path.stem)
        head = Table("machine", content)
        tasks_per_node = head.whole("tasks_per_node")
        head.finish()
        keys = Table("storage", storage)
        found = Storage(
            keys.whole("targets"),
            int(keys.number("stripe_MiB", factor=MIB)),
            keys.number("aggregator_MB_per_s", np.inf, 1e6),
            keys.number("shared_MB_per_s", np.inf, 1e6),
            keys.number("target_MB_per_s", np.inf, 1e6),
            keys.number("read_factor", 1.0),
        )
        keys.finish()
        return Machine(str(title), topology_of(topology), tasks_per_node, found)
    except ValueError as error:
        raise EnsioError(f"{path}: {error}") from None
