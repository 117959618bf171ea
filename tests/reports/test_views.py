"""The figures of pasted reports: right values, the link's limit, and where they come from."""

from __future__ import annotations

import pytest

from labkit.hardware.diagnosis import diagnose
from labkit.widgets.report_text import aligned, as_text


@pytest.fixture
def draw(require, sample):
    require("lab")
    from labkit.widgets.report_views import figures

    return lambda name: figures(diagnose(sample(name)))


def words(figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def test_heat_map_of_a_topology(draw):
    (figure,) = draw("topo_2024_h100.txt")
    (trace,) = figure.data
    assert trace.text[0][1] == "NV18"
    assert trace.z[0][0] == 0  # itself
    assert trace.z[0][1] < trace.z[0][8] < trace.z[0][12]  # NVLink is nearer than PIX, PIX than SYS
    assert (trace.x[8], trace.y[8]) == ("NIC0", "NIC0 (mlx5_0)")
    assert words(figure) == ["reported by nvidia-smi topo -m, not measured here"]


def test_curve_of_bus_bandwidth_against_the_link(draw):
    (figure,) = draw("nccl_all_reduce_h100.txt")
    out, inside, limit = figure.data
    assert out.x[-1] == 2**30
    assert out.y[-1] == pytest.approx(388.39)
    assert len(inside.x) == 28
    assert set(limit.y) == {450.0}
    assert "catalogue" in limit.name
    assert words(figure) == ["reported by nccl-tests, not measured here"]


def test_no_limit_is_drawn_where_the_link_is_not_known(draw):
    (figure,) = draw("nccl_alltoall_mpi.txt")
    assert [trace.name for trace in figure.data] == ["out of place", "in place"]


def test_peer_bandwidth_and_nvlinks(draw):
    (figure,) = draw("p2p_a100.txt")
    assert figure.data[0].z[0][0] is None  # a GPU's own memory is no link
    assert figure.data[0].z[0][1] == 269.4
    (links,) = draw("nvlink_a100.txt")
    assert links.data[0].text[1][7] == "off"
    assert links.data[0].z[1][7] == 0


def test_reports_without_a_figure(draw):
    assert draw("collect_env_1.0.txt") == ()


def test_every_sample_shows_itself_as_text_and_html(sample, sample_name):
    reading = diagnose(sample(sample_name))
    text = as_text(reading)
    assert text.startswith("== ")
    assert max(map(len, text.split("\n"))) < 700
    page = reading._repr_html_()
    assert page.count("<table") >= len(reading.reports)
    assert "<script" not in page


def test_what_is_pasted_cannot_write_html():
    text = (
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-3\nGPU1\tSYS\t X \t4-7\n  NIC0: <script>x</script>\n"
    )
    page = diagnose(
        text + "RuntimeError: CUDA error <script>alert(1)</script>: out of memory\n"
    )._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_long_tables_lose_their_middle():
    shown = list(aligned(("a", "b"), [(str(i), "x") for i in range(100)]))
    assert len(shown) == 42
    assert "60 rows" in shown[21]
