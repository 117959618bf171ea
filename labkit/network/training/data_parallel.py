"""Data parallelism by hand: every rank has the whole model and a part of the batch.

What ``torch.nn.parallel.DistributedDataParallel`` does, in the same steps: rank 0's weights go to all; a hook
on every parameter notices its gradient; a bucket whose gradients are all there is all-reduced behind the
backward pass; at the end the averages are copied back. Source: Li et al., "PyTorch Distributed: Experiences
on Accelerating Data Parallel Training", VLDB 2020.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from labkit.errors import LabkitError
from labkit.hardware.units import parse
from labkit.network.collectives import ring_all_reduce
from labkit.network.training.buckets import Bucket, HookBucket, Hooked, assign
from labkit.network.training.world import World


class Happened(NamedTuple):
    """What backward did: ``"gradient"`` of a parameter, ``"launch"`` or ``"landed"`` of a bucket."""

    what: str
    name: str


class DataParallel(nn.Module):
    """Wrap a model; then train as if alone: ``loss.backward()`` leaves the average gradient on every rank.

    Each synchronised backward pass belongs to the forward pass before it. A backward pass without one (a second
    backward through the same graph, or a forward inside `no_sync` and its backward outside) is an error.

    Parameters
    ----------
    module : nn.Module
    bucket : str or float
        Most bytes a bucket has.
    overlap : bool
        False launches every bucket only when backward has ended.
    find_unused : bool
        Parameters that a forward pass does not use get no gradient, and their bucket would wait for ever.
        True walks the graph after each forward pass to find them; where no rank uses one, its gradient stays. A rank
        may also use none at all.
    by : str
        ``"labkit"``: own ring, counted, over the emulated link. ``"torch"``: ``dist.all_reduce(async_op=True)``,
        the default on NCCL.
    world : World
        The other ranks; those of this run by default, or those of a rehearsal.

    Attributes
    ----------
    buckets : list of Bucket
    log : list of Happened
        The last synchronised backward pass, in order.
    """

    def __init__(
        self,
        module: nn.Module,
        bucket: str | float = "1MiB",
        overlap: bool = True,
        find_unused: bool = False,
        by: str | None = None,
        world: Any = None,
    ):
        super().__init__()
        self.module = module
        self.overlap, self.find_unused = overlap, find_unused
        self.world = world if world is not None else World(by)
        self.buckets = assign(module.named_parameters(), parse(bucket, "size"))
        self.log: list[Happened] = []
        self._syncing = True
        self._expecting = False  # a forward pass has been, and its backward has not
        self._running = False
        self._next = 0
        self._comm_hook: tuple[Any, Callable[..., Any]] | None = None
        self._broadcast([*module.parameters(), *module.buffers()])
        self._hook()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.training and self._syncing and torch.is_grad_enabled():
            self._broadcast(list(self.module.buffers()))
        result = self.module(*args, **kwargs)
        if not torch.is_grad_enabled():
            return result
        if self._syncing:
            self._begin()
            if self.find_unused:
                self._skip_unused(result)
        return tree_map_only(torch.Tensor, partial(self._heard, synced=self._syncing), result)

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Have buckets averaged by ``hook(state, bucket)``, as in torch's DDP: it returns a future of the average."""
        self._comm_hook = state, hook

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forward and backward passes inside add to the gradients of this rank and send nothing."""
        before, self._syncing = self._syncing, False
        try:
            yield
        finally:
            self._syncing = before

    def bytes_sent(self) -> int:
        """Gradient bytes this rank sends in a synchronised backward pass of the own ring; exact."""
        return sum(one.bytes_sent(self.world.rank, self.world.world_size) for one in self.buckets)

    def _broadcast(self, tensors: list[torch.Tensor]) -> None:
        for tensor in tensors:
            self.world.broadcast(tensor.detach())

    def _hook(self) -> None:
        for bucket in self.buckets:
            for position, parameter in enumerate(bucket.parameters):
                parameter.register_post_accumulate_grad_hook(partial(self._ready, bucket, position))

    def _heard(self, output: torch.Tensor, synced: bool) -> torch.Tensor:
        """An output that says when backward gets to it, also where this rank has used no parameter for it.

        The others wait for this rank's share in any case; so its backward pass has to be noticed even if it brings no
        gradient, and has to be possible even if nothing here asked for one.
        """
        if not output.is_floating_point():
            return output
        if not output.requires_grad:
            output = output.detach().requires_grad_()
        if output.is_leaf:
            output = output * 1  # a hook on the leaf itself would stay for later steps
        output.register_hook(lambda _: self._came(synced))
        return output

    def _came(self, synced: bool) -> None:
        """Backward has come to an output whose forward pass was synchronised, or was not."""
        if synced and not self._syncing:
            raise LabkitError(_NO_BACKWARD)
        self._start()

    def _begin(self) -> None:
        self.log.clear()
        self._expecting, self._running, self._next = True, False, 0
        for bucket in self.buckets:
            bucket.begin()

    def _start(self) -> None:
        """A backward pass has come to this model: what is full already may leave."""
        if not self._syncing or self._running:
            return
        if not self._expecting:
            raise LabkitError(_NO_FORWARD)
        self._running = True
        # called when this backward pass has done all else; torch's own DDP ends its passes so, too
        torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        if self.overlap:
            self._launch_full()

    def _ready(self, bucket: Bucket, position: int, parameter: torch.Tensor) -> None:
        """Backward has finished one parameter's gradient."""
        if not self._syncing:
            return
        self._start()
        self.log.append(Happened("gradient", bucket.names[position]))
        if bucket.handle is not None:
            raise LabkitError(_LATE.format(name=bucket.names[position]))
        bucket.take(position)
        if self.overlap:
            self._launch_full()

    def _launch_full(self) -> None:
        """Start the buckets that are full, in order: all ranks must agree on it."""
        while self._next < len(self.buckets) and not self.buckets[self._next].waiting:
            bucket = self.buckets[self._next]
            self.log.append(Happened("launch", str(bucket.index)))
            bucket.handle = self._exchange(bucket)
            self._next += 1

    def _exchange(self, bucket: Bucket) -> Any:
        if self._comm_hook is None:
            return self.world.all_reduce_async(bucket.flat)
        state, hook = self._comm_hook
        return Hooked(hook(state, HookBucket(bucket, len(self.buckets))), bucket.flat)

    def _finish(self) -> None:
        """The backward pass has ended: wait for all buckets and copy the averages back."""
        self._expecting = self._running = False
        self._check_complete()
        self._launch_full()
        for bucket in self.buckets:
            bucket.handle.wait()
            self.log.append(Happened("landed", str(bucket.index)))
            if self._comm_hook is None:
                bucket.flat /= self.world.world_size
        used = self._used_anywhere()
        for bucket in self.buckets:
            for position, name in enumerate(bucket.names):
                if name in used:
                    bucket.give(position)

    def _check_complete(self) -> None:
        missing = [bucket.names[p] for bucket in self.buckets for p in sorted(bucket.waiting)]
        if missing:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            raise LabkitError(
                f"Backward brought no gradient for {', '.join(missing[:_NAMED])}{more}: the forward pass did not use "
                "them. Freeze them (requires_grad_(False)), or wrap the model with find_unused=True on all ranks."
            )

    def _skip_unused(self, result: Any) -> None:
        """What the graph does not reach is as good as ready: zeros, or what no_sync left there."""
        reached = reachable(result)
        for bucket in self.buckets:
            for position, parameter in enumerate(bucket.parameters):
                if id(parameter) not in reached:
                    bucket.take(position)

    def _used_anywhere(self) -> set[str]:
        """Names with a gradient on some rank."""
        names = [name for bucket in self.buckets for name in bucket.names]
        if not self.find_unused:
            return set(names)
        parameters = [parameter for bucket in self.buckets for parameter in bucket.parameters]
        flags = torch.tensor([int(one.grad is not None) for one in parameters], device=parameters[0].device)
        self.world.all_reduce(flags)
        return {name for name, flag in zip(names, flags.tolist(), strict=True) if flag}


_NAMED = 3
_NO_FORWARD = (
    "Backward has come to a model whose forward pass was not synchronised, or whose gradients were averaged already: "
    "run forward and backward together, both inside no_sync() or both outside, and one backward for each forward."
)
_NO_BACKWARD = (
    "The forward pass of this output was outside no_sync(), and its backward is inside, where nothing is sent: run "
    "forward and backward together, both inside no_sync() or both outside."
)
_LATE = (
    "The gradient of {name} came after its bucket had left: the forward pass before this backward did not use it. Join "
    "what several forward passes give in one call of the model, or run a backward for each."
)


def reachable(result: Any) -> set[int]:
    """Ids of the parameters that backward from these outputs (a tensor, or a nest of them) will reach."""
    found: set[int] = set()
    leaves = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
    nodes = [torch.autograd.graph.get_gradient_edge(one).node for one in leaves]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found


def share_of_mean(total: torch.Tensor, count: int) -> torch.Tensor:
    """A loss whose gradient, averaged over ranks, is that of the mean over all ranks' samples.

    The average of means is not the mean where batches differ; so each rank gives the *sum* over its samples
    (zero samples are allowed) and gets it back times world size over the number of all samples.

    Parameters
    ----------
    total : tensor
        The sum of this rank's losses.
    count : int
        How many they are.
    """
    everybody = torch.tensor([count], device=total.device)
    ring_all_reduce(everybody)
    return total * (dist.get_world_size() / int(everybody))
