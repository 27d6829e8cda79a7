"""``ensio mcp``: answers for programs that read for people, by the Model Context Protocol."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from ensembles.model import __version__

DESCRIPTION = (
    "Serve the answers of ensio info, diagnose, compare and history check to an assistant, as tools of the "
    "Model Context Protocol over standard input and output. The tools only read. Needs the package mcp."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command, of which there are none."""


def execute(args: argparse.Namespace) -> int:
    """Serve until standard input is closed."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer(
        "ensio",
        instructions="I/O of parallel programs: ask diagnose first, which says why a run is slow.",
        version=__version__,
    )
    for tool in (info, diagnose, compare, history):
        server.tool(annotations=ToolAnnotations(read_only_hint=True))(tool)
    server.run()
    return 0


def info(run: str) -> dict[str, Any]:
    """What ran, how long, how much I/O by function, layer and size, and what was not recorded.

    `run` is the path of a run directory, a trace.h5, or a trace of Darshan, DFTracer, OTF2, Recorder, strace.
    """
    return _answer("info", _path(run))


def diagnose(run: str) -> dict[str, Any]:
    """Why the I/O of a run is slow: the account of its time, and findings with evidence, gain and advice.

    `run` is a path as of info. The strongest finding is first; `not_examined` says what one run cannot show.
    """
    return _answer("diagnose", _path(run))


def compare(baseline: list[str], new: list[str]) -> dict[str, Any]:
    """Whether runs are slower than others, by how much and where. Both are lists of paths, as of info.

    Several baselines show how much runs vary; with one run each the answer assumes it.
    """
    return _answer("compare", *map(_path, baseline), "--with", *map(_path, new))


def history(database: str, experiment: str | None = None) -> dict[str, Any]:
    """Whether the latest run of each experiment (or of one) differs from those before it.

    `database` is a SQLite file or a URL, as made by ensio history add.
    """
    chosen = () if experiment is None else (f"--experiment={experiment}",)
    return _answer("history", "check", f"--db={database}", *chosen)


def _path(text: str) -> str:
    """Return a path that no parser takes for an option."""
    return f"./{text}" if text.startswith("-") else text


def _answer(command: str, *words: str) -> dict[str, Any]:
    """Return the JSON of a command, which runs as a process, as standard output belongs to the protocol."""
    line = (sys.executable, "-m", "ensembles.cli.main", command, *words, "--json")
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        from mcp.server.mcpserver.exceptions import ToolError

        raise ToolError(done.stderr.strip() or f"ensio {command} ended with status {done.returncode}")
    messages = done.stderr.splitlines()
    found: dict[str, Any] = json.loads(done.stdout)
    return found | ({"messages": messages} if messages else {})
