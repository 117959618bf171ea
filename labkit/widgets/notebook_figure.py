"""A Plotly figure that JupyterLab gets at once, and everything else as Plotly sees fit."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs_version

MIME = "application/vnd.plotly.v1+json"
# Places that want another renderer than JupyterLab's; plotly.io._renderers knows which.
ELSEWHERE = (
    "PLOTLY_RENDERER",
    "COLAB_NOTEBOOK_ID",
    "AZURE_NOTEBOOKS_HOST",
    "NTERACT_EXE",
    "COCALC_PROJECT_ID",
    "DATABRICKS_RUNTIME_VERSION",
)
_shown: Counter[str] = Counter()


class Figure(go.Figure):
    """A ``plotly.graph_objects.Figure``; only its way into a notebook is shorter.

    Plotly chooses a renderer first, and imports nbformat with all it needs for that: a second, and 20 MiB in the
    notebook's kernel. In a Jupyter kernel the answer is known, unless somebody has used the renderers already.
    """

    _ipython_display_ = None  # IPython would prefer it to the bundle below

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **more: Any) -> dict[str, Any]:
        if not _in_jupyter() or "plotly.io._renderers" in sys.modules:
            return super()._repr_mimebundle_(include, exclude, **more)
        return {
            MIME: json.loads(self.to_json()),
            "text/plain": f"figure: {self.layout.title.text or 'untitled'}",
        }

    def _repr_html_(self) -> str:
        """For pages that are exported from a notebook: Plotly from the net, and the same text at every run."""
        mark = hashlib.sha256(self.to_json().encode()).hexdigest()[:16]
        _shown[mark] += 1  # the same figure twice on a page needs two names
        name = f"figure-{mark}-{_shown[mark]}"
        # With include_plotlyjs="cdn" Plotly reads its whole script for a checksum: 24 MiB a figure in the kernel.
        script = f"https://cdn.plot.ly/plotly-{get_plotlyjs_version()}.min.js"
        drawing = self.to_html(full_html=False, include_plotlyjs=False, div_id=name)
        return f'<script src="{script}" charset="utf-8"></script>{drawing}'

    def to_html(self, *arguments: Any, **more: Any) -> str:
        """As Plotly's, but an animation waits for its slider or button instead of playing by itself."""
        return super().to_html(*arguments, **{"auto_play": False, **more})

    def write_html(self, *arguments: Any, **more: Any) -> None:
        """As Plotly's, but an animation waits for its slider or button instead of playing by itself."""
        super().write_html(*arguments, **{"auto_play": False, **more})


def _in_jupyter() -> bool:
    if any(name in os.environ for name in ELSEWHERE) or os.path.exists("/kaggle/input"):
        return False
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"
