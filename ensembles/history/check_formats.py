"""The results of checks for other tools: JUnit XML, and Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from ensembles.history.check import Check
from ensembles.model.sanitize_text import sanitize_text

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")


def junit_xml(found: Sequence[Check]) -> bytes:
    """Format checks as a JUnit test suite: an experiment is a test case, and a regression a failure.

    Returns
    -------
    bytes
        XML in UTF-8. An experiment with too few runs is skipped.
    """
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
