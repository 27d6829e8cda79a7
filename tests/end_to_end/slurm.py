"""A real Slurm of one node on loopback, with its own configuration, keys and ports in its own folder."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sinfo", "scancel")

CONFIGURATION = """
ClusterName=ensio
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={controller_port}
SlurmdPort={daemon_port}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class NotPossible(Exception):
    """The daemons cannot run here; the text says why."""


def free_port() -> int:
    """A port on which no process listened just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Slurm:
    """munged, slurmctld and slurmd, from ``with`` to its end, with further lines of configuration.

    Raises
    ------
    NotPossible
        Where they cannot run at all: not root, or not installed.
    RuntimeError
        Where they could run, but did not come up.
    """

    def __init__(self, more=""):
        self.more = more

    def __enter__(self):
        missing = [name for name in NEEDED if not shutil.which(name)]
        if os.geteuid() != 0:
            raise NotPossible("only root can run Slurm's daemons")
        if missing:
            raise NotPossible(f"not installed: {', '.join(missing)}")
        # Not in pytest's folder, whose name is longer than that of a socket may be.
        self.folder = Path(tempfile.mkdtemp(prefix="ensio-slurm-", dir="/tmp"))
        self.daemons = []
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        """Configure and start the daemons, and wait until the node is ready for jobs."""
        for name, mode in (("munge", 0o755), ("state", 0o700), ("spool", 0o755), ("log", 0o700)):
            (self.folder / name).mkdir(mode=mode)
        self.folder.chmod(0o755)
        key = self.folder / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        host = socket.gethostname().split(".")[0]
        ports = {"controller_port": free_port(), "daemon_port": free_port()}
        configuration = self.folder / "slurm.conf"
        text = CONFIGURATION + self.more
        configuration.write_text(text.format(host=host, folder=self.folder, **ports))
        self.environment = {"SLURM_CONF": str(configuration)}
        munge = self.folder / "munge"
        files = (f"--{name}-file={munge / name}" for name in ("key", "pid", "log", "seed"))
        self.daemon("munged", "--force", "--foreground", f"--socket={munge / 'socket'}", *files)
        self.wait_for((munge / "socket").exists)
        self.daemon("slurmctld", "-D", "-f", str(configuration))
        self.daemon("slurmd", "-D", "-f", str(configuration), "-N", host)
        self.wait_for(self.is_idle)

    def daemon(self, name, *arguments):
        """Start a daemon as a child of ours; what it says goes to a file."""
        with open(self.folder / "log" / name, "wb") as log:
            environment = os.environ | self.environment if name != "munged" else None
            self.daemons.append(
                subprocess.Popen([name, *arguments], stdout=log, stderr=log, env=environment, cwd=self.folder)
            )

    def wait_for(self, condition):
        """Wait until something is so; the daemons must live on."""
        for _ in range(300):
            if condition():
                return
            if any(daemon.poll() is not None for daemon in self.daemons):
                break
            time.sleep(0.1)
        files = (self.folder / "log").iterdir()
        logs = ((file.name, file.read_text(errors="replace")[-1000:]) for file in files)
        raise RuntimeError("Slurm did not come up:\n" + "\n".join(f"{name}: {text}" for name, text in logs))

    def is_idle(self) -> bool:
        """Whether the node takes jobs."""
        done = self.run("sinfo", "-h", "-o", "%T")
        return done.stdout.strip() == "idle"

    def run(self, *command, **options) -> subprocess.CompletedProcess:
        """Run one of Slurm's commands, or a program under it."""
        environment = options.pop("env", os.environ) | self.environment
        words = [str(word) for word in command]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, **options)

    def __exit__(self, *unused):
        if len(self.daemons) == 3:
            self.run("scancel", "--quiet", "--user=root")
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
