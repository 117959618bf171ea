"""The data and the networks that lessons train: real, the same everywhere, and able to learn in seconds."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from support.needs import require

from labkit.course import datasets
from labkit.errors import LabkitError


def test_digits_are_all_there_and_held_out_ones_are_apart() -> None:
    data = datasets.digits()
    assert data.images.shape == (1437, 1, 8, 8)
    assert data.images.dtype == np.float32
    assert data.test_images.shape == (360, 1, 8, 8)
    assert (data.images.min(), data.images.max()) == (0.0, 1.0)
    assert set(data.labels) == set(data.test_labels) == set(range(10))
    assert np.bincount(data.test_labels).min() > 20  # every digit has its share of the held-out ones
    assert repr(data) == "Digits(1437 images of 8 x 8 to learn from, 360 held out)"


def test_a_mean_digit_looks_like_its_label() -> None:
    """Images and labels belong together: the nearest mean image names most held-out digits."""
    data = datasets.digits()
    means = np.stack([data.images[data.labels == digit].mean(0) for digit in range(10)])
    distance = ((data.test_images[:, None] - means) ** 2).sum(axis=(2, 3, 4))
    assert (distance.argmin(1) == data.test_labels).mean() > 0.85


def test_text_is_prose_and_comes_back_from_its_codes() -> None:
    text = datasets.text(5000)
    prose = text.decode(text.codes)
    assert len(text.codes) == len(prose) == 5000
    assert prose.count(" the ") > 20
    assert np.array_equal(text.encode(prose), text.codes)
    with pytest.raises(LabkitError, match="no character 'Z'"):
        text.encode("Z")


def test_data_need_no_torch() -> None:
    code = (
        "import sys; from labkit.course.datasets import *; digits(); text(); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_convolutional_net_learns_to_read() -> None:
    require("torch")
    import torch

    from labkit.course.models import ConvNet

    torch.manual_seed(0)
    data, net = datasets.digits(), ConvNet()
    images, labels = torch.tensor(data.images), torch.tensor(data.labels)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for start in [*range(0, 1437, 64)] * 4:
        loss = torch.nn.functional.cross_entropy(net(images[start : start + 64]), labels[start : start + 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    guessed = net(torch.tensor(data.test_images)).argmax(1).numpy()
    assert (guessed == data.test_labels).mean() > 0.93


def test_the_transformer_learns_and_never_looks_ahead() -> None:
    require("torch")
    import torch

    from labkit.course.models import Transformer

    torch.manual_seed(0)
    text = datasets.text(50_000)
    net = Transformer(len(text.alphabet), tied=True)
    codes = torch.tensor(text.codes)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for _ in range(80):
        starts = torch.randint(len(codes) - 65, (16,))
        batch = torch.stack([codes[start : start + 65] for start in starts.tolist()])
        loss = torch.nn.functional.cross_entropy(net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert abs(losses[0] - np.log(len(text.alphabet))) < 1  # knows nothing yet
    assert np.mean(losses[-10:]) < 2.9  # as good as knowing how often each character occurs, or better

    changed = batch[:1, :-1].clone()
    changed[0, 40:] = (changed[0, 40:] + 1) % len(text.alphabet)
    before, after = net(batch[:1, :-1]), net(changed)
    assert torch.allclose(before[0, :40], after[0, :40], atol=1e-5)
    assert not torch.allclose(before[0, 40:], after[0, 40:])
