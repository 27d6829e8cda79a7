"""``ensio replay RUN``: make the calls of a recorded run again."""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.options import parse_path, warn
from ensembles.cli.replay_program import (
    INTERRUPTED,
    find_launcher,
    find_program,
    interrupt_on_signals,
    mpi_environment,
    run_launcher,
)
from ensembles.model.errors import EnsioError
from ensembles.model.units import BYTES_AT_ONCE, bytes_text, count_text, seconds_text
from ensembles.recorder.run_directory import new_run_directory, removed_unless_made, shown

if TYPE_CHECKING:
    from ensembles.workloads.recorded.accesses import Accesses
    from ensembles.workloads.recorded.files_before import FilesBefore
    from ensembles.workloads.recorded.target import Places

_REMEDIES = (
    "join=SIZE, sync=end, sync=every:N, keep-open, once, split=K, align=SIZE, aggregate=WRITERS, even or none"
)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a replay of a recorded run."""
    parser.add_argument(
        "--think-time",
        choices=("keep", "none"),
        default="keep",
        help="of a recorded run: wait between calls as the program did, or not (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        choices=("cold", "warm"),
        default="warm",
        help="of a recorded run: whether files that it read are in memory before (default: %(default)s)",
    )


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """Declare the command that starts tasks."""
    parser.add_argument(
        "--launcher",
        default="mpiexec",
        help="command that starts the tasks; it is given -n N and a program (default: %(default)s)",
    )


def add_directory(parser: argparse.ArgumentParser, where: str) -> None:
    """Declare the folder of the data files."""
    parser.add_argument(
        "--directory", metavar="DIR", type=parse_path("folder"), help=f"folder for the data files ({where})"
    )


def add_with(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Declare the remedy."""
    parser.add_argument(
        "--with",
        dest="remedy",
        metavar="REMEDY",
        default="none",
        required=required,
        help=f"what the recorded program does otherwise: {_REMEDIES} (ensio help workloads)",
    )


@dataclass(frozen=True)
class Replay:
    """A recorded run that can be made again in a folder."""

    run: str  # Its path
    found: Accesses  # Its calls, perhaps with a remedy
    before: FilesBefore  # What has to be there before
    folder: Path
    places: Places  # Of the files in the folder
    launcher: str = "mpiexec"
    is_cold: bool = False
    seed: int = field(default_factory=lambda: secrets.randbits(64))  # Of what is written

    def once(self, directory: Path, quiet: bool = True, names: Sequence[str] = ()) -> tuple[float, float]:
        """Make the calls again, record them in a directory, and return the times that they took (`times_s`).

        It is that of the calls in the record, less what they waited for a processor, and that between them as
        the run had it: what the replay and the recorder take is none of it.
        """
        import numpy as np

        from ensembles.run.open import open_as
        from ensembles.run.run import Run
        from ensembles.workloads.recorded.accesses import read_accesses
        from ensembles.workloads.recorded.costs import times_s, without_waits
        from ensembles.workloads.recorded.plan_of_run import PlanOfRun
        from ensembles.workloads.recorded.target import prepare

        plan = PlanOfRun(self.found)
        prepare(self.before, self.places, self.found.files, self.is_cold)
        path = directory / "replay.plan"
        layers = frozenset(name.partition(".")[0] for name in self.found.names)
        environment = {"ENSIO_BANNER": "none", **mpi_environment(directory, layers)}
        try:
            plan.write(path, self.places.of, self.seed)
            command = [find_program(layers), "--as-recorded", str(path)]
            if self.found.tasks > 1 or self.launcher != "mpiexec":
                command = [*find_launcher(self.launcher), "-n", str(self.found.tasks), *command]
            status, _ = run_launcher(command, environment, quiet)
            waits = {
                int(each.suffix.partition("-")[2]): np.fromfile(each, np.int64).reshape(-1, 2)
                for each in directory.glob(f"{path.name}.waits-*")
            }
        finally:
            for each in directory.glob(f"{path.name}*"):
                each.unlink()
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            raise EnsioError(f"{self.run}: its replay failed (exit status {status}): {shlex.join(command)}")
        made = read_accesses(open_as(Run, str(directory)))
        return times_s(made, without_waits(made, waits), names, self.found)

    def contents(self, by: Accesses) -> dict[str, str]:
        """Return a digest of each file in the folder, by its path below it.

        Where a remedy (`by`) moves bytes to other places, it is of what is written, in the order of the run.
        """
        from ensembles.workloads.recorded.accesses import WRITE

        pieces: dict[str, set[tuple[int, int, int]]] = {}
        if by.source is not None:
            found = self.found
            source = found.offset if found.source is None else found.source
            rows = zip(found.file, source, found.offset, found.moved, strict=True)
            for file, *piece in itertools.compress(rows, (found.op == WRITE) & (found.moved > 0)):
                pieces.setdefault(self.places.of(found.files[file]), set()).add(tuple(piece))
        digests = {}
        for place, _, names in os.walk(self.folder):
            for name in names:
                digest = hashlib.blake2b(digest_size=16)
                path = Path(place) / name
                if path.is_symlink() or not path.is_file():
                    continue
                with path.open("rb") as file:
                    for _, at, size in sorted(pieces.get(str(path), ())):
                        file.seek(at)
                        digest.update(file.read(size))
                    while str(path) not in pieces and (chunk := file.read(BYTES_AT_ONCE)):
                        digest.update(chunk)
                digests[str(path.relative_to(self.folder))] = digest.hexdigest()
        return digests


def read_replay(args: argparse.Namespace, run: str, folder: Path) -> Replay:
    """Read a run that is to be made again; refuse what cannot be."""
    import numpy as np

    from ensembles.run.open import open_as
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.accesses import read_accesses
    from ensembles.workloads.recorded.files_before import files_before
    from ensembles.workloads.recorded.target import Places, check_space

    found = read_accesses(open_as(Run, run))
    if args.think_time == "none":
        found = replace(found, gap=np.zeros_like(found.gap))
    before = files_before(found)
    places = Places(folder, (found.files[number] for number in before.ends), run)
    check_space(folder, before)
    if found.tasks > 1:
        find_launcher(args.launcher)
    return Replay(run, found, before, folder, places, args.launcher, args.cache == "cold")


def execute_replay(args: argparse.Namespace) -> int:
    """Make a recorded run again, and record that."""
    from ensembles.workloads.recorded.costs import time_s
    from ensembles.workloads.recorded.remedies import remedy_named
    from ensembles.workloads.recorded.target import empty_folder

    remedy = remedy_named(args.remedy)
    interrupt_on_signals()
    with empty_folder(args.directory, args.keep) as folder:
        whole = read_replay(args, args.pattern, folder)
        changed = replace(whole, found=remedy.apply(whole.found))
        for note in changed.found.notes:
            warn(f"note: {note}")
        warn(f"note: the files need up to {bytes_text(whole.before.needed_bytes)} in {folder}")
        directory = new_run_directory(args.output, Path(args.pattern).name)
        with removed_unless_made(directory):
            replayed_s, _ = changed.once(directory, args.json)
        recorded_s = time_s(whole.found, whole.found.duration)
        result = {
            "run": str(directory),
            "of": args.pattern,
            "with": remedy.name,
            "tasks": whole.found.tasks,
            "calls": len(changed.found),
            "time_s": replayed_s,
            "recorded_s": recorded_s,
            "cache": args.cache,
            "think_time": args.think_time,
            "data": str(folder) if args.keep else None,
            "notes": list(changed.found.notes),
        }
    if args.json:
        print(json.dumps(result))
        return 0
    calls, tasks = count_text(len(changed.found), "call"), count_text(whole.found.tasks, "task")
    made = f"{calls} of {tasks}: {seconds_text(replayed_s)} beside waits for a processor"
    recorded = f"recorded {seconds_text(recorded_s)} with them"
    print(f"{made}, {recorded} ({args.cache} cache, think time: {args.think_time})")
    print(f"recorded in {shown(directory)}{_to_compare(shown(directory), args, changed.found)}")
    return 0


def _to_compare(directory: str, args: argparse.Namespace, found: Accesses) -> str:
    """Return the command that shows a replay without a remedy to be the run, at the level of what it made."""
    if args.remedy != "none":
        return ""
    words = ["ensio", "fingerprint", directory, "--against", args.pattern]
    if found.is_below:
        layers = {name.partition(".")[0] for name in found.with_used_names().names} - {"mpi"}
        words += ["--layer", ",".join(sorted(layers))]
    return f": {shlex.join(words)}"
