"""What failed calls of a run have in common, in words: functions, errors, files, tasks and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ensembles.model.error_names import error_name
from ensembles.model.units import MOST_NAMED, NS_PER_S, seconds_text
from ensembles.summaries.failed_calls import FailedCalls

_SEARCHES = {
    "ENOENT": "no such file or link",
    "EINVAL": "no such file or link",
    "ENOTDIR": "not a directory",
    "EBADF": "closed what was not open",
}
"""What a program learned by a call that failed and lost nothing; EINVAL is of reads of links."""
_READS_OF_LINKS = ("readlink", "readlinkat")
_OPS_WITH_DATA = ("write", "sync", "close")
_CLOSES_OF_HDF5 = ("H5Fclose", "H5Dclose")
"""Those of other objects, such as attributes, hold no data of the file that could be lost."""

_TRIED_AGAIN = ("EAGAIN", "EINTR")
_COPIES = ("copy_file_range", "sendfile", "splice")
_NOT_HERE = ("EBADF", "EINVAL", "ENOSYS", "EOPNOTSUPP", "EXDEV")
"""Where the kernel cannot copy, such as between these file systems or to the end of a file, programs do."""
_RANKS_OF_OPS = {"open": 1, "meta": 2}


def failed_calls_json(failed: FailedCalls, files: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows of functions and errnos: failures of data first, then of opens, then searches."""
    rows = [
        {
            "call": kind.call.name,
            "layer": kind.call.layer,
            "op": kind.call.op,
            "error": error_name(kind.error) if kind.error else None,
            "count": kind.calls,
            "files": kind.files,
            "file": files[kind.file] or None,
            "file_count": kind.file_count,
            "last_file": files[kind.last_file] or None,
            "first_rank": kind.low_rank,
            "last_rank": kind.high_rank,
            "first_s": kind.first_ns / NS_PER_S,
            "last_s": kind.last_ns / NS_PER_S,
            "inside": kind.inside,
        }
        for kind in failed.kinds()
    ]
    for row in rows:
        looks = row["layer"] in ("posix", "stdio") and row["op"] in ("open", "meta")
        is_no_link = row["call"] in _READS_OF_LINKS and row["error"] == "EINVAL"
        row["is_search"] = looks and (row["error"] in ("ENOENT", "ENOTDIR") or is_no_link)
        if row["op"] == "close" and not row["files"]:  # a number or id of nothing, in a clean-up
            row["is_search"] = row["error"] == "EBADF" or (row["error"] is None and row["layer"] == "hdf5")
    return sorted(rows, key=lambda row: (row["is_search"], _RANKS_OF_OPS.get(row["op"], 0)))


def failure_sentences(rows: Sequence[Mapping[str, Any]], tasks: int) -> list[str]:
    """Say what failed: a sentence for each function and errno, and one for all searches of files."""
    others = [row for row in rows if not row["is_search"]]
    sentences = [_sentence(row, tasks) for row in others[:MOST_NAMED]]
    if len(others) > MOST_NAMED:
        sentences.append("and others: ensio events RUN --where failed")
    learned: dict[str, list[str]] = {}
    for row in rows:
        if row["is_search"]:
            place = f", last on {row['last_file']}" if row["last_file"] else ""
            what = _SEARCHES[row["error"] or "EBADF"]
            learned.setdefault(what, []).append(f"{row['count']:,} × {row['call']}{place}")
    for what, found in learned.items():
        more = "; and others" if len(found) > MOST_NAMED else ""
        sentences.append(f"{what}: {'; '.join(found[:MOST_NAMED])}{more}")
    return sentences


def lost_data_sentence(rows: Sequence[Mapping[str, Any]], tasks: int) -> str:
    """Say which writes, syncs and closes failed, after which files may lack data; ``""``: none.

    A call that failed because one inside it did is not named beside that one: nothing is lost twice.
    """
    lost = [row for row in rows if row["op"] in _OPS_WITH_DATA and not _loses_nothing(row)]
    lost = [row for row in lost if not any(_is_inside(inner, row) for inner in lost)]
    if not lost:
        return ""
    text = "; ".join(_sentence(row, tasks) for row in lost[:MOST_NAMED])
    more = "; and others" if len(lost) > MOST_NAMED else ""
    return f"failed, so that files may lack data: {text}{more} (ensio events RUN --where failed)"


def _loses_nothing(row: Mapping[str, Any]) -> bool:
    path = row["file"] or ""
    return bool(
        row["is_search"]
        or row["error"] in _TRIED_AGAIN
        or (row["call"].startswith(_COPIES) and row["error"] in _NOT_HERE)
        or (row["layer"] == "hdf5" and row["op"] == "close" and not row["call"].startswith(_CLOSES_OF_HDF5))
        or (path.startswith("/dev/") and not path.startswith("/dev/shm/"))
    )


def _is_inside(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Tell by numbers and times whether failed calls were made inside others, which also failed."""
    return bool(
        inner["layer"] != outer["layer"]
        and inner["inside"] >= outer["count"]
        and outer["error"] in (None, inner["error"])
        and outer["file"] in (None, inner["file"])
        and inner["first_rank"] <= outer["first_rank"] <= outer["last_rank"] <= inner["last_rank"]
        and outer["first_s"] <= inner["first_s"]
        and outer["last_s"] <= inner["last_s"]
    )


def _sentence(row: Mapping[str, Any], tasks: int) -> str:
    what = f"{row['count']:,} × {row['error'] or 'an error that the trace does not name'}"
    if row["file"]:
        most = f", {row['file_count']:,} of them" if row["file_count"] < row["count"] else ""
        what += f"{most} on {row['file']}"
    low, high = row["first_rank"], row["last_rank"]
    who = "" if tasks == 1 else f", rank {low}" if low == high else f", ranks {low} to {high}"
    begin, end = seconds_text(row["first_s"]), seconds_text(row["last_s"])
    when = f"at {begin}" if begin == end else f"from {begin} to {end}"
    return f"{row['call']}: {what}{who}, {when}"
