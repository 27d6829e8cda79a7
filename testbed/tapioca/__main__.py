"""Simulate two-phase writes as TAPIOCA and as MPI-IO make them.

Run it as ``python -m testbed.tapioca``. ``table``, ``gains``, ``sweep`` and ``placement`` have the numbers of
the paper; ``run`` simulates writes of your own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from ensembles.model.errors import EnsioError
from ensembles.model.filters import parse_size
from ensembles.model.table import table_text
from testbed.tapioca import paper
from testbed.tapioca.described import hacc, side_by_side
from testbed.tapioca.machine_files import MIB, names, read_machine
from testbed.tapioca.placement import STRATEGIES
from testbed.tapioca.simulate import mpi_io, simulate, tapioca

Rows = list[dict[str, Any]]


def table(args: argparse.Namespace) -> Rows:
    """Table I: rate by the ratio of buffer and stripe."""
    rows = []
    for ratio, published, ours in paper.buffer_stripe(domains=args.domains):
        kind = "fitted" if args.domains == "cyclic" else "predicted"
        row = {"buffer : stripe": "{} : {}".format(*ratio), "kind": kind, "paper GB/s": published}
        rows.append(row | {"simulated GB/s": round(ours, 3), "ratio": round(ours / published, 2)})
    return rows


def gains(args: argparse.Namespace) -> Rows:
    """Rates of TAPIOCA relative to MPI-IO, and shares of the peak."""
    return [_compared(case) | {"paper": case.gain} for case in paper.gains()]


def sweep(args: argparse.Namespace) -> Rows:
    """HACC-IO with 5,000 to 100,000 particles a task, in both layouts."""
    return [_compared(case) for _, _, case in paper.sweep(args.machine, args.nodes)]


def placement(args: argparse.Namespace) -> Rows:
    """Sum of C1 + C2 over the aggregators of HACC-IO, by strategy."""
    case = paper.hacc_io(args.machine, args.nodes, 25_000, "soa")
    costs = paper.placements(case)
    least = costs["topology"]
    return [
        {"placement": name, "C1 + C2 s": round(cost_s, 4), "relative": round(cost_s / least, 4)}
        for name, cost_s in costs.items()
    ]


def run(args: argparse.Namespace) -> Rows:
    """Writes of your own, or a microbenchmark or HACC-IO of any size."""
    machine = read_machine(args.machine)
    if args.stripe:
        machine = machine.with_storage(stripe_bytes=args.stripe)
    if args.particles is not None:
        writes = hacc(args.tasks, args.particles, args.layout)
    else:
        writes = side_by_side(args.tasks, args.bytes)
    rows = []
    striped = paper.STRIPED if machine.storage.targets > 1 else {}
    placed = {"strategy": args.placement, "seed": args.seed}
    for library, settings in (
        ("TAPIOCA", tapioca(args.aggregators, args.buffer, **placed)),
        ("MPI-IO", mpi_io(args.aggregators, args.buffer, **(placed | striped))),
    ):
        out = simulate(writes, machine, settings)
        rows.append(
            {
                "library": library,
                "seconds": round(out.seconds, 6),
                "GB/s": round(out.bytes_per_s / 1e9, 4),
                "rounds": out.rounds,
                "buffer fill": round(out.fill, 3),
                "written MiB": round(out.written_bytes / MIB, 3),
                "read MiB": round(out.read_bytes / MIB, 3),
                "C1 + C2 s": round(sum(found.cost_s for found in out.placements), 6),
            }
        )
    return rows


def _compared(case: paper.Case) -> dict[str, Any]:
    one, other = case.run("tapioca"), case.run("mpi-io")
    return {
        "case": case.name,
        "TAPIOCA GB/s": round(case.GB_per_s(one), 2),
        "of peak": f"{case.share_of_peak(one):.0%}",
        "MPI-IO GB/s": round(case.GB_per_s(other), 2),
        "fill": f"{one.fill:.2f} / {other.fill:.2f}",
        "gain": round(one.bytes_per_s / other.bytes_per_s, 1),
    }


def main(words: list[str] | None = None) -> int:
    """Print what was asked for; 2 if it cannot be simulated."""
    parser = argparse.ArgumentParser(prog="tapioca", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(work: Callable[[argparse.Namespace], Rows]) -> argparse.ArgumentParser:
        made = commands.add_parser(
            work.__name__, help=work.__doc__, description=work.__doc__, allow_abbrev=False
        )
        made.set_defaults(work=work)
        made.add_argument("--json", action="store_true", help="print JSON")
        return made

    command(table).add_argument(
        "--domains",
        choices=("cyclic", "partitions"),
        default="cyclic",
        help="buffers of a round side by side in the file, or a part of the file for each aggregator "
        "(default: %(default)s)",
    )
    command(gains)
    for work in (sweep, placement):
        made = command(work)
        made.add_argument("machine", choices=("mira", "theta"))
        made.add_argument("--nodes", type=_count, default=1024, help="(default: %(default)s)")
    made = command(run)
    made.add_argument(
        "--machine", default="theta", help=f"{', '.join(names())} or a TOML file (default: %(default)s)"
    )
    made.add_argument("--tasks", type=_count, required=True)
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--bytes", type=_size, help="one contiguous piece of this size for each task")
    what.add_argument("--particles", type=_count, help="HACC-IO, with so many particles a task")
    made.add_argument("--layout", choices=("aos", "soa"), default="aos", help="of HACC-IO")
    made.add_argument("--aggregators", type=_count, required=True)
    made.add_argument("--buffer", type=_size, required=True, help="size of an aggregation buffer")
    made.add_argument("--stripe", type=_size, help="size of a stripe (default: the machine's)")
    made.add_argument(
        "--placement", choices=STRATEGIES, default="topology", help="of both (default: %(default)s)"
    )
    made.add_argument("--seed", type=int, default=0, help="of random placement (default: %(default)s)")
    args = parser.parse_args(words)
    try:
        rows = args.work(args)
    except (EnsioError, ValueError) as error:
        print(f"tapioca: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print(table_text(list(rows[0]), [list(row.values()) for row in rows]))
    return 0


def _size(text: str) -> int:
    try:
        return parse_size(text) or _count("0")
    except EnsioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("a whole number from 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
