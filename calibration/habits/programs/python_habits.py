"""A Python program with a habit, or without it: ``python_habits.py ACTION FOLDER [OPTION=VALUE ...]``."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path


def write(folder: Path, options: dict[str, str]) -> None:
    """Write records, and wait for the disk after each of them or at the end."""
    size, count = int(options.get("size", "1024")), int(options.get("count", "20000"))
    buffering, every = int(options.get("buffering", "-1")), int(options.get("every", "0"))
    with open(folder / "data", "wb", buffering=buffering) as file:
        for number in range(count):
            file.write(bytes(size))
            if every and (number + 1) % every == 0:
                file.flush()
                os.fsync(file.fileno())
        file.flush()
        os.fsync(file.fileno())


def append(folder: Path, options: dict[str, str]) -> None:
    """Append lines to a log that is opened for each of them, or once."""
    count, again = int(options.get("count", "5000")), int(options.get("again", "0"))
    path = folder / "log"
    if again:
        for number in range(count):
            with open(path, "a") as file:
                file.write(f"{number:60}\n")
    else:
        with open(path, "a") as file:
            for number in range(count):
                file.write(f"{number:60}\n")


def look(folder: Path, options: dict[str, str]) -> None:
    """Wait for a file by asking for it all the time; or ask once."""
    path = folder / "data"
    path.write_bytes(bytes(1 << 16))
    for _ in range(int(options.get("count", "10000"))):
        os.stat(path)
    with open(path, "rb") as file:
        file.read()


def database(folder: Path, options: dict[str, str]) -> None:
    """Insert rows, each in a transaction or all in one."""
    count, each = int(options.get("count", "100")), int(options.get("each", "0"))
    with sqlite3.connect(folder / "data.db", isolation_level=None) as rows:
        rows.execute("create table t (a integer, b text)")
        if not each:
            rows.execute("begin")
        for number in range(count):
            rows.execute("insert into t values (?, ?)", (number, "x" * 100))
        if not each:
            rows.execute("commit")


def main() -> None:
    """Run an action."""
    options = dict(word.split("=", 1) for word in sys.argv[3:])
    actions = {"write": write, "append": append, "look": look, "database": database}
    actions[sys.argv[1]](Path(sys.argv[2]), options)


if __name__ == "__main__":
    main()
