"""Makes a synthetic run directory, for example with ``DIR --tasks 10240 --events-per-task 1000``."""

from __future__ import annotations

import argparse

from ensembles.workloads.synthetic import synthetic_run


def main() -> None:
    """Write the run that the arguments describe."""
    parser = argparse.ArgumentParser(description="Writes a run directory of synthetic spools.")
    parser.add_argument("directory")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--events-per-task", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    synthetic_run(args.directory, args.tasks, args.events_per_task, args.seed)


if __name__ == "__main__":
    main()
