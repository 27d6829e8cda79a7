"""The public names of a run: few enough for a person to see them all at the press of a key."""

from pathlib import Path

from synthetic_runs import synthetic_run

import ensembles as en

MOST = 26

USED = {
    *(
        "path",
        "tasks",
        "calls",
        "files",
        "mode",
        "notes",
        "counters",
        "info",
        "reading",
        "length_s",
        "unseen",
    ),
    *("events", "select", "ensemble", "chunks", "summarize", "summary", "regions", "phases", "surroundings"),
    *("rate", "ordinals", "by_file", "by_rank", "by_site", "report"),
}


def test_a_run_has_at_most_26_public_names(tmp_path: Path) -> None:
    synthetic_run(tmp_path / "run", tasks=2, events_per_task=10)
    run = en.open(tmp_path / "run")
    assert len(run.events) == 20  # attributes that appear with use count, too
    names = {name for name in dir(run) if not name.startswith("_")}
    assert names == USED
    assert len(names) <= MOST
