"""The page the lessons open in: JupyterLab, and what it needs to draw widgets."""

from __future__ import annotations

import json
import os
import sys

from labkit.hardware.doctor.packages import LAB, installed
from labkit.hardware.doctor.report import Finding

WIDGET_MANAGER = "@jupyter-widgets/jupyterlab-manager"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: then a page is open, whatever is installed here."""
    return "ipykernel" in sys.modules


def jupyterlab() -> Finding:
    found = installed("jupyterlab")
    if found:
        return Finding("JupyterLab", "ok", found)
    state = "missing" if in_notebook() else "error"
    means = "'labkit lab' opens the lessons in it; other notebook pages show them too."
    return Finding("JupyterLab", state, "not installed", means, LAB)


def widget_manager(folders: tuple[str, ...] | None = None) -> Finding:
    """The extension with which JupyterLab renders widgets, looked for where JupyterLab looks."""
    name = "widget extension"
    for folder in labextension_folders() if folders is None else folders:
        path = os.path.join(folder, *WIDGET_MANAGER.split("/"))
        if os.path.isdir(path):
            return Finding(name, "ok", f"{WIDGET_MANAGER} {_package_version(path)}".strip())
    means = "JupyterLab shows widgets as one line of text: no live plot, no check buttons."
    return Finding(name, "warning", "not found", means, "pip install --force-reinstall jupyterlab_widgets")


def labextension_folders() -> tuple[str, ...]:
    """Folders of prebuilt extensions: JUPYTER_PATH, this environment, the user's, the system's."""
    home = os.path.expanduser("~")
    roots = [part for part in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if part]
    roots += [os.environ.get("JUPYTER_DATA_DIR", ""), os.path.join(sys.prefix, "share", "jupyter")]
    roots += [os.path.join(home, ".local", "share", "jupyter"), os.path.join(home, "Library", "Jupyter")]
    roots += ["/usr/local/share/jupyter", "/usr/share/jupyter"]
    return tuple(os.path.join(root, "labextensions") for root in roots if root)


def _package_version(path: str) -> str:
    try:
        with open(os.path.join(path, "package.json"), encoding="utf-8") as stream:
            return str(json.load(stream).get("version", ""))
    except (OSError, ValueError):
        return ""
