"""``ensio predict``: what a remedy would gain, without making the run again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.options import add_json, add_run, parse_path
from ensembles.cli.questions import show
from ensembles.cli.replay_of_run import add_with

if TYPE_CHECKING:
    from ensembles.answers.predict import PredictionAnswer
    from ensembles.workloads.recorded.accesses import Accesses


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """Declare the run with measured costs."""
    parser.add_argument(
        "--calibration",
        metavar="RUN",
        type=parse_path("run"),
        help="run of ensio calibrate-fs on the file system in question: what calls cost there",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_with(parser, required=True)
    add_calibration(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Predict; return 1 if that is refused."""
    from ensembles.run.open import open_as
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.accesses import read_accesses
    from ensembles.workloads.recorded.remedies import remedy_named

    remedy = remedy_named(args.remedy)
    before = read_accesses(open_as(Run, args.run))
    found = predicted(args, before, remedy.apply(before))
    return show(args, found) or int(found.gain is None)


def predicted(args: argparse.Namespace, before: Accesses, after: Accesses) -> PredictionAnswer:
    """Predict the gain of a run whose calls, and those with the remedy, are read."""
    from ensembles.answers.predict import predict
    from ensembles.diagnosis.diagnose import diagnose
    from ensembles.diagnosis.finding import Gain
    from ensembles.diagnosis.trials import changed_share
    from ensembles.model.levels import A_TENTH
    from ensembles.run.open import open_as
    from ensembles.run.run import Run
    from ensembles.workloads.recorded.accesses import read_accesses
    from ensembles.workloads.recorded.costs import costs_of, gain_s

    measured = read_accesses(open_as(Run, args.calibration)) if args.calibration else before
    by_calls = gain_s(before, after, costs_of(measured), A_TENTH)
    run = open_as(Run, args.run)
    return predict(
        diagnose(run),
        args.remedy,
        by_calls if isinstance(by_calls, str) else Gain(*by_calls),
        lambda each: changed_share(run, each, before, after),
        args.calibration or "",
    )
