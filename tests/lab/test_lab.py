"""``labkit lab``, for real: where it listens, what it opens, and that it leaves nothing running."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from support.server import LabServer

from labkit.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _lab(require: Callable[..., None]) -> None:
    require("lab")


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    everyone = [process, *process.children(recursive=True)]
    found: set[tuple[str, int]] = set()
    for one in everyone:
        with contextlib.suppress(psutil.NoSuchProcess):  # a helper of the server has just ended
            waiting = (item for item in one.net_connections() if item.status == psutil.CONN_LISTEN)
            found.update((item.laddr.ip, item.laddr.port) for item in waiting)
    return found


def start_kernel(server: LabServer) -> psutil.Process:
    """Start the kernel that notebooks name, and return its process."""
    request = urllib.request.Request(
        server.address.url("/api/kernels"), data=json.dumps({"name": "python3"}).encode(), method="POST"
    )
    urllib.request.urlopen(request, timeout=30).close()
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        for child in psutil.Process(server.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # which a zombie counts as
                if "ipykernel_launcher" in child.cmdline():
                    return child
        time.sleep(0.1)
    raise AssertionError(f"no kernel started:\n{server.output}")


def test_serves_the_first_lesson_on_loopback_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with LabServer(tmp_path) as server:
        assert server.address.page == "/lab/tree/notebooks/00_start_here.ipynb"
        lesson = server.get("/api/contents/notebooks/00_start_here.ipynb")
        assert lesson["content"]["cells"]
        kernel = start_kernel(server)
        assert kernel.cmdline()[0] == sys.executable
        hosts = {host for host, _ in listening(psutil.Process(server.process.pid))}
        assert hosts == {"127.0.0.1"}
        assert server.interrupt() == 0
        assert not kernel.is_running()


def test_nothing_is_served_without_the_token(tmp_path: Path) -> None:
    with LabServer(tmp_path) as server, pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{server.address.base}/api/contents", timeout=10)


def test_a_busy_port_picks_another_and_says_which(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        with LabServer(tmp_path, "--port", str(busy)) as server:
            port = server.address.base.rsplit(":", 1)[1]
            assert port != str(busy)
            assert f"Port {busy} is busy: this JupyterLab listens on port {port}." in server.output


def test_root_gets_a_note(tmp_path: Path) -> None:
    with LabServer(tmp_path) as server:
        assert ("You are root" in server.output) == (os.geteuid() == 0)


def test_a_kernel_called_python3_in_the_home_folder_is_not_used(tmp_path: Path) -> None:
    other = tmp_path / "jupyter" / "data" / "kernels" / "python3"
    other.mkdir(parents=True)
    (other / "kernel.json").write_text(json.dumps({"argv": ["/bin/false"], "display_name": "Other"}))
    with LabServer(tmp_path) as server:
        assert start_kernel(server).cmdline()[0] == sys.executable


@pytest.mark.parametrize("port", ["70000", "-1", "eight", "٣"])
def test_a_port_that_cannot_be_is_a_sentence(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["lab", "--port", port])
    assert "from 0 to 65535" in capsys.readouterr().err


WITHOUT_JUPYTERLAB = """
import sys
sys.modules["jupyterlab.labapp"] = None  # what an import finds when the package is not there
from labkit.cli import main
sys.exit(main(["lab"]))
"""


def test_without_jupyterlab_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JUPYTERLAB], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith("labkit lab: jupyterlab")
    assert done.stderr.count("\n") == 1
    assert '-m pip install "gpu-labkit[lab]"' in done.stderr
