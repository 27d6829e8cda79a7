#!/usr/bin/env python3
"""Prints docs/reference/calls.md: what the recorder records, as its call tables say. `./dev docs` runs it.

The compiler reads the tables, with CALL and SYMBOL defined so that they leave marks; the symbols of a line
are those that the line leaves. To which call they count, the line's own words say.
"""

import re
import subprocess
import sys
from pathlib import Path

TABLES = Path(__file__).resolve().parents[1] / "calls"
PROGRAM = """
#define CALL(number, call, op) @C number call LAYER op @
#define NAMESAKE(number, call, name, op) @C number name LAYER op @
#define SYMBOL(symbol) @S symbol LAYER @
#include "tables.def"
"""
MARK = re.compile(r"@([CS]) (.*?) ?@")
PLACE = re.compile(r'# (\d+) "(.*)"')

PREFACE = """# Calls

What the recorder records: a row for each call, with its number in spools, what it does (op), and the
symbols that count to it. This page is made from the call tables (`libtrace/calls/*.def`) by `./dev docs`;
the tables say more.

* `requested` are bytes asked for, `moved` bytes moved; the calls of op `read` and `write` are those that
  move bytes. A failed call holds its errno, if it has one. `offset` is where in the file the call began; a
  call on a stream has none, but for those that say or set the position.
* `mmap`, `munmap`, `mremap`, `msync`: of files only. `requested` is the length in memory, `offset` the
  place in the file of its first byte, `moved` 0: what is read and written in memory no wrapper sees. Files
  of at most 4096 ranges are known at a time; of further ones only `mmap` is recorded.
* `aio_read`, `aio_write`, `aio_fsync`: one event a request, with the time of its submission. Its flight
  lasts to the first moment at which the program could observe completion (`aio_error`, `aio_suspend`,
  `aio_return`, `lio_listio` with `LIO_WAIT`). It is stored by `aio_return`, in the thread that calls it.
  Requests whose result is never asked for are counted as dropped, and so may be some of
  those beyond a thousand under way at a time.
* MPI: the names in C and in the three kinds of Fortran bindings are one call, and so are those with large
  counts (`_c`). A non-blocking or split call is one event, with the time of its post; `MPI_Test` and its
  relatives are events only where they completed I/O, and Wait and Test are then calls of the layer mpiio.
  The layer mpimsg is recorded on request; with it, a Test that completed messages is an event too, and so
  is a probe that found one.
  [The columns](formats/columns.md) of MPI have a page.
  The preload library also records MPI-IO, `MPI_Init`, `MPI_Init_thread` and `MPI_Finalize` that another tool
  passes on as `PMPI_...`.
* `fcntl`: where it duplicates a descriptor; where it sets or releases a lock, it is `fcntl_lock`. A lock that
  waits takes its time of I/O.
* `sendfile`, `copy_file_range`, `splice`: a copy from file to file is two events, the call and its other
  half (`sendfile_write` ...): a read of the one file, and inside it a write of the other. Both have the time
  of the call, which is exclusive time of the write. `requested` is what moved, as the count that the program
  gives is a limit. To or from a pipe or socket, at the end of the file, and in a failure, it is one event.
* `fscanf`: how many bytes it took is known to the stream alone; `moved` is 0.
* `H5Dread`, `H5Dwrite`: bytes of the selection, in the dataset's own type. HDF5's calls within its calls
  are not recorded; `H5Idec_ref` is, where it let go of the last reference to a file or something in it.
* `nc_…`, `ncmpi_…`: bytes of the part of the variable, in its type in the file; `offset` is -1. The
  functions for all types of data in memory are one call: `TYPE` stands for `text`, `int`, `double` and so
  on in C, for `int1`, `real` and so on in Fortran, and `RANK_KIND` for the ranks and kinds of module
  procedures. A call inside a call of its layer is not recorded, so a call from Fortran is one event.
  `ncmpi_iput_…`, `iget`, `bput` are events of the posting, stored when `ncmpi_wait` or `ncmpi_wait_all`
  has completed the request; its bytes count in this event. One that is cancelled, or left when the file is
  closed, moved nothing.
* The layer `program` has no calls: under its numbers lie the phases and regions that a program names
  (`ensio.h`). They are not among the events.
* Not recorded: folders that the C library reads in `glob`, `ftw`, `nftw`, `fts_read` and `readdir_r`; the
  working folder (`chdir`, `getcwd`); other commands of `fcntl`, and `ioctl`; streams of wide characters
  (`fwprintf`, `fgetws` ...); io_uring, libaio, HDF5's `H5*_async` and raw system calls; pipes and sockets.
"""


class Call:
    """A row: one call with the symbols that count to it."""

    def __init__(self, number: str, name: str, layer: str, op: str):
        self.number = int(number)
        self.name = name
        self.layer = layer
        self.op = op
        self.symbols: list[str] = []


def words(path: Path, line: int) -> list[str]:
    """The leading words in the brackets of the macro that is used in a line, or that began further up."""
    lines = path.read_text().splitlines()
    while line > 1 and not re.match(r"\w+\(", lines[line - 1]):
        line -= 1
    match = re.match(r"\w+\(([\w\s,]*)", "\n".join(lines[line - 1 : line + 3]))
    return [word.strip() for word in match[1].split(",")] if match else []


def marks(source: str) -> list[tuple[Path, int, str, str]]:
    """File, line, kind and text of each mark, in the order of the tables."""
    command = ["cc", "-E", "-x", "c", "-I", str(TABLES), "-"]
    output = subprocess.run(command, input=source, check=True, capture_output=True, text=True).stdout
    found, path, line = [], Path(), 0
    for text in output.splitlines():
        place = PLACE.match(text)
        if place:
            path, line = Path(place[2]), int(place[1])
            continue
        found += [(path, line, kind, what) for kind, what in MARK.findall(text)]
        line += 1
    return found


def read() -> tuple[dict[str, list[Call]], dict[str, list[str]]]:
    """The calls of each layer, and its symbols that are only watched."""
    layers: dict[str, list[Call]] = {}
    watched: dict[str, list[str]] = {}
    counts: dict[str, list[Call]] = {}  # by symbol
    lines: dict[tuple[Path, int], list[str]] = {}
    layer_of: dict[Path, str] = {}
    for path, line, kind, what in marks(PROGRAM):
        if kind == "C":
            call = Call(*what.split())
            layers.setdefault(call.layer, []).append(call)
        else:
            symbol, layer = what.split()
            lines.setdefault((path, line), []).append(symbol)
            layer_of[path] = layer
    for (path, line), symbols in lines.items():
        layer = layer_of[path]
        by_name = {call.name: call for call in layers[layer]}
        named = words(path, line)
        calls: list[Call] = []
        for word in named:
            if word not in by_name:
                break
            calls.append(by_name[word])
        calls = calls or [by_name[symbol] for symbol in symbols if symbol in by_name]
        calls = calls or (counts.get(named[1], []) if len(named) > 1 else [])
        for symbol in symbols:
            counts[symbol] = calls
            for call in calls:
                call.symbols.append(symbol)
            if not calls:
                watched.setdefault(layer, []).append(symbol)
    return layers, watched


TYPES = re.compile(
    r"^((?:nc|ncmpi|nf|nfmpi)_\w+?)_(?:text|schar|uchar|ubyte|u?short|u?int|long|u?longlong|float|double"
    r"|string|real|int1|int2|int8|int64)((?:_all)?_?)$"
)
KINDS = re.compile(
    r"^(__p?netcdf_MOD_\w+?)(?:_one)?(?:_\dd)?_(?:text|(?:one|two|four|eight)byte(?:int|real))((?:_all)?)$"
)


def family(symbol: str) -> str:
    """Name the family of a symbol of which there is one for each type of data, or the symbol."""
    return KINDS.sub(r"\1_RANK_KIND\2", TYPES.sub(r"\1_TYPE\2", symbol))


def listed(symbols: list[str]) -> str:
    """Symbols as code, each once."""
    return ", ".join(f"`{symbol}`" for symbol in dict.fromkeys(map(family, symbols))) or "none"


def page() -> str:
    """The whole page."""
    layers, watched = read()
    parts = [PREFACE]
    for layer, calls in layers.items():
        parts.append(f"\n## {layer}\n\n| number | call | layer | op | symbols |\n|---|---|---|---|---|\n")
        for call in sorted(calls, key=lambda call: call.number):
            parts.append(
                f"| {call.number} | `{call.name}` | {call.layer} | {call.op} | {listed(call.symbols)} |\n"
            )
        if layer in watched:
            parts.append(
                "\nOnly watched, not recorded, for what they do to descriptors, positions, requests or the "
                f"process: {listed(watched[layer])}.\n"
            )
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
