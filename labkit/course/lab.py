"""``labkit lab``: JupyterLab on this machine's loopback, with the first lesson open."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from labkit import __version__
from labkit.course import files
from labkit.course.workfolder import Delivery, deliver
from labkit.errors import LabkitError

LOOPBACK = "127.0.0.1"


def main(arguments: list[str]) -> int:
    """Fill the working folder, start JupyterLab and serve until Ctrl-C; 0 when it ended in good order."""
    options = _parser().parse_args(arguments)
    lab_app = _lab_app()
    delivery = deliver(files.lessons_root(), options.dir.expanduser().resolve(), __version__, options.update)
    _say_delivery(delivery)
    with tempfile.TemporaryDirectory(prefix="labkit-lab-") as private:
        _offer_this_python(Path(private))
        _silence_announcements(Path(private))
        arguments = server_arguments(options, delivery.folder) + _kernel_sockets(Path(private))
        server = lab_app.initialize_server(argv=arguments)
        _end_on_signal(server)
        _say_where(server, options.port)
        server.start()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="labkit lab", description="Open JupyterLab at the first lesson.")
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("~/labkit-lessons"),
        metavar="FOLDER",
        help="your working folder, filled with the lessons (default: ~/labkit-lessons)",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
    parser.add_argument(
        "--port", type=_port, default=8888, metavar="N", help="port to listen on (default: 8888; 0: any)"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="bring newer lessons: untouched files are replaced, yours get the new version beside them",
    )
    return parser


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a whole number from 0 to 65535, not '{text}'")
    return int(text)


def _lab_app() -> Any:
    """JupyterLab's application class, imported here because it takes half a second."""
    try:
        import ipykernel  # noqa: F401
        import ipywidgets  # noqa: F401
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise LabkitError(
            f"{error.name or 'JupyterLab'} is not installed in this Python: "
            f"run '{sys.executable} -m pip install \"gpu-labkit[lab]\"' and try again"
        ) from error
    return LabApp


def server_arguments(options: argparse.Namespace, folder: Path) -> list[str]:
    """The command line for JupyterLab: this machine only, one workspace a working folder, quiet."""
    arguments = [
        f"--ServerApp.ip={LOOPBACK}",
        f"--ServerApp.port={options.port}",
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.open_browser={not options.no_browser}",
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        f"--LabApp.default_url={first_page(folder)}",
        f"--LabApp.workspaces_dir={folder / '.labkit' / 'workspaces'}",
    ]
    if not os.environ.get("JUPYTER_TOKEN"):  # a token of ours keeps Jupyter from printing a second address
        arguments.append(f"--IdentityProvider.token={secrets.token_hex(24)}")
    return [*arguments, "--allow-root"] if _is_root() else arguments


def first_page(folder: Path) -> str:
    """The address, below the server's, of the lesson to open: the first there is."""
    there = sorted((folder / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return f"/lab/tree/notebooks/{there[0].name}" if there else "/lab"


def _offer_this_python(private: Path) -> None:
    """Make the kernel called ``python3`` this very interpreter, whatever other Jupyters are installed.

    Notebooks name the kernel ``python3``; a kernel of that name in the user's home would otherwise run them
    in a Python without labkit.
    """
    kernel = private / "kernels" / "python3"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Python 3 (labkit)", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps({**spec, "metadata": {"debugger": True}}))
    _put_first("JUPYTER_PATH", private)


def _silence_announcements(private: Path) -> None:
    """No dialog about Jupyter's news over the first lesson, and no call to the network."""
    page = private / "labconfig" / "page_config.json"
    page.parent.mkdir()
    page.write_text(
        json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}})
    )
    _put_first("JUPYTER_CONFIG_PATH", private)


def _put_first(variable: str, folder: Path) -> None:
    """Let Jupyter look in `folder` before its other folders of that kind."""
    others = filter(None, [os.environ.get(variable)])
    os.environ[variable] = os.pathsep.join([str(folder), *others])


def _kernel_sockets(private: Path) -> list[str]:
    """Connect kernels by sockets in a private folder, where these work.

    Over TCP, Jupyter's other way, everybody who has an account on a shared machine can read the outputs.
    A socket's path has a limit (104 bytes on macOS, 108 on Linux), which Jupyter's own folder often exceeds.
    """
    longest = private / "kernel-00000000-0000-0000-0000-000000000000-ipc-5"
    if os.name != "posix" or len(os.fsencode(longest)) > 100:
        return []
    os.environ["JUPYTER_RUNTIME_DIR"] = str(private)
    return ["--KernelManager.transport=ipc"]


def _end_on_signal(server: Any) -> None:
    """One Ctrl-C, or a closed terminal, ends server and kernels without a question; a second insists."""

    def end(number: int, _frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        server.stop(from_signal=True)

    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), end)


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _say_delivery(delivery: Delivery) -> None:
    print(f"Your lessons are in {delivery.folder}; what you change there is never overwritten.")
    for name in delivery.replaced:
        print(f"  updated: {name}")
    for name in delivery.beside:
        print(f"  new version beside yours: {name}")
    if delivery.waiting:
        count = len(delivery.waiting)
        print(f"  {count} file{'s have' if count > 1 else ' has'} a newer version: 'labkit lab --update'")


def _say_where(server: Any, asked: int) -> None:
    if _is_root():
        print("You are root, so code in notebooks runs as root; only this machine can reach the server.")
    if asked not in (0, server.port):
        print(f"Port {asked} is busy: this JupyterLab listens on port {server.port}.")
    token = server.identity_provider.token
    address = server.local_url.split("?")[0]  # whose query hides the token
    print(f"JupyterLab: {address}" + (f"?token={token}" if token else ""))
    print("Ctrl-C ends it.", flush=True)
