"""Sending less: ways to make gradients small on the wire, and optimizers that send them less often.

`Fp16`, `TopK`, `Sign` and `PowerSGD` are states of one communication hook, `hook`:

>>> model = torch.nn.parallel.DistributedDataParallel(module)  # doctest: +SKIP
>>> model.register_comm_hook(compression.Sign(), compression.hook)  # doctest: +SKIP

`OneBitAdam` and `LocalSGD` do the averaging themselves, so they take a model that no one else keeps in step.
`Wire` reads how many bytes really went out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports

if TYPE_CHECKING:
    from labkit.network.compression.few import TopK
    from labkit.network.compression.half import Fp16, Plain
    from labkit.network.compression.hooks import hook
    from labkit.network.compression.local_sgd import LocalSGD
    from labkit.network.compression.low_rank import PowerSGD
    from labkit.network.compression.one_bit_adam import OneBitAdam
    from labkit.network.compression.signs import Sign, pack_signs, unpack_signs
    from labkit.network.compression.ways import WAYS, prepare
    from labkit.network.compression.wire import Wire

_MODULES = {
    "few": "TopK",
    "half": "Fp16 Plain",
    "hooks": "hook",
    "local_sgd": "LocalSGD",
    "low_rank": "PowerSGD",
    "one_bit_adam": "OneBitAdam",
    "signs": "Sign pack_signs unpack_signs",
    "ways": "WAYS prepare",
    "wire": "Wire",
}
_LAZY = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "WAYS",
    "Fp16",
    "LocalSGD",
    "OneBitAdam",
    "Plain",
    "PowerSGD",
    "Sign",
    "TopK",
    "Wire",
    "hook",
    "pack_signs",
    "prepare",
    "unpack_signs",
]

__getattr__, __dir__ = exports(__name__, _LAZY)
