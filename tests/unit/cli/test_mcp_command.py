"""``ensio mcp`` answers the client of the official SDK as the commands answer, and only reads."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from commands_here import told
from synthetic_runs import synthetic_run

from ensembles.history.record import RunRecord
from ensembles.history.store import History

pytestmark = pytest.mark.slow


def asked(*calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The tools of the server, and its answers to calls."""
    mcp = pytest.importorskip("mcp")  # which takes a second

    async def ask() -> tuple[list[Any], list[Any]]:
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "ensembles.cli.main", "mcp"])
        async with mcp.Client(server) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, values) for name, values in calls]

    return asyncio.run(ask())


@pytest.fixture
def run(tmp_path: Path) -> str:
    synthetic_run(tmp_path / "run", 6, 62, seed=3, phases=4)
    return str(tmp_path / "run")


def answer_of(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    found: dict[str, Any] = json.loads(result.content[0].text)
    found.pop("messages", None)
    return found


def test_tools_answer_as_the_commands_do(run: str, tmp_path: Path) -> None:
    database = str(tmp_path / "runs.db")
    import ensembles

    History(database, make=True).add(RunRecord.of_run(ensembles.open(run)), "nightly", {})
    before = sorted(path.name for path in tmp_path.rglob("*"))
    tools, answers = asked(
        ("info", {"run": run}),
        ("diagnose", {"run": run}),
        ("compare", {"baseline": [run], "new": [run]}),
        ("history", {"database": database, "experiment": "nightly"}),
    )
    assert [tool.name for tool in tools] == ["info", "diagnose", "compare", "history"]
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    commands = (("info", run), ("diagnose", run), ("compare", run, "--with", run))
    commands += (("history", "check", f"--db={database}", "--experiment=nightly"),)
    assert [answer_of(each) for each in answers] == [told(*command) for command in commands]
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_refusal_is_the_sentence_of_the_command(run: str) -> None:
    _, (missing, option) = asked(("info", {"run": f"{run}-2"}), ("diagnose", {"run": "--help"}))
    assert missing.is_error
    assert "run-2" in missing.content[0].text
    assert option.is_error
    assert "--help" in option.content[0].text
