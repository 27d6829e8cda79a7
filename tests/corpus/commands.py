"""Which command lines are run on which run; ``{run}`` is its name."""

from __future__ import annotations

from .declared import Declared

ALL = (
    "info {run} --json",
    "events {run} --format jsonl",
    "phases {run} --json",
    "ordinals {run} --json",
    "rate {run} --json",
    "files {run} --json",
    "ranks {run} --json",
    "requests {run} --json",
    "pattern {run} --json",
    "diagnose {run} --json",
    "modes {run} --json",
    "tail {run} --json",
)
"""On each run."""

OF_OP = (
    "modes {run} --op {op} --json",
    "tail {run} --op {op} --tasks 1024 --json",
    "split {run} --op {op} --json",
)
"""On each run with an operation."""

BY_TAG = {
    "whole": (
        "ordinals {run} --op {op} --json",
        "rate {run} --op {op} --json",
        "modes {run} --op {op} --per-byte --json",
        "modes {run} --op {op} --limit 16GB/s --tasks 64 --json",
        "tail {run} --op {op} --tasks 16 --json",
        "tail {run} --op {op} --tasks 256 --level 0.5 --json",
        "tail {run} --op {op} --per-byte --json",
        "split {run} --op {op} --calls 1,3 --tasks 256 --json",
    ),
    "backtest": (
        "tail {run} --op {op} --backtest --json",
        "tail {run} --op {op} --tasks 64 --backtest --json",
    ),
    "structure": (
        "phases {run} --by steps --json",
        "phases {run} --by barriers --json",
        "phases {run} --op {op} --phase 2-4 --json",
        "ordinals {run} --by phase --json",
        "ordinals {run} --op {op} --per-byte --json",
    ),
    "flights": (
        "modes {run} --quantity flight --json",
        "tail {run} --op {op} --quantity flight --tasks 64 --json",
        "sites {run} --json",
    ),
    "layers": (
        "modes {run} --op {op} --layer posix --json",
        "modes {run} --op {op} --layer mpiio,hdf5 --json",
        "rate {run} --layer posix --json",
        "ordinals {run} --op {op} --layer posix --json",
    ),
    "horizons": tuple(
        f"tail {{run}} --op write --tasks {tasks} --json" for tasks in (16, 256, 2048, 4096, 10240, 102400)
    ),
    "filters": (
        "modes {run} --size 4KiB --json",
        "modes {run} --size 64KiB..1MiB --per-byte --json",
        "modes {run} --op write --per-byte --json",
        "tail {run} --op write --size 4MiB --json",
        "rate {run} --rank 0-3,8 --json",
        "phases {run} --time 0.01..0.05 --json",
        "events {run} --where ordinal=2-3 --rank 5 --format csv",
        "events {run} --phase 3 --call pwrite --limit 7",
        "events {run} --file */nosuch.dat --format jsonl",
        "ordinals {run} --op write --file */shared.dat --size 64KiB --json",
        "events {run} --slowest 3 --format jsonl",
        "events {run} --slowest 1% --op write --format jsonl",
        "files {run} --op write --by bytes --json",
        "ranks {run} --rank 0-3 --by calls --json",
    ),
    "export": (
        "export {run} --to csv made-{run}.csv",
        "export {run} --to csv made-{run}-writes.csv --op write",
        "export {run} --to perfetto made-{run}.json",
        "export {run} --to parquet made-{run}.parquet",
        "export {run} --to hdf5 made-{run}.h5",
        "info made-{run}.h5 --json",
        "export {run} --to otf2 made-{run}-otf2",
        "events made-{run}-otf2 --format jsonl",
    ),
    "report": ("report {run} -o made-{run}.html --json",),
    "collect": ("collect {run} -o made-{run}.h5", "events made-{run}.h5 --format jsonl"),
}
"""Further ones on runs with a tag."""

LARGE = (
    "info {run} --json",
    "phases {run} --json",
    "ordinals {run} --json",
    "rate {run} --json",
    "files {run} --json",
    "ranks {run} --json",
    "diagnose {run} --json",
    "modes {run} --json",
)
"""On runs with the tag large, in place of ALL and OF_OP."""


def lines_of(run: Declared) -> tuple[str, ...]:
    """The command lines of a run, each once."""
    lines = list(LARGE if "large" in run.tags else (*ALL, *OF_OP) if run.op else ALL)
    for tag, more in BY_TAG.items():
        lines += more if tag in run.tags else ()
    for asked in run.asked:
        command, _, rest = asked.partition(" ")
        lines.append(f"{command} {{run}} {rest} --json")
    return tuple(dict.fromkeys(line.format(run=run.name, op=run.op) for line in lines))
