"""Figures in a real kernel: the data go out once, and Plotly's renderers stay asleep until somebody wants them."""

from __future__ import annotations

import pytest

DRAW = """
import sys
from labkit.widgets import theme
figure = theme.figure([{"type": "scatter", "x": [1, 2], "y": [3, 4]}], {}, "two points")
figure
"""
PLOTLY_ITSELF = "import plotly.graph_objects as go; go.Figure()"
MIME = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def kernel(request):
    request.getfixturevalue("require")("lab")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def output(kernel, code: str) -> dict:
    """The data of the one output of a cell."""
    shown: list[dict] = []

    def note(message: dict) -> None:
        if message["msg_type"] in ("execute_result", "display_data"):
            shown.append(message["content"]["data"])

    reply = kernel.execute_interactive(code, output_hook=note, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]
    (data,) = shown
    return data


def test_a_figure_reaches_the_notebook_as_data_and_as_a_page_for_export(kernel):
    data = output(kernel, DRAW)
    assert set(data) == {MIME, "text/plain", "text/html"}
    assert len(data["text/html"]) < 10_000  # the script itself comes from the net
    assert "https://cdn.plot.ly/plotly-" in data["text/html"]
    assert data["text/plain"] == "figure: two points"
    assert data[MIME]["data"][0]["y"] == [3, 4]
    assert output(kernel, "'plotly.io._renderers' in sys.modules")["text/plain"] == "False"


def test_plotly_s_own_choice_counts_once_it_is_made(kernel):
    output(kernel, PLOTLY_ITSELF)
    data = output(kernel, "import plotly.io as pio; pio.renderers.default = 'plotly_mimetype'\n" + DRAW)
    assert data[MIME]["data"][0]["x"] == [1, 2]


def test_outside_a_notebook_it_is_plotly_s_figure():
    pytest.importorskip("plotly")
    import plotly.graph_objects as go

    from labkit.widgets import theme

    figure = theme.figure([{"type": "scatter", "y": [1]}], {"xaxis": theme.axis("x")}, "one")
    assert isinstance(figure, go.Figure)
    assert "<div" in figure.to_html(full_html=False, include_plotlyjs=False)
    assert isinstance(theme.for_notebook(go.Figure()), type(figure))
