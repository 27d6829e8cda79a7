"""``ensio try``: make a recorded run again with a remedy and without it, in turns."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.history_options import add_place, open_history
from ensembles.cli.options import add_json, add_output, add_run, parse_count, warn
from ensembles.cli.predict import add_calibration, predicted
from ensembles.cli.questions import show
from ensembles.cli.replay_of_run import (
    Replay,
    add_directory,
    add_launcher,
    add_run_arguments,
    add_with,
    read_replay,
)
from ensembles.cli.replay_program import interrupt_on_signals
from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text, seconds_text
from ensembles.passes.progress import advance, announced
from ensembles.recorder.run_directory import new_run_directory

if TYPE_CHECKING:
    from ensembles.answers.trial import TrialAnswer
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.remedies import Remedy


_CONTROLS, _FEWEST_PAIRS, _MOST_PAIRS = 3, 5, 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_with(parser, required=True)
    add_calibration(parser)
    add_directory(parser, "an empty one; default: a new one in the current folder")
    add_output(
        parser, "DIR", "folder to keep the records of the replays in (default: remove them)", what="folder"
    )
    parser.add_argument(
        "--time",
        dest="most_s",
        metavar="SECONDS",
        type=parse_count("seconds", least=1),
        default=600,
        help="no more pairs of replays than fit into this time; five are the least (default: %(default)s)",
    )
    add_launcher(parser)
    add_run_arguments(parser)
    add_place(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Measure the gain; return 1 if the replay does not stand for the run, or the contents differ."""
    from ensembles.run.open import open_as
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.remedies import remedy_named
    from ensembles.workloads.recorded.target import empty_folder

    remedy = remedy_named(args.remedy)
    interrupt_on_signals()
    with ExitStack() as stack:
        folder = stack.enter_context(empty_folder(args.directory, keep=False))
        whole = read_replay(args, args.run, folder)
        changed = replace(whole, found=remedy.apply(whole.found))
        if args.output is None:
            records = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ensio-try-")))
        else:
            records = new_run_directory(args.output, "try")
        rounds = _Rounds(whole, changed, records)
        run = open_as(Run, args.run)
        found = rounds.measure(args, remedy, run)
        if args.db and found.refused is None and found.predicted is not None:
            rounds.keep(args, found)
    status = show(args, found)
    return status or int(found.refused is not None or found.same_contents is False)


class _Rounds:
    """Replays in turns, with their records in a folder."""

    def __init__(self, whole: Replay, changed: Replay, records: Path) -> None:
        from ensembles.workloads.recorded.remedies import changed_names

        self.whole, self.changed, self.records = whole, changed, records
        self.names = changed_names(whole.found, changed.found)
        self.contents: dict[str, dict[str, str]] = {}
        self.paths: dict[str, list[Path]] = {"without": [], "with": []}

    def once(self, which: str) -> tuple[float, float]:
        """Make one replay in the empty folder."""
        from ensembles.workloads.recorded.target import empty

        replay = self.whole if which == "without" else self.changed
        empty(replay.folder)
        directory = self.records / f"{which}-{len(self.paths[which]) + 1}"
        directory.mkdir()
        times_s = replay.once(directory, names=self.names)
        self.paths[which].append(directory)
        if which not in self.contents:
            self.contents[which] = replay.contents(self.changed.found)
        advance(1)
        return times_s

    def measure(self, args: argparse.Namespace, remedy: Remedy, run: Run) -> TrialAnswer:
        """Make the control, then pairs until they decide or the time is over."""
        from ensembles.answers.trial import TrialAnswer, accounts_beside, decides, stands_for
        from ensembles.diagnosis.diagnose import diagnose
        from ensembles.diagnosis.limits import FAR
        from ensembles.model.levels import A_TENTH
        from ensembles.workloads.recorded.costs import spread_of, times_s

        recorded = diagnose(run)
        before = self.whole.found
        low, high = spread_of(before, A_TENTH)
        factors = (1.0, max(low, 1 / FAR), min(high, FAR))
        recorded_s, *ends_s = (times_s(before, each * before.duration, self.names) for each in factors)
        recorded_range_s = tuple(zip(*ends_s, strict=True))
        begin_s = time.monotonic()
        pairs: list[tuple[float, float]] = []
        fewest = _CONTROLS + 2 * _FEWEST_PAIRS
        warn(
            f"note: {count_text(len(before), 'call')} are made again {fewest} times or more in "
            f"{self.whole.folder}, each in {seconds_text(recorded_s[0])} and the time to make files before"
        )
        with announced("making again", args.run, fewest, "replays"):
            control = [self.once("without")]
            needed_s = fewest * (time.monotonic() - begin_s)
            if needed_s > args.most_s:
                raise EnsioError(
                    f"a trial of this run takes about {seconds_text(needed_s)}: give that to --time"
                )
            control += [self.once("without") for _ in range(1, _CONTROLS)]
            while stands_for(recorded_range_s, control) and len(pairs) < _MOST_PAIRS:
                order = ("without", "with") if len(pairs) % 2 == 0 else ("with", "without")
                made = {which: self.once(which) for which in order}
                pairs.append((made["without"][0], made["with"][0]))
                if len(pairs) < _FEWEST_PAIRS:
                    continue
                if decides([one - other for one, other in pairs]) or remedy.name == "none":
                    break
                if time.monotonic() - begin_s > args.most_s:
                    break
        prediction = predicted(args, self.whole.found, self.changed.found)
        return TrialAnswer(
            run=args.run,
            remedy=remedy.name,
            recorded_s=recorded_s,
            recorded_range_s=recorded_range_s,
            control_s=tuple(control),
            pairs_s=tuple(pairs),
            predicted=prediction.gain,
            finding=prediction.finding,
            same_contents=self.contents["without"] == self.contents["with"] if pairs else None,
            calls=(len(self.whole.found), len(self.changed.found)),
            entries=accounts_beside(recorded, *self.middle(pairs)) if pairs else (),
            conditions={"cache": args.cache, "think_time": args.think_time},
            lost_s=before.lost_s,
            notes=self.changed.found.notes,
        )

    def keep(self, args: argparse.Namespace, found: TrialAnswer) -> None:
        """Add the pair of prediction and measurement to the history, as labels of a replay."""
        from ensembles.history.record import RunRecord

        _, replay = self.middle(found.pairs_s)
        system = replay.info.filesystem_of(str(self.changed.folder))
        labels = {
            "run": args.run,
            "with": found.remedy,
            "file-system": "" if system is None else system.type,
            "predicted_s": " ".join(map(repr, (found.predicted or ())[:2])),
            "measured_s": repr(found.gain_s),
        }
        open_history(args, first=args.run).add(RunRecord.of_run(replay), "ensio try", labels)

    def middle(self, pairs: Sequence[tuple[float, float]]) -> tuple[Run, Run]:
        """Open the records of the pair of median gain, without the remedy and with it."""
        from ensembles.answers.trial import middle_pair
        from ensembles.run.open import open_as
        from ensembles.run.run import Run

        number = middle_pair(pairs)
        paths = self.paths["without"][_CONTROLS + number], self.paths["with"][number]
        without, with_it = (open_as(Run, str(path)) for path in paths)
        return without, with_it
