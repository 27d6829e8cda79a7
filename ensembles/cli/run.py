"""``ensio run``: run a program under the preload library, which records its calls."""

from __future__ import annotations

import argparse
import mmap
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path

from ensembles._compiled import read_counter
from ensembles.cli.options import add_new_run_directory, warn
from ensembles.files.names import LAUNCHER_SUFFIX, SPOOL_SUFFIX
from ensembles.files.site_settings import setting, site_table
from ensembles.model.errors import EnsioError
from ensembles.model.masked_command import mask_command
from ensembles.model.units import STRACE
from ensembles.recorder.elf import is_for_64_bits, read_interpreter
from ensembles.recorder.install_paths import installed
from ensembles.recorder.run_directory import new_run_directory, shown

MODES = ("trace", "profile", "tail")
LAYERS = ("posix", "stdio", "mpiio", "mpisync", "hdf5", "netcdf", "pnetcdf", "mpimsg")
DEFAULT_LAYERS = "default"
"""Stands for all layers but ``mpimsg``, which is recorded only if it is named (``ENSIO_LAYERS``)."""

_MOST_OF_COMMAND = 2000
"""Bytes of the command that are handed on: the recorder stores 2 KiB of a variable."""

LAUNCHERS = frozenset(site_table("ENSIO_LAUNCHERS"))

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_LOADERS = ("ld-", "ld.so", "ld64.")
_LINK_AGAIN = "link it again with ensio-cc (and glibc) to record it"
_LIBRARIES = {
    "HDF5": b"HDF5: infinite loop closing library",
    "NetCDF": b"NCRCENV_IGNORE",
    "PnetCDF": b"PNETCDF_HINTS",
    "MPI-IO": b"ROMIO_FSTYPE_FORCE",
}
"""Libraries of layers, and a text that is in each, stripped or not, and in no program that only calls it."""
_SANITIZER = re.compile(rb"lib(a|hwa|l|t|ub)san\.so|libclang_rt\.")
_PRELOAD_OF_USER = b"ENSIO_PRELOAD_OF_USER"
_LONG_SPOOL_BYTES = 4 << 20
_SHELLS = frozenset(["sh", "bash", "dash", "ash", "busybox", "ksh", "ksh93", "mksh", "zsh"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = (
        "ensio run [-h] [-o DIR] [--extend] [--mode MODE] [--layers LAYERS]\n"
        "                 -- COMMAND [ARGUMENT ...]"
    )
    add_new_run_directory(parser, "DIR")
    parser.add_argument(
        "--extend", action="store_true", help="record one more run into the directory DIR, which holds others"
    )
    parser.add_argument(
        "--mode",
        help="mode of recording: trace, every call; profile, totals and histograms only; tail, these and the "
        "slowest calls (default: trace)",
    )
    parser.add_argument(
        "--layers",
        help=f"layers to record, a comma-separated list of {', '.join(LAYERS)}; {DEFAULT_LAYERS} stands for "
        f"all but mpimsg, the messages between tasks (default: {DEFAULT_LAYERS})",
    )
    parser.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="program and arguments, after --"
    )


def execute(args: argparse.Namespace) -> int:
    """Run the command; return its exit status, or 128 + n if signal n ended it."""
    command = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not command:
        raise EnsioError("there is no command to run: ensio run -- COMMAND [ARGUMENT ...]")
    if args.mode is not None and args.mode not in MODES:
        raise EnsioError(f'there is no mode "{args.mode}": choose from {", ".join(MODES)}')
    if args.layers is not None:
        check_layers(args.layers)
    library = find_preload_library()
    if _SANITIZER.search(others := os.environb.get(b"LD_PRELOAD", b"")):  # would report leaks of Python
        environment = inherited_environment() | {_PRELOAD_OF_USER: others}
        del environment[b"LD_PRELOAD"]
        os.execve(sys.executable, sys.orig_argv, environment)
    if "/" not in command[0] and not shutil.which(command[0]):
        return cannot_start(command[0])
    noted = [text for word in started_programs(command) if (text := unrecorded(word) or hidden_in(word))]
    for text in noted:
        warn(f"note: {text}")
    was_there = args.output is not None and os.path.isdir(args.output)
    directory = new_run_directory(args.output, program_name(command), extend=args.extend)
    before = set(directory.iterdir())
    started = directory / f".started-{os.getpid()}-{time.time_ns()}"
    with suppress(OSError):  # the program starts in any case
        started.mkdir(0o700)
    begin_ns, reasons = time.time_ns(), {"unrecorded": "", "hidden": ""}

    def at_end(pid: int) -> None:
        programs = [command[0], *take_names(started)]
        reasons.update(unrecorded=_of_all(programs, unrecorded), hidden=_of_all(programs, hidden_in))
        keep_account(directory, before, pid, command[0], begin_ns, reasons)

    try:
        environment = traced_environment(library, directory, args.layers, args.mode)
        environment[b"ENSIO_STARTED"] = os.fsencode(started.absolute())
        environment[b"ENSIO_COMMAND"] = command_text(mask_command(tuple(command)))
        let_sanitizers_run(environment, command)
        status = run_command(command, environment, at_end)
    except OSError as error:
        take_names(started)
        if not was_there:
            directory.rmdir()
        return cannot_start(command[0], error)
    if any(path.stat().st_size > _LONG_SPOOL_BYTES for path in directory.glob("*.spool")):
        from ensembles.readers.native.directory import cut_spools  # imports NumPy

        cut_spools(directory)
    reason = reasons["unrecorded"]
    if not reason and any(word.startswith("LD_PRELOAD=") for word in command):
        reason = "LD_PRELOAD was set anew, without the preload library of ensio"
    _report_outcome(directory, before, reason)
    return status


def started_programs(command: Sequence[str]) -> list[str]:
    """Return the programs that a command line starts: its first word and, behind a launcher, the next one.

    Examples
    --------
    >>> started_programs(["env", "A=1", "nice", "-n", "5", "cat", "sh"])
    ['env', 'nice', 'cat']
    """
    started: list[str] = []
    for word in command:
        if started and os.path.basename(started[-1]) not in LAUNCHERS:
            break
        if not word.startswith("-") and shutil.which(word):
            started.append(word)
    return started


def take_names(folder: Path) -> list[str]:
    """Return the programs that processes started, each the target of a link of the recorder; remove all."""
    names = []
    with suppress(OSError):
        for link in sorted(folder.iterdir(), key=lambda link: link.lstat().st_mtime_ns):
            name = os.readlink(link)
            names.append(os.path.realpath(name) if "/" in name else name)
    shutil.rmtree(folder, ignore_errors=True)
    return names


def unrecorded(program: str) -> str:
    """Say why the preload library cannot record a program, and what to do; "": it can, as far as is known.

    A script is recorded as its interpreter is.
    """
    path, loader = _elf_file(program)
    if not loader or _has_in_it(path, b"ENSIO_DISABLE\0"):
        return ""
    if path != shutil.which(program):
        program = path
    if loader.startswith("ld-musl"):
        return (
            f"{program} uses the C library musl ({loader}), and the preload library is for glibc: build it "
            "with glibc, for example with gcc instead of musl-gcc"
        )
    if _has_in_it(path, b"\0.note.go.buildid\0"):
        return f"{program} is written in Go, whose I/O does not go through the C library; {STRACE}"
    if loader == os.path.basename(path) and not loader.startswith(_LOADERS):
        return (
            f"{program} is linked statically, so the preload library cannot record it, only other programs "
            f"that it starts; {_LINK_AGAIN}"
        )
    if not is_for_64_bits(path):
        return f"{program} is for 32 bits, and the preload library for 64: build it for 64 bits"
    if _gains_rights(path):
        return (
            f"{program} runs with more rights than its user, and the loader then leaves out the preload "
            "library: start it as a user who has these rights"
        )
    return ""


def _of_all(programs: Sequence[str], why: Callable[[str], str]) -> str:
    """Say of the first of some programs what is not recorded, and name the others; "": all is."""
    files = {os.path.realpath(shutil.which(program) or program): program for program in reversed(programs)}
    found = {program: text for program in reversed(files.values()) if (text := why(program))}
    first, *others = found or [""]
    names = ", ".join(map(os.path.basename, others))
    return found.get(first, "") + f"; the same holds for {names}" * bool(others)


def _elf_file(program: str) -> tuple[str, str]:
    """Return the file that runs (of a script its interpreter) and its loader: "" if it is not an ELF file."""
    path = shutil.which(program) or ""
    with suppress(OSError), open(path, "rb") as file:
        first = file.readline(os.pathconf("/", "PC_PATH_MAX"))
        if first.startswith(b"#!") and (words := first[2:].split()):
            path = os.fsdecode(words[0])
    loader = read_interpreter(path)  # "": it starts without one
    return path, "" if loader is None else os.path.basename(loader or path)


def _gains_rights(path: str) -> bool:
    """Return whether a program gets the rights of another user or group, or capabilities, when it starts."""
    status = os.stat(path)
    others = (stat.S_ISUID, status.st_uid, os.geteuid()), (stat.S_ISGID, status.st_gid, os.getegid())
    if any(status.st_mode & bit and owner != mine for bit, owner, mine in others):
        return True
    with suppress(OSError):
        return os.geteuid() != 0 and bool(os.getxattr(path, "security.capability"))
    return False


def hidden_in(program: str) -> str:
    """Say which layers inside a program the preload library does not see, and what to do; "": none."""
    path = shutil.which(program) or ""
    inside = [name for name, text in _LIBRARIES.items() if _has_in_it(path, text)]
    if not inside or _has_in_it(path, b"ENSIO_DISABLE\0"):
        return ""
    return (
        f"{program} contains {' and '.join(inside)}, whose calls the preload library does not see, only what "
        f"they do below; {_LINK_AGAIN}"
    )


def find_preload_library() -> Path:
    """Find the preload library: ``ENSIO_PRELOAD``, or that of the installation."""
    if named := setting("ENSIO_PRELOAD"):
        if not Path(named).is_file():
            raise EnsioError(
                f"{named}: there is no such file: set ENSIO_PRELOAD to the preload library, or unset it"
            )
        return Path(named).absolute()
    return installed("lib/libensio-preload.so")


def program_name(command: Sequence[str]) -> str:
    """Return the base name of the first executable word that is not a launcher, a shell or an option."""
    for word in command:
        name = os.path.basename(word)
        if name not in LAUNCHERS and not word.startswith("-") and shutil.which(word):
            return name
    return os.path.basename(command[0])


def check_layers(layers: str) -> None:
    """Check a comma-separated list of layers."""
    for layer in layers.split(","):
        if layer not in (*LAYERS, DEFAULT_LAYERS):
            raise EnsioError(
                f'there is no layer "{layer}": choose from {", ".join((*LAYERS, DEFAULT_LAYERS))}'
            )


def traced_environment(
    library: Path, directory: Path, layers: str | None = None, mode: str | None = None
) -> dict[bytes, bytes]:
    """Return the initial environment of this process with the settings of the recorder."""
    environment = inherited_environment()
    environment[b"LD_PRELOAD"] = preloaded(os.fsencode(library), environment.get(b"LD_PRELOAD", b""))
    environment[b"ENSIO_DIR"] = os.fsencode(directory).replace(b"%", b"%%")
    environment[b"ENSIO_LAUNCH"] = f"{os.getpid()}-{time.time_ns()}".encode()
    if layers is not None:
        environment[b"ENSIO_LAYERS"] = os.fsencode(layers)
    if mode is not None:
        environment[b"ENSIO_MODE"] = os.fsencode(mode)
    return environment


def preloaded(library: bytes, others: bytes) -> bytes:
    """Return LD_PRELOAD with the recorder behind run-time libraries of sanitizers, which must come first.

    Examples
    --------
    >>> preloaded(b"recorder.so", b"libjemalloc.so.2 libasan.so.8")
    b'libasan.so.8:recorder.so:libjemalloc.so.2'
    """
    names = re.split(b"[ :]+", others.strip(b" :")) if others else []
    behind = [name for name in names if not _SANITIZER.match(os.path.basename(os.path.realpath(name)))]
    first = [name for name in names if name not in behind]
    return b":".join([*first, library, *(behind if first else filter(None, [others]))])


def command_text(command: Sequence[str]) -> bytes:
    """Return the words of a command as recorders store it: separated by 0x1f, and whole.

    Examples
    --------
    >>> command_text(["bash", "job.sh"])
    b'bash\\x1fjob.sh'
    """
    words = [os.fsencode(word) for word in command]
    ends = accumulate(len(word) + 1 for word in words)
    fitting = [word for word, end in zip(words, ends, strict=True) if end <= _MOST_OF_COMMAND]
    return b"\x1f".join(fitting if len(fitting) == len(words) else [*fitting, b"..."])


def inherited_environment() -> dict[bytes, bytes]:
    """Return the environment that the kernel has: that of Python may differ (LC_CTYPE)."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    found = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    kept = found.pop(_PRELOAD_OF_USER, None)
    return found if kept is None else found | {b"LD_PRELOAD": kept}


_SANITIZERS = (
    (b"\0libasan.so", b"ASAN_OPTIONS", b"verify_asan_link_order=0"),
    (b"\0libtsan.so", b"TSAN_OPTIONS", b"ignore_noninstrumented_modules=1"),
)
"""Libraries of sanitizers, and what lets them start after the recorder, and not report what it does."""


def let_sanitizers_run(environment: dict[bytes, bytes], command: Sequence[str]) -> None:
    """Let sanitizers run beside the recorder in programs that contain the name of their library.

    Options that the user has set take precedence.
    """
    for library, name, option in _SANITIZERS:
        if any(_has_in_it(path, library) for word in command if (path := shutil.which(word))):
            environment[name] = b":".join([option, *filter(None, [environment.get(name)])])


def _has_in_it(path: str, text: bytes) -> bool:
    """Return whether an ELF file contains a string; a file that stays the same is searched once."""
    with suppress(OSError, ValueError):
        status = os.stat(path)
        return _is_found(path, text, (status.st_ino, status.st_size, status.st_mtime_ns))
    return False


@cache
def _is_found(path: str, text: bytes, identity: tuple[int, ...]) -> bool:
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text) >= 0


def run_command(
    command: Sequence[str], environment: Mapping[bytes, bytes], at_end: Callable[[int], object] | None = None
) -> int:
    """Run a command to its end, and return its exit status, or 128 + n if signal n ended it.

    `at_end` is called with its process id once it has ended, while the kernel still has its counters.
    """
    waited = {*_PASSED_ON, signal.SIGCHLD}
    dispositions = inherited_dispositions()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the end of a child is not reported

    def give_back() -> None:
        for number, disposition in dispositions.items():
            signal.signal(number, disposition)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        child = subprocess.Popen(
            command, env=environment, close_fds=False, restore_signals=False, preexec_fn=give_back
        )
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            arrived = signal.sigwaitinfo(waited)
            # A signal from the terminal reaches the whole foreground group, including the child.
            if arrived.si_signo != signal.SIGCHLD and arrived.si_code <= 0:
                child.send_signal(arrived.si_signo)
        if at_end is not None:
            at_end(child.pid)
        child.wait()
    finally:
        signal.signal(signal.SIGCHLD, dispositions[signal.SIGCHLD])
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    number = -child.returncode
    if number > 0 and number not in (signal.SIGINT, signal.SIGPIPE):  # as shells do
        warn(f"{command[0]} was ended by signal {number} ({signal.strsignal(number)})")
    return 128 + number if number > 0 else child.returncode


def inherited_dispositions() -> dict[signal.Signals, signal.Handlers]:
    """Return the dispositions that a child should inherit for signals that Python or ensio changed.

    Python ignores SIGPIPE and SIGXFSZ before any code of ensio runs, and the inherited disposition is lost. A
    shell passes ignored signals on, so a parent shell that ignores them shows what was inherited. Other
    programs that ignore them (Python among them) mostly restore the default for their children, which is
    therefore assumed. An ignored signal is missed if the parent is another program, has ended, or has changed
    the disposition meanwhile.
    """
    ignored = _ignored_by_shell(os.getppid())
    dispositions = {
        number: signal.SIG_IGN if number in ignored else signal.SIG_DFL for number in _IGNORED_BY_PYTHON
    }
    chld_ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    return {**dispositions, signal.SIGCHLD: signal.SIG_IGN if chld_ignored else signal.SIG_DFL}


def _ignored_by_shell(pid: int) -> set[int]:
    """Return the signals that a process ignores, if the process is a shell."""
    ignored = 0
    with suppress(OSError):
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")) in _SHELLS:
            status = Path(f"/proc/{pid}/status").read_bytes()
            ignored = int(status.partition(b"\nSigIgn:")[2].split(maxsplit=1)[0], 16)
    return {number for number in _IGNORED_BY_PYTHON if ignored >> (number - 1) & 1}


def keep_account(
    directory: Path, before: set[Path], pid: int, program: str, begin_ns: int, reasons: Mapping[str, str]
) -> None:
    """Keep what the kernel counted in the command, which has ended.

    The spool of a process without a recorded end is completed. Of one that is not recorded, or was a shell
    before, the counters are kept: they contain those of all processes that it waited for; without a record,
    beyond those `before`, of none. So are the reasons why programs among them could not be recorded.
    """
    end = read_counter(), time.monotonic_ns(), time.time_ns()
    spools = list(directory.glob(f"*-{pid}-*"))
    with suppress(OSError, EnsioError, ValueError):
        for path in spools:
            if path.suffix == SPOOL_SUFFIX:
                from ensembles.readers.native.directory import complete_account  # imports NumPy

                complete_account(path, pid, end)
        last = Path(f"/proc/{pid}/comm").read_bytes().strip()
        is_same = os.fsencode(os.path.basename(program)).startswith(last)
        has_account = bool(spools and is_same)
        if (any(reasons.values()) or not has_account) and not before.issuperset(directory.iterdir()):
            host = os.uname().nodename
            facts = f"host={host}\0pid={pid}\0begin={begin_ns}\0end={end[2]}"
            path = directory / f"{host}-{pid}-{begin_ns}{LAUNCHER_SUFFIX}"
            path.touch(mode=0o600, exist_ok=False)
            io = b"" if has_account else b"\0io=" + Path(f"/proc/{pid}/io").read_bytes()
            said = "".join(f"\0{name}={text}" for name, text in reasons.items())
            path.write_bytes(os.fsencode(facts) + io + os.fsencode(said))


def cannot_start(program: str, error: OSError | None = None) -> int:
    """Say why a program cannot be started, or that PATH has none; return the exit status of shells."""
    why = "not found on PATH" if error is None else f"cannot be started: {error.strerror}"
    is_missing = error is None or isinstance(error, FileNotFoundError)
    warn(f"{program}: {'does not exist' if error is not None and is_missing else why}")
    return 127 if is_missing else 126


def _report_outcome(directory: Path, before: set[Path], why_nothing: str) -> None:
    """Report where the record is or, if there is none, the known reason."""
    try:
        place = shown(directory)
        recorded = not before.issuperset(directory.iterdir())
    except OSError as error:
        warn(
            f"{directory}: the run directory can no longer be read ({error.strerror}); if it was moved, the "
            "record is in the new place"
        )
        return
    if recorded:
        sentence = f"recorded in {place}: look at it with ensio info {shlex.quote(place)}"
    elif os.environ.get("ENSIO_DISABLE", "0") not in ("", "0"):
        sentence = f"nothing was recorded in {place}: ENSIO_DISABLE is set"
    elif why_nothing:
        sentence = f"nothing was recorded in {place}: {why_nothing}"
    else:
        sentence = (
            f"nothing was recorded in {place}: unless a message above gives the reason, the program used no "
            "file, or it is a shell or a launcher, which are not recorded, and what it started "
            "had no LD_PRELOAD of ensio, or ran on another node"
        )
    warn(sentence)
