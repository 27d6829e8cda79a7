"""A history as static pages, which need no server of ours and no network."""

from __future__ import annotations

import os

from ensembles.files.atomic_write import followed, temporary_file
from ensembles.history.store import History
from ensembles.viz.history.data import experiment_data
from ensembles.viz.history.pages import (
    SCRIPT,
    all_experiments_page,
    checked,
    experiment_page,
    experiment_rows,
    no_runs,
    script_text,
)

INDEX = "index.html"


def write_site(history: History, folder: str) -> list[str]:
    """Write the pages of a history.

    Parameters
    ----------
    folder : str
        Made if it is missing. Pages of an earlier call are replaced.
    """
    rows = experiment_rows(history, checked(history))
    if not rows:
        raise no_runs()
    followed(folder)
    os.makedirs(folder, exist_ok=True)
    _write(os.path.join(folder, SCRIPT), script_text())
    links = {row.check.experiment: f"experiment-{number}.html" for number, row in enumerate(rows, 1)}
    written = [os.path.join(folder, link) for link in links.values()]
    for row, path in zip(rows, written, strict=True):
        _write(path, experiment_page(experiment_data(history, row.check), INDEX))
    index = os.path.join(folder, INDEX)
    _write(index, all_experiments_page(rows, links, len(history.experiments())))
    return [index, *written]


def _write(path: str, text: str) -> None:
    with temporary_file(path) as descriptor, open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode(errors="replace"))
