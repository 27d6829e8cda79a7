"""Write a synthetic run directory, for example ``DIR --tasks 10240 --events-per-task 1000``."""

from __future__ import annotations

import argparse

from ensembles.workloads.synthetic import synthetic_run


def main() -> None:
    """Write the run."""
    parser = argparse.ArgumentParser(description="Write a run directory of synthetic spools.")
    parser.add_argument("directory", help="run directory to create")
    parser.add_argument("--tasks", type=int, default=64, help="default: %(default)s")
    parser.add_argument("--events-per-task", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    args = parser.parse_args()
    synthetic_run(args.directory, args.tasks, args.events_per_task, args.seed)


if __name__ == "__main__":
    main()
