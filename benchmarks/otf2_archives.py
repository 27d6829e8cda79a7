"""Measure the writing and reading of OTF2 archives against the Python bindings of OTF2 in the same run.

CPU time is given separately for Python and for ensio-otf2 (all of its processes and threads); it does not
depend on the load of the machine. Wall time uses all processors and is meaningful on an idle machine only.
The bindings write and read the same records (Enter, begin, complete, Leave; an offset as attribute).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable

import otf2
from bench import processor_s
from otf2.enums import IoOperationMode, IoParadigmClass, IoParadigmFlag, LocationGroupType, LocationType
from synthetic_runs import synthetic_run
from tabulate import tabulate

import ensembles
from ensembles.readers.foreign.otf2 import source as reader
from ensembles.writers.exchange.otf2 import write_otf2

REPEATS = 3


def best(step: Callable[[int], None], calls: int) -> tuple[float, float, float]:
    """Return ns per call: CPU time of Python and of the program (minimum sum), and minimum wall time."""
    tries, walls = [], []
    for number in range(REPEATS):
        before, began = processor_s(), time.perf_counter()
        step(number)
        walls.append((time.perf_counter() - began) / calls * 1e9)
        tries.append([(after - one) / calls * 1e9 for one, after in zip(before, processor_s(), strict=True)])
    own, program = min(tries, key=sum)
    return own, program, min(walls)


def write_by_bindings(folder: str, calls: int) -> None:
    """Write an archive with one location."""
    with otf2.writer.open(folder, timer_resolution=1_000_000_000) as trace:
        root = trace.definitions.system_tree_node("machine")
        paradigm = trace.definitions.io_paradigm("POSIX", "POSIX", IoParadigmClass.SERIAL, IoParadigmFlag.OS)
        handle = trace.definitions.io_handle(
            "", file=trace.definitions.io_regular_file("/data/a", scope=root), io_paradigm=paradigm
        )
        offset = trace.definitions.attribute("Offset", type=otf2.enums.Type.UINT64)
        region = trace.definitions.region("write")
        group = trace.definitions.location_group(
            "rank 0", system_tree_parent=root, location_group_type=LocationGroupType.PROCESS
        )
        location = trace.definitions.location("thread", type=LocationType.CPU_THREAD, group=group)
        events = trace.event_writer_from_location(location)
        for number in range(calls):
            begin = 1000 * number
            events.enter(begin, region)
            events.io_operation_begin(
                begin, handle, IoOperationMode.WRITE, 0, 65536, number, attributes={offset: 65536 * number}
            )
            events.io_operation_complete(begin + 500, handle, 65536, number)
            events.leave(begin + 500, region)


def read_by_bindings(folder: str) -> int:
    """Read the complete operations, and return their number."""
    begun, rows = {}, []
    with otf2.reader.open(os.path.join(folder, "traces.otf2")) as trace:
        for location, event in trace.events:
            if isinstance(event, otf2.events.IoOperationBegin):
                offset = next(iter(event.attributes.values())) if event.attributes else -1
                begun[event.matching_id] = (event.time, event.bytes_request, offset)
            elif isinstance(event, otf2.events.IoOperationComplete):
                rows.append(
                    (
                        location.group.name,
                        event.handle,
                        *begun.pop(event.matching_id),
                        event.bytes_result,
                        event.time,
                    )
                )
    return len(rows)


def cost_of_locations(folder: str, tasks: int) -> list[tuple[object, ...]]:
    """Return files, bytes and seconds of archives of many ranks, by ranks per location."""
    run_folder = os.path.join(folder, "many")
    synthetic_run(run_folder, tasks, 2)
    run, rows = ensembles.open(run_folder), []
    for ranks in (1, 8, 64):
        path = os.path.join(folder, f"many-{ranks}")
        began, before = time.perf_counter(), sum(processor_s())
        write_otf2(run, path, ranks)
        wall_s, used = time.perf_counter() - began, sum(processor_s()) - before
        sizes = [
            os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names
        ]
        disk = sum(
            os.stat(os.path.join(place, name)).st_blocks * 512
            for place, _, names in os.walk(path)
            for name in names
        )
        rows.append(
            (
                ranks,
                f"{len(sizes):,}",
                f"{sum(sizes) / 2**20:.1f}",
                f"{disk / 2**20:.1f}",
                f"{used:.1f}",
                f"{wall_s:.1f}",
            )
        )
    return rows


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description="Measure the writing and reading of OTF2 archives.")
    parser.add_argument(
        "--tasks",
        type=int,
        default=10_240,
        help="tasks of the run whose files are counted (default: %(default)s)",
    )
    parser.add_argument(
        "--calls", type=int, default=500_000, help="calls of each of 4 tasks (default: %(default)s)"
    )
    parser.add_argument("--directory", help="folder of the archives (default: temporary)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-otf2-", dir=args.directory) as folder:
        synthetic_run(os.path.join(folder, "run"), 4, args.calls)
        run = ensembles.open(os.path.join(folder, "run"))
        calls, few = run.reading.most_events, max(args.calls // 50, 1000)
        chunks = best(lambda _: sum(map(len, run.chunks(1 << 18))), calls)
        ours = {
            "written": best(lambda number: write_otf2(run, os.path.join(folder, f"a{number}")), calls),
            "read": best(
                lambda _: sum(
                    len(block["rank"]) for block in reader.read(os.path.join(folder, "a0")).blocks(1 << 20)
                ),
                calls,
            ),
        }
        theirs = {
            "written": best(lambda number: write_by_bindings(os.path.join(folder, f"b{number}"), few), few),
            "read": best(lambda _: read_by_bindings(os.path.join(folder, "b0")), few),
        }
        print(f"{calls:,} calls, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}")
        print(f"reading the spools takes {sum(chunks[:2]):.0f} ns per call of the Python time of writing\n")
        rows = []
        for what, (own, program, wall) in ours.items():
            base = sum(theirs[what][:2])
            rows.append(
                (
                    what,
                    f"{program:.0f}",
                    f"{own:.0f}",
                    f"{1e3 / (program + own):.1f}",
                    f"{wall:.0f}",
                    f"{1e3 / wall:.1f}",
                    f"{base:,.0f}",
                    f"{base / (program + own):.0f}",
                )
            )
        heads = (
            "",
            "ensio-otf2, CPU ns per call",
            "Python, CPU ns",
            "M calls per CPU s",
            "wall ns",
            "M calls/s (wall)",
            "bindings, CPU ns",
            "ratio of CPU time",
        )
        print(tabulate(rows, heads, disable_numparse=True))
        heads = ("ranks per location", "files", "MiB", "MiB on disk", "CPU s", "wall s")
        print(f"\n{args.tasks:,} tasks with 2 calls each\n")
        print(tabulate(cost_of_locations(folder, args.tasks), heads, disable_numparse=True))


if __name__ == "__main__":
    main()
