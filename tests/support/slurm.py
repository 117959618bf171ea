"""A real Slurm for tests: munged, slurmctld and two slurmd from Debian, in a network where nobody else is.

Everything is in one folder; both nodes are this machine, with the processors and memory that it reports and two
generic resources each, which are plain files. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "srun")
NODES = ("c1", "c2")
GPUS = 2
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_READY_S = 30.0


def missing() -> str | None:
    """Why it cannot run here; None when it can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return (
            f"{', '.join(absent)} not installed (Debian: apt-get install slurmctld slurmd slurm-client munge)"
        )
    if os.geteuid() != 0:
        return "Slurm's daemons are started as root"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() or None if tried.returncode else None


class Slurm:
    """A context manager; inside, `run` runs a command as a user of this cluster would."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": _PATH}

    def __enter__(self) -> Slurm:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        for name in ("state", "spool-c1", "spool-c2", "log"):
            (self.folder / name).mkdir(mode=0o755)
        self._configure()
        # the network lives as long as this process
        self._daemon(
            [
                "unshare",
                "--net",
                "sh",
                "-c",
                "ip link set lo up; ip address add 10.72.0.1/32 dev lo; echo up; exec sleep infinity",
            ],
            inside=False,
        )
        wait_for(lambda: "up" in self._log("unshare"), "a network of its own")
        self._munge()
        self._daemon(["slurmctld", "-D"])
        for node in NODES:
            self._daemon(["slurmd", "-D", "-N", node])
        wait_for(self._idle, "two idle nodes")

    def _configure(self) -> None:
        files = [self.folder / f"gpu{number}" for number in range(GPUS)]
        for file in files:
            file.touch()
        host = socket.gethostname().partition(".")[0]
        (self.folder / "slurm.conf").write_text(_conf(self.folder, host))
        names = f"{self.folder}/gpu[0-{GPUS - 1}]"
        (self.folder / "gres.conf").write_text(
            f"AutoDetect=off\nNodeName=c[1-2] Name=gpu File={names} Flags=nvidia_gpu_env\n"
        )

    def _munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        paths = {name: self.folder / f"munge.{name}" for name in ("socket", "pid", "seed")}
        self._daemon(
            [
                "munged",
                "--foreground",
                "--force",
                f"--key-file={key}",
                f"--socket={paths['socket']}",
                f"--pid-file={paths['pid']}",
                f"--seed-file={paths['seed']}",
                f"--log-file={self.folder / 'log' / 'munge.log'}",
            ]
        )
        wait_for(paths["socket"].exists, "munged")

    def _daemon(self, command: list[str], inside: bool = True) -> None:
        log = (self.folder / "log" / f"{Path(command[0]).name}{len(self.processes) or ''}.out").open("wb")
        with log:
            process = subprocess.Popen(
                self._inside(command) if inside else command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        self.processes.append(process)

    def _inside(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.processes[0].pid}/ns/net", "--", *command]

    def _log(self, name: str) -> str:
        return (self.folder / "log" / f"{name}.out").read_text()

    def _idle(self) -> bool:
        ended = [process for process in self.processes if process.poll() is not None]
        assert not ended, f"{ended[0].args} ended: {self.logs()}"
        seen = self.run(["sinfo", "--noheader", "--Node", "--format=%N %T"]).stdout.split()
        return seen == ["c1", "idle", "c2", "idle"]

    def logs(self) -> str:
        """The last lines of every daemon's output."""
        return "\n".join(
            f"{path.name}: {path.read_text()[-800:]}" for path in (self.folder / "log").iterdir()
        )

    def run(self, command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command in this Slurm's network, with its configuration."""
        settings = {"capture_output": True, "text": True, "env": self.environment, "timeout": 90, **options}
        return subprocess.run(self._inside(command), check=False, **settings)  # type: ignore[call-overload]

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            self.run(["scancel", "--full", "--user=root"], timeout=5)
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for(ready: object, what: str) -> None:
    """Until `ready()` is true; fails after some time."""
    limit = time.monotonic() + _READY_S
    while not ready():  # type: ignore[operator]
        assert time.monotonic() < limit, f"no {what} within {_READY_S:g} s"
        time.sleep(0.1)


def _conf(folder: Path, host: str) -> str:
    cpus = os.cpu_count() or 1
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return f"""
ClusterName=labkit
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
GresTypes=gpu
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=2
NodeName=DEFAULT CPUs={cpus} RealMemory={megabytes} Gres=gpu:{GPUS} State=UNKNOWN
NodeName=c[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[7001-7002]
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
