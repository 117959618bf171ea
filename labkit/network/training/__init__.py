"""Training on many ranks, in pieces that can be read: what torch's own DDP, FSDP and pipelines do inside.

`DataParallel` averages gradients in buckets while backward still runs; `ColumnParallelLinear` and
`RowParallelLinear` cut a layer; `PipelineStage` follows a schedule, `gpipe` or `one_f_one_b`;
`ShardedEmbedding` spreads a table over the ranks. All talk through `labkit.network`'s own sends and
receives, so that their bytes are counted and an emulated link slows them down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports

if TYPE_CHECKING:
    from labkit.network.training.background import Background, Handle
    from labkit.network.training.buckets import Bucket, assign
    from labkit.network.training.compare import Measured, measure_steps
    from labkit.network.training.data_parallel import DataParallel, share_of_mean
    from labkit.network.training.embedding import ShardedEmbedding
    from labkit.network.training.pipeline import PipelineStage
    from labkit.network.training.rehearsed import (
        Rehearsed,
        RehearsedWorld,
        rehearse_training,
        watch_gradients,
    )
    from labkit.network.training.schedules import Schedule, gpipe, one_f_one_b
    from labkit.network.training.tensor_parallel import ColumnParallelLinear, RowParallelLinear
    from labkit.network.training.world import World

_MODULES = {
    "background": "Background Handle",
    "buckets": "Bucket assign",
    "compare": "Measured measure_steps",
    "data_parallel": "DataParallel share_of_mean",
    "embedding": "ShardedEmbedding",
    "pipeline": "PipelineStage",
    "schedules": "Schedule gpipe one_f_one_b",
    "rehearsed": "Rehearsed RehearsedWorld rehearse_training watch_gradients",
    "tensor_parallel": "ColumnParallelLinear RowParallelLinear",
    "world": "World",
}
_LAZY = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Background",
    "Bucket",
    "ColumnParallelLinear",
    "DataParallel",
    "Handle",
    "Measured",
    "PipelineStage",
    "Rehearsed",
    "RehearsedWorld",
    "RowParallelLinear",
    "Schedule",
    "ShardedEmbedding",
    "World",
    "assign",
    "gpipe",
    "measure_steps",
    "one_f_one_b",
    "rehearse_training",
    "share_of_mean",
    "watch_gradients",
]

__getattr__, __dir__ = exports(__name__, _LAZY)
