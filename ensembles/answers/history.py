"""Histories of runs: their experiments and runs, the record of one run, and its place among others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from ensembles.faces.answer import PlainAnswer
from ensembles.history.check import Check, stored_json
from ensembles.history.context import Context
from ensembles.history.record import RunRecord
from ensembles.history.store import Experiment, StoredRun
from ensembles.model.sanitize_text import original_text, sanitize_text
from ensembles.model.statement import Facts, Statement, Table


def answer_experiments(found: Sequence[Experiment]) -> PlainAnswer:
    """List the experiments of a history."""
    units = {"experiment": "", "runs": "count", "latest (UTC)": "time"}
    rows = [(one.name, one.runs, one.latest) for one in found]
    names = [{"experiment": one.name, "runs": one.runs, "latest": one.latest.isoformat()} for one in found]
    return PlainAnswer("history list", (Table.of_rows("experiment", units, rows),), {"experiments": names})


def answer_runs(runs: Sequence[StoredRun]) -> PlainAnswer:
    """List runs of a history."""
    units = {"id": "count", "experiment": "", "start (UTC)": "time", "tasks": "count", "span": "s"}
    rows = [
        (
            run.id,
            run.experiment,
            run.start,
            run.tasks,
            run.span_s,
            " ".join(f"{name}={value}" for name, value in run.labels.items()),
        )
        for run in runs
    ]
    table = Table.of_rows("run", units | {"labels": ""}, rows)
    return PlainAnswer("history list", (table,), {"runs": [stored_json(run) for run in runs]})


def answer_record(record: RunRecord) -> PlainAnswer:
    """Show the record of one run."""
    totals, command = record.totals, " ".join(record.command) or record.program
    said = (
        Statement("history.run", {"path": original_text(record.path), "command": original_text(command)}),
        Statement(
            "history.totals",
            {
                "tasks": record.tasks,
                "nodes": record.nodes,
                "span_s": totals["span_s"],
                "calls": round(totals["calls"]),
                "written": totals["bytes_written"],
                "read": totals["bytes_read"],
            },
        ),
    )
    units = {"layer": "", "op": "", "calls": "count", "time": "s", "longest": "s"}
    rows = [(kind.layer, kind.op, kind.calls, kind.time_s, kind.max_s) for kind in record.kinds]
    findings = tuple(
        Statement("history.finding", {"severity": one.severity, "id": one.id, "title": one.title})
        for one in record.findings
    )
    parts = (said, Table.of_rows("kind of calls", units, rows), findings)
    return PlainAnswer("history show", parts, record_json(record), tuple(record.caveats))


_PREDICTION = {"file system": "", "run": "", "remedy": "", "predicted from": "s", "to": "s", "measured": "s"}


def answer_predictions(runs: Sequence[StoredRun]) -> PlainAnswer:
    """Say how often the measured gain of a remedy was in the predicted interval, by file system."""
    said = [run.labels for run in runs if "predicted_s" in run.labels]
    rows = []
    for each in said:
        low, high, measured = (float(part) for part in f"{each['predicted_s']} {each['measured_s']}".split())
        inside = low <= measured <= high
        rows.append((each["file-system"], each["run"], each["with"], low, high, measured, inside))
    kinds = Counter((row[0], row[-1]) for row in rows)
    parts = tuple(
        Statement("history.predictions", {"of": of, "inside": kinds[of, True], "count": count})
        for of, count in sorted(Counter(row[0] for row in rows).items())
    )
    units = _PREDICTION | {"inside": ""}
    shown = [(*row[:-1], "yes" if row[-1] else "no") for row in rows]
    keys = ("file_system", "run", "with", "low_s", "high_s", "measured_s", "inside")
    values = {"predictions": [dict(zip(keys, row, strict=True)) for row in rows]}
    return PlainAnswer("history show", (parts, Table.of_rows("prediction", units, shown)), values)


def record_json(record: RunRecord) -> dict[str, Any]:
    """Return a record with the names of its fields, also of those that are stored without them."""
    plain: dict[str, Any] = msgspec.structs.asdict(record)
    for name in ("kinds", "phases", "findings"):
        plain[name] = [msgspec.structs.asdict(entry) for entry in plain[name]]
    return plain


def answer_context(found: Context) -> PlainAnswer:
    """Show where a run lies among others."""
    values = {"run": found.run.id, "start": found.run.start, "others": found.others, "among": found.among}
    units = {"value": "", "this run": "s", "least": "s", "median": "s", "greatest": "s", "greater than": ""}
    rows = [
        (one.name, *map(one.text, (one.value, one.low, one.median, one.high)), one.place)
        for one in found.values
    ]
    parts = ((Statement("history.place", values),), Table.of_rows("value", units, rows))
    return PlainAnswer("history context", parts, found.to_json())


_ORDER = ("regression", "incomplete", "improvement", "too-few-runs", "ok")


def answer_checks(found: Sequence[Check]) -> PlainAnswer:
    """Say what checks found, experiment by experiment."""
    checks = [one.to_json() for one in found]
    changes = [{"experiment": one["experiment"]} | change for one in checks for change in one["changes"]]
    worst = min((one.verdict for one in found), key=_ORDER.index)
    values = {"verdict": worst, "changes": changes, "experiments": checks}
    return PlainAnswer("history check", tuple(map(_of_check, found)), values)


def _of_check(found: Check) -> Facts:
    what = {name: getattr(found, name) for name in ("experiment", "verdict", "reason")}
    what |= {"run": found.run.id, "start": found.run.start, "baseline": len(found.baseline)}
    rows: list[tuple[str, Statement | str]] = [("", change.text) for change in found.changes]
    if (known := found.acknowledged) is not None:
        rows.append(("", Statement("history.known", {"since": known.since, "reason": known.reason})))
    return Facts(rows, Statement("history.check", what), width=0, indent=2)


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")


def junit_xml(found: Sequence[Check]) -> bytes:
    """Format checks as a JUnit test suite: an experiment is a test case, and a regression a failure."""
    failures = [one for one in found if one.fails]
    skipped = [one for one in found if one.verdict == "too-few-runs"]
    suite = ElementTree.Element(
        "testsuite",
        name="ensio history check",
        tests=str(len(found)),
        failures=str(len(failures)),
        errors="0",
        skipped=str(len(skipped)),
    )
    for one in found:
        case = ElementTree.SubElement(
            suite, "testcase", classname="ensio.history", name=sanitize_text(one.experiment)
        )
        if one in failures:
            failure = ElementTree.SubElement(
                case, "failure", message=sanitize_text(one.reason), type=one.verdict
            )
            failure.text = "\n".join(change.text for change in one.changes)
        elif one in skipped:
            ElementTree.SubElement(case, "skipped", message=sanitize_text(one.reason))
        else:
            output = ElementTree.SubElement(case, "system-out")
            output.text = "\n".join(
                [f"{one.verdict}: {sanitize_text(one.reason)}", *(change.text for change in one.changes)]
            )
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def markdown(found: Sequence[Check]) -> str:
    """Format checks as a table of GitHub's Markdown; texts of runs are escaped."""
    lines = ["| experiment | verdict | run | what changed |", "|:--|:--|--:|:--|"]
    for one in found:
        told = [_escaped(text) for text in (one.reason, *(change.text for change in one.changes))]
        verdict = f"**{one.verdict}**" if one.fails else one.verdict
        lines.append(f"| {_escaped(one.experiment)} | {verdict} | {one.run.id} | {'<br>'.join(told)} |")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", sanitize_text(text).replace("\n", " "))
