"""A real ``labkit lab`` in a process group of its own, ended with everything it started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ADDRESS = re.compile(r"JupyterLab: (http://127\.0\.0\.1:\d+)(\S*)\?token=(\w+)")


@dataclass(frozen=True)
class Address:
    """Where a server listens: ``base`` without a path, the ``page`` it offers first, and the token."""

    base: str
    page: str
    token: str

    def url(self, path: str) -> str:
        return f"{self.base}{path}?token={self.token}"


class LabServer:
    """``python -m labkit lab --no-browser`` with its working folder, settings and progress under `home`.

    Use as a context manager; ``address`` and ``output`` are there while it runs.
    """

    def __init__(
        self,
        home: Path,
        *options: str,
        python: str = sys.executable,
        expose_app: bool = False,
        **environment: str,
    ):
        self.home = home
        self.folder = home / "lessons"
        options = options or ("--port", "0")
        self.command = [python, "-m", "labkit", "lab", "--no-browser", "--dir", str(self.folder), *options]
        self.environment = {**_private_jupyter(home), **environment}
        self.log = home / "server.log"
        self.expose_app = expose_app

    def __enter__(self) -> LabServer:
        self.home.mkdir(parents=True, exist_ok=True)
        if self.expose_app:  # gives the page's scripts window.jupyterapp, read from an ordinary config file
            config = Path(self.environment["JUPYTER_CONFIG_DIR"])
            config.mkdir(parents=True, exist_ok=True)
            (config / "jupyter_lab_config.json").write_text('{"LabApp": {"expose_app_in_browser": true}}')
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.address = self._wait_until_it_answers(60)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def get(self, path: str) -> Any:
        """The JSON that the server's own interface gives for `path`, e.g. ``/api/contents/notebooks``."""
        with urllib.request.urlopen(self.address.url(path), timeout=20) as answer:
            return json.load(answer)

    def shut_down_kernels(self) -> None:
        """End every session, so that the next test starts with the memory and the processors free."""
        for session in self.get("/api/sessions"):
            url = self.address.url(f"/api/sessions/{session['id']}")
            urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=20).close()

    def interrupt(self, seconds: float = 20) -> int:
        """Ctrl-C, as a terminal sends it: to the whole process group. Returns the exit status."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(seconds)

    def stop(self) -> None:
        """Ask, wait, then insist; the group dies even if the server is already gone."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(5)

    def _wait_until_it_answers(self, seconds: float) -> Address:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and self.process.poll() is None:
            if found := ADDRESS.search(self.output):
                self.address = Address(*found.groups())
                try:
                    self.get("/api/status")
                    return self.address
                except OSError:  # printed, not yet listening
                    pass
            time.sleep(0.1)
        raise AssertionError(f"labkit lab did not start:\n{self.output}")


def _private_jupyter(home: Path) -> dict[str, str]:
    """This environment with every folder that Jupyter, IPython and labkit write to moved under `home`."""
    moved = {
        "JUPYTER_CONFIG_DIR": "jupyter/config",
        "JUPYTER_DATA_DIR": "jupyter/data",
        "JUPYTER_RUNTIME_DIR": "jupyter/run",
        "JUPYTERLAB_SETTINGS_DIR": "jupyter/settings",
        "IPYTHONDIR": "ipython",
        "LABKIT_HOME": "labkit",
    }
    kept = {name: value for name, value in os.environ.items() if name != "JUPYTER_TOKEN"}
    return {**kept, **{name: str(home / folder) for name, folder in moved.items()}}
