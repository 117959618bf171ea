"""The small net learns, and the figures of lesson 04 show what they were given."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.compute import products
from labkit.compute.formats import FORMATS
from labkit.widgets import precision_figures


@pytest.fixture
def torch(require):
    require("torch")
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(before)


def test_the_net_learns_digits(torch):
    from labkit.course import digit_net

    weights = digit_net.start()
    assert digit_net.right(weights) < 0.3
    for images, labels in digit_net.batches(300):
        copies = [w.clone().requires_grad_() for w in weights]
        torch.nn.functional.cross_entropy(digit_net.scores(copies, images), labels).backward()
        weights = [w - 0.2 * c.grad for w, c in zip(weights, copies, strict=True)]
    assert digit_net.right(weights) > 0.9


def test_start_and_batches_are_the_same_every_time(torch):
    from labkit.course import digit_net

    for one, other in zip(digit_net.start(3), digit_net.start(3), strict=True):
        assert torch.equal(one, other)
    (x, y), (again, _) = next(digit_net.batches(1)), next(digit_net.batches(1))
    assert torch.equal(x, again)
    assert (x.shape, y.shape) == ((128, 64), (128,))
    assert sum(w.numel() for w in digit_net.start()) == 26_122


def test_sigmoids_shrink_gradients_and_cast_weights_keep_their_type(torch):
    from labkit.course import digit_net

    x, y = next(digit_net.batches(1))
    weights = [w.half().requires_grad_() for w in digit_net.start(widths=(64, 32, 32, 32, 10))]
    scores = digit_net.deep_scores(weights, x.half())
    assert scores.dtype == torch.float16
    torch.nn.functional.cross_entropy(scores.float(), y).backward()
    assert weights[0].grad.float().norm() < 0.1 * weights[-2].grad.float().norm()


def test_the_staircases_end_where_the_formats_do():
    figure = precision_figures.range_and_spacing(list(FORMATS.values()))
    lines = {line.name: line for line in figure.data}
    assert [*FORMATS, "int8, scaled to 1"] == list(lines)
    assert lines["fp16"].x[0] == 2.0**-24
    assert lines["fp16"].x[-1] == 65504
    assert lines["fp16"].y[0] == 1  # the smallest number's neighbour is twice as large
    assert min(lines["bf16"].y) == 2.0**-7


def test_a_histogram_counts_every_gradient_but_zeros():
    values = np.array([0.0, 1.0, 1.5, -4.0, 2.0**-30])
    figure = precision_figures.gradient_sizes({"g": values}, FORMATS["fp16"], "title")
    assert figure.data[0].x == (-29.5, 0.5, 2.5)
    assert figure.data[0].y == (0.25, 0.5, 0.25)
    assert [round(one.x0) for one in figure.layout.shapes] == [-25, -14, 16]


def test_bars_of_products_leave_gaps_where_a_card_lacks_a_precision():
    found = [one for card in ("T4", "H100") for one in products.modelled(card, 2048)]
    figure = precision_figures.products(found)
    bars = {bar.name: bar for bar in figure.data}
    assert bars["library, fp8 Tensor Cores"].x[0] is None
    assert bars["library, fp8 Tensor Cores"].x[1] > 1e14
    assert "modelled" in figure.layout.title.text


def test_every_product_has_a_bar_however_many_there_are():
    found = products.modelled("H100", 2048)
    found += [
        products.Product(f"library, {name}", "here", 2048, 1.0, "measured", "") for name in ("fp32", "bf16")
    ]
    figure = precision_figures.products(found)
    assert {bar.name for bar in figure.data} == {one.name for one in found}


def test_beyond_the_largest_number_is_what_the_format_has():
    def words(name: str) -> list[str]:
        figure = precision_figures.gradient_sizes({"g": np.array([1.0])}, FORMATS[name], "title")
        return [one.text for one in figure.layout.annotations]

    assert words("fp8_e5m2")[-1] == "infinity"
    assert words("fp8_e4m3")[-1] == "NaN"


def test_losses_are_smoothed():
    figure = precision_figures.losses({"a": [4.0] * 10 + [2.0] * 10}, "title", over=10)
    assert figure.data[0].y[0] == pytest.approx(4)
    assert figure.data[0].y[-1] == pytest.approx(2)
