"""Build programs, run them recorded, and diagnose what was recorded."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.habits.habit import OWN_PROGRAMS, Habit, Planted
from calibration.habits.places import BUILD, Places, Skipped
from ensembles.cli.replay_program import ANY_TASKS

SOURCES = Path(__file__).parent / "programs"
TIMEOUT_S = 120
_PLACES = ("data", "slow", "model", "memory")


@dataclass(frozen=True)
class Answer:
    """What `diagnose` said of one run."""

    # From the first I/O call of the run to the end of the last: differences of it are what a habit costs
    span_s: float
    run_s: float  # Length of the run, of which costs and severities are shares
    said: dict[str, Any]  # `Diagnosis.to_json`
    seconds: float  # Processor time of the diagnosis
    record: Path


class Machine:
    """Runs programs with habits in new folders; `ior`: path of IOR, without which its habits are skipped."""

    def __init__(self, scratch: Path, places: Places, ior: str = "") -> None:
        self._scratch, self._places, self._ior = scratch, places, ior
        self._built: dict[tuple[str, str, str], list[str]] = {}

    def check(self, planted: Planted) -> None:
        """Check that this machine can make a run."""
        self._command(planted)
        for place in _PLACES:
            if f"{{{place}}}" in planted.habit.text:
                self._places.folder(place)
        if planted.habit.cold and not os.access("/proc/sys/vm/drop_caches", os.W_OK):
            raise Skipped("the page cache can only be emptied by root")

    def run(self, planted: Planted, with_habit: bool) -> Answer:
        """Run a program once, recorded, with its habit or without."""
        habit = planted.habit
        folders = {place: self._new_folder(place) for place in _PLACES if f"{{{place}}}" in habit.text}
        record = Path(tempfile.mkdtemp(prefix="run", dir=self._scratch))
        command = self._command(planted)
        if habit.before:
            self._execute(command, habit, habit.before, folders, _clean())
        if habit.cold:
            os.sync()
            Path("/proc/sys/vm/drop_caches").write_text("1")
        environment = _clean() | ANY_TASKS | {"ENSIO_DIR": str(record)}
        if planted.way == "preloaded":
            environment["LD_PRELOAD"] = str(BUILD / "lib" / "libensio-preload.so")
        if "model" in folders:
            environment = self._places.environment(environment)
        neighbour = self._neighbour(folders) if habit.neighbour and with_habit else None
        try:
            words = habit.words if with_habit else habit.twin
            self._execute(self._launcher(planted) + command, habit, words, folders, environment)
        finally:
            if neighbour:
                neighbour.kill()
                neighbour.wait()
        answer = diagnosed(record)
        for folder in folders.values():
            shutil.rmtree(folder)
        return answer

    def _neighbour(self, folders: dict[str, Path]) -> subprocess.Popen[bytes]:
        """Start another program that fills the queue of the throttled disk, for a bounded time."""
        program = self._build("posix_habits", "preloaded", "")
        words = [*program, "fill", str(folders["slow"]), f"seconds={TIMEOUT_S}"]
        process = subprocess.Popen(self._grouped(words, True), env=_clean())
        time.sleep(0.3)
        return process

    def _new_folder(self, place: str) -> Path:
        folder = self._places.folder(place) / "files"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _execute(
        self,
        command: list[str],
        habit: Habit,
        words: str,
        folders: dict[str, Path],
        environment: dict[str, str],
    ) -> None:
        arguments = shlex.split(words.format(**folders))
        made = self._grouped([*command, *arguments], "{slow}" in habit.text)
        done = subprocess.run(
            made, env=environment, capture_output=True, timeout=TIMEOUT_S, cwd=self._scratch, check=False
        )
        if done.returncode:
            raise SystemExit(f"{shlex.join(made)} failed: {done.stderr.decode(errors='replace')[-2000:]}")

    def _grouped(self, command: list[str], is_throttled: bool) -> list[str]:
        """Return a command that runs in the control groups of the throttled disk and of the processors."""
        groups = [self._places.processors_group, self._places.group if is_throttled else None]
        joins = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups if group is not None)
        return ["sh", "-c", f'{joins}exec "$@"', "sh", *command] if joins else command

    def _launcher(self, planted: Planted) -> list[str]:
        return [f"mpiexec.{planted.flavour}", "-n", str(planted.habit.tasks)] if planted.habit.tasks else []

    def _command(self, planted: Planted) -> list[str]:
        program = planted.habit.program
        if planted.flavour and not shutil.which(f"mpiexec.{planted.flavour}"):
            raise Skipped(f"there is no mpiexec.{planted.flavour}")
        if program in OWN_PROGRAMS:
            return self._build(program, planted.way, planted.flavour)
        if program.endswith(".py"):
            return [sys.executable, str(SOURCES / program)]
        if program == "ior":
            if not self._ior:
                raise Skipped("IOR is not part of the project: give the path of yours (--ior PATH)")
            return [self._ior]
        if not shutil.which(program):
            raise Skipped(f"{program} is not installed")
        return [program]

    def _build(self, program: str, way: str, flavour: str) -> list[str]:
        key = program, way, flavour
        if key not in self._built:
            compiler = f"mpicc.{flavour}" if flavour else "gcc"
            if not shutil.which(compiler):
                raise Skipped(f"there is no {compiler}")
            target = self._scratch / "-".join(filter(None, key))
            driver = [str(BUILD / "bin" / "ensio-cc")] if way == "relinked" else []
            source = SOURCES / f"{program}.c"
            subprocess.run([*driver, compiler, "-O2", "-w", str(source), "-o", str(target)], check=True)
            self._built[key] = [str(target)]
        return self._built[key]


def _clean() -> dict[str, str]:
    """Return the environment without settings of the recorder."""
    return {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}


def diagnosed(record: Path) -> Answer:
    """Diagnose a recorded run."""
    import ensembles as en
    from ensembles.diagnosis.diagnose import DiagnosisPass
    from ensembles.diagnosis.evidence_rule import SUMMARY, case_of

    began = time.process_time()
    run = en.open(str(record))
    examination = DiagnosisPass(run)
    group = run.summarize(examination.requests)
    said = examination.evaluate(group).to_json()
    spent = time.process_time() - began
    case = case_of(run, group[SUMMARY])
    return Answer(case.span_s, case.run_s, said, spent, record)
