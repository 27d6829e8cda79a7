"""Rates of several runs against the number of tasks, nodes or writers."""

from __future__ import annotations

from ensembles.faces.answer import PlainAnswer
from ensembles.model.statement import Statement, Table
from ensembles.run.scaling import Scaling, label_of


def answer_scaling(found: Scaling) -> PlainAnswer:
    """Show the rates of runs; see `ensembles.run.scaling.scaling`."""
    counted = label_of(found.by, found.direction)
    each = f"a {counted.removesuffix('s')}"
    units = {
        "layer": "",
        "files": "",
        counted: "count",
        "runs": "count",
        "median": "bytes/s",
        "spread": "ratio",
    }
    units |= {each: "bytes/s", "efficiency": "share to 3 digits", "of max.": "share to 3 digits"}
    rows = [
        (
            point.layer,
            point.files,
            point.at,
            len(point.runs),
            round(point.median_bytes_per_s),
            point.spread,
            round(point.median_bytes_per_s / point.at),
            point.efficiency,
            point.share_of_maximum,
        )
        for point in found.points
    ]
    source = "the highest of these runs" if found.maximum_is_measured else "as given"
    direction = "written" if found.direction == "write" else "read"
    said = [
        Statement("scaling.maximum", {"rate": round(found.maximum_bytes_per_s), "source": source}),
        Statement("scaling.spread"),
        Statement("scaling.efficiency", {"each": each, "counted": counted}),
    ]
    listed = [run.path for point in found.points for run in point.runs]
    if len(listed) > len(set(listed)):
        said.append(Statement("scaling.single_tasks"))
    head = Statement("scaling.what", {"direction": direction})
    parts = ((head,), Table.of_rows("row", units, rows, key=3), tuple(said))
    return PlainAnswer("scaling", parts, found.to_json(), tuple(found.notes))
