"""Write runs whose causes are measured as a data set: runs, truth, answers, scorer and a card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from darshan_log_of_run import write_log
from tabulate import tabulate

from calibration.evaluate import scorer
from calibration.evaluate.drishti import answer_of
from calibration.page import ROOT
from ensembles.model.units import bytes_text


def write_dataset(folder: Path, made: str, runs: Iterable[tuple[Path, scorer.Judged]]) -> None:
    """Move runs to a new folder, and write what belongs to them."""
    for part in ("runs", "darshan", "answers"):
        (folder / part).mkdir(parents=True)
    truth, answers = {}, {}
    for path, judged in runs:
        truth[path.name], answers[path.name] = judged.truth, judged.said
        shutil.move(path, folder / "runs" / path.name)
        write_log(folder / "runs" / path.name, folder / "darshan" / f"{path.name}.darshan")
    tools = {"ensio": answers}
    if shutil.which("drishti"):
        tools["Drishti"] = {name: answer_of(folder / "darshan" / f"{name}.darshan") for name in truth}
    _write(folder / "truth.json", truth)
    for tool, said in tools.items():
        _write(folder / "answers" / f"{tool}.json", said)
    shutil.copy(scorer.__file__, folder / "score.py")
    columns = [
        scorer.measures([scorer.Judged(truth[name], said[name]) for name in truth]) for said in tools.values()
    ]
    rows = [(cells[0][0], *(cell[1] for cell in cells)) for cells in zip(*columns, strict=True)]
    card = (
        (Path(__file__).with_name("card.md"))
        .read_text()
        .format(
            runs=len(truth),
            healthy=sum(not one["causes"] for one in truth.values()),
            size=bytes_text(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())),
            made=made,
            licence=(ROOT / "LICENSE").read_text().partition("\n")[0],
            results=tabulate(rows, ("measure", *tools), tablefmt="pipe", disable_numparse=True),
        )
    )
    (folder / "README.md").write_text(card)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")
