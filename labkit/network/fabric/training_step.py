"""One step of training a transformer on a fabric: compute by the roofline, communication by the simulator.

Ranks are laid out with tensor parallelism innermost (neighbours talk most), then data, then pipeline. A step is a
1F1B pipeline of micro-batches; gradients are all-reduced in buckets while the last backward pass still runs
(Narayanan and others, Efficient large-scale language model training on GPU clusters, SC 2021). All of it is modelled.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labkit.compute.model import modelled_time
from labkit.errors import LabkitError
from labkit.hardware.html import facts_table
from labkit.hardware.units import parse, show_time
from labkit.network.fabric.machine import Fabric
from labkit.network.fabric.topology import whole

LABEL = "modelled"


@dataclass(frozen=True)
class Transformer:
    """What is trained: `parameters` in all, `layers` of `hidden` width, sequences of `sequence` tokens.

    `bytes_a_value` is that of weights, activations and gradients.
    """

    parameters: float
    layers: int
    hidden: int
    sequence: int = 2048
    bytes_a_value: float = 2
    precision: str = "fp16_tensor"


@dataclass(frozen=True)
class Layout:
    """How the ranks share the work: `data` x `tensor` x `pipeline` of them."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1

    @property
    def ranks(self) -> int:
        return self.data * self.tensor * self.pipeline

    def numbers(self) -> np.ndarray:
        """Ranks as an array [pipeline stage, replica, tensor part]."""
        return np.arange(self.ranks).reshape(self.pipeline, self.data, self.tensor)

    def tensor_groups(self) -> list[list[int]]:
        return list(self.numbers().reshape(-1, self.tensor).tolist())

    def data_groups(self) -> list[list[int]]:
        return list(self.numbers().transpose(0, 2, 1).reshape(-1, self.data).tolist())

    def __str__(self) -> str:
        return f"{self.data} data x {self.tensor} tensor x {self.pipeline} pipeline"


@dataclass(frozen=True)
class TrainingStep:
    """Where the time of one step goes, in seconds; the parts add up to `seconds`.

    compute_s : arithmetic, were there nothing else
    tensor_s : all-reduces inside the layers, which nothing hides
    bubble_s : stages of the pipeline waiting for work, and handing it on
    exposed_s : gradient all-reduces that outlast the backward pass; `reduce_s` is what they take in all
    """

    seconds: float
    compute_s: float
    tensor_s: float
    bubble_s: float
    exposed_s: float
    reduce_s: float
    micro_batches: int
    buckets: int
    ranks: int
    tokens: float
    layout: Layout
    fabric: str
    gpu: str

    @property
    def label(self) -> str:
        return f"{LABEL} on {self.gpu} and {self.fabric}"

    @property
    def efficiency(self) -> float:
        """Compute over everything: 1 if all ranks only ever computed."""
        return self.compute_s / self.seconds

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds

    def to_dict(self) -> dict[str, Any]:
        rates = {"efficiency": self.efficiency, "tokens_per_s": self.tokens_per_s}
        return {"label": self.label, **asdict(self), **rates}

    def __repr__(self) -> str:
        return (
            f"TrainingStep({self.layout}: {show_time(self.seconds)}, {self.efficiency:.1%} of it compute, "
            f"{show_time(self.exposed_s)} of gradients exposed, {self.tokens_per_s:,.0f} tokens/s, {self.label})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "step": f"{show_time(self.seconds)}, {self.efficiency:.1%} of it compute",
            "compute": show_time(self.compute_s),
            "tensor parallel all-reduces": show_time(self.tensor_s),
            "pipeline bubble": show_time(self.bubble_s),
            "gradients": f"{show_time(self.exposed_s)} exposed of {show_time(self.reduce_s)}, {self.buckets} buckets",
            "throughput": f"{self.tokens_per_s:,.0f} tokens/s on {self.ranks} GPUs, {self.layout}",
        }
        return facts_table(facts, self.label)


def training_step(
    fabric: Fabric,
    model: Transformer,
    batch: int,
    layout: Layout | None = None,
    micro_batch: int = 1,
    bucket: str | float = "25MiB",
    overlap: bool = True,
    of_peak: float = 0.5,
    algorithm: str = "ring",
    gpu: str | None = None,
) -> TrainingStep:
    """Time of one step of `batch` sequences.

    Parameters
    ----------
    layout : Layout, optional
        Data parallel over all GPUs by default.
    micro_batch : int
        Sequences a replica works on at a time.
    bucket : str or float
        Bytes of gradients all-reduced at a time.
    overlap : bool
        Whether buckets travel while the backward pass runs.
    of_peak : float
        Share of the roofline that real kernels reach: an assumption, to be replaced by what you measured.
    algorithm : str
        Of the all-reduces.
    gpu : str, optional
        Card of the catalogue; by default the fabric's own.

    Raises
    ------
    LabkitError
        For a layout that does not fit the fabric, and a batch that does not divide.
    """
    layout = layout or Layout(data=len(fabric.topology.gpus))
    card = gpu or fabric.topology.gpu
    _check(fabric, model, layout, batch, micro_batch, of_peak, card)
    micro = batch // (layout.data * micro_batch)
    forward = _forward(model, layout, micro_batch, of_peak, str(card))
    tensor = _tensor(fabric, model, layout, micro_batch, algorithm)
    # One slot of the pipeline is a forward and a backward pass, and the backward pass does twice the work.
    handing = _handing(fabric, model, layout, micro_batch)
    slot = 3 * forward + 2 * tensor
    bubble = (layout.pipeline - 1) * (slot + 2 * handing)
    buckets, each = _buckets(fabric, model, layout, parse(bucket, "size"), algorithm)
    backward = 2 * forward + tensor
    exposed = _exposed(buckets, each, backward) if overlap else buckets * each
    return TrainingStep(
        seconds=micro * slot + bubble + exposed,
        compute_s=micro * 3 * forward,
        tensor_s=micro * 2 * tensor,
        bubble_s=bubble,
        exposed_s=exposed,
        reduce_s=buckets * each,
        micro_batches=micro,
        buckets=buckets,
        ranks=layout.ranks,
        tokens=float(batch * model.sequence),
        layout=layout,
        fabric=fabric.name,
        gpu=str(card),
    )


def _check(
    fabric: Fabric,
    model: Transformer,
    layout: Layout,
    batch: int,
    micro_batch: int,
    of_peak: float,
    card: str | None,
) -> None:
    if card is None:
        raise LabkitError(f"{fabric.name} does not say which GPU it has: give one, as in gpu='H100'.")
    if layout.ranks > len(fabric.topology.gpus):
        raise LabkitError(
            f"{layout} are {layout.ranks} ranks, and {fabric.name} has {len(fabric.topology.gpus)} GPUs."
        )
    share = layout.data * whole(micro_batch, "micro_batch")
    if whole(batch, "batch") % share:
        raise LabkitError(
            f"A batch of {batch} does not divide into {layout.data} replicas of {micro_batch}-sequence pieces."
        )
    if model.layers % layout.pipeline:
        raise LabkitError(f"{model.layers} layers do not divide into {layout.pipeline} pipeline stages.")
    if not 0 < of_peak <= 1:
        raise LabkitError(f"of_peak={of_peak!r} is no share: give more than 0 and at most 1.")


def _forward(model: Transformer, layout: Layout, micro_batch: int, of_peak: float, gpu: str) -> float:
    """Forward pass of one stage over one micro-batch: 2 FLOP a parameter and token, its weights read once."""
    held = model.parameters / layout.pipeline / layout.tensor
    work = 2 * held * micro_batch * model.sequence
    peak = modelled_time(work, held * model.bytes_a_value, gpu, model.precision, launch_s=0)
    return peak.seconds / of_peak


def _activations(model: Transformer, micro_batch: int) -> float:
    return micro_batch * model.sequence * model.hidden * model.bytes_a_value


def _tensor(fabric: Fabric, model: Transformer, layout: Layout, micro_batch: int, algorithm: str) -> float:
    """All-reduces of a stage's forward pass, two a layer; the backward pass has as many."""
    if layout.tensor == 1:
        return 0.0
    groups, size = layout.tensor_groups(), _activations(model, micro_batch)
    once = fabric.all_reduce(size, algorithm, groups=groups, ranks=layout.ranks).seconds
    return 2 * model.layers / layout.pipeline * once


def _handing(fabric: Fabric, model: Transformer, layout: Layout, micro_batch: int) -> float:
    """Handing one micro-batch's activations from every stage to the next, all at once."""
    if layout.pipeline == 1:
        return 0.0
    size, ranks = _activations(model, micro_batch) / layout.tensor, layout.numbers()
    sends = zip(ranks[:-1].ravel().tolist(), ranks[1:].ravel().tolist(), strict=True)
    return fabric.run([(one, other, size, ()) for one, other in sends], ranks=layout.ranks).seconds


def _buckets(
    fabric: Fabric, model: Transformer, layout: Layout, bucket: float, algorithm: str
) -> tuple[int, float]:
    """How many buckets of gradients a rank has, and what one all-reduce of all groups takes."""
    if layout.data == 1:
        return 0, 0.0
    gradients = model.parameters / layout.pipeline / layout.tensor * model.bytes_a_value
    count = max(1, math.ceil(gradients / bucket))
    groups = layout.data_groups()
    return count, fabric.all_reduce(gradients / count, algorithm, groups=groups, ranks=layout.ranks).seconds


def _exposed(buckets: int, each: float, backward: float) -> float:
    """How long after the backward pass the last bucket arrives; they become ready at equal distances during it."""
    done = 0.0
    for ready in range(1, buckets + 1):
        done = max(done, backward * ready / buckets) + each
    return max(0.0, done - backward)
