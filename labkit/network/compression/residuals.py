"""Error feedback: what compression left out of a gradient is kept, and added to the next one.

Nothing is lost that way, only late: after any number of steps, all that a rank has sent plus what it still keeps
is the sum of its gradients. Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient
Compression Schemes", ICML 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


class Residuals:
    """This rank's own remainders, one for each parameter.

    They are kept by parameter and not by bucket, because DDP regroups and reorders its buckets after the first
    backward pass.
    """

    def __init__(self) -> None:
        self._kept: dict[torch.Tensor, torch.Tensor] = {}

    def added(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        """A bucket's gradients, each with its remainder; a new tensor."""
        corrected = flat.clone()
        for piece, parameter in zip(pieces(corrected, parameters), parameters, strict=True):
            kept = self._kept.get(parameter)
            if kept is not None:
                piece += kept
        return corrected

    def keep(self, left: torch.Tensor, parameters: Sequence[torch.Tensor]) -> None:
        """What has not been sent. An inf or NaN has been, and would otherwise never leave again."""
        finite = torch.nan_to_num(left, nan=0.0, posinf=0.0, neginf=0.0)
        for piece, parameter in zip(pieces(finite, parameters), parameters, strict=True):
            self._kept[parameter] = piece.clone()

    def of(self, parameter: torch.Tensor) -> torch.Tensor:
        """The remainder of one parameter, in its shape; zeros before the first step."""
        kept = self._kept.get(parameter)
        return torch.zeros_like(parameter) if kept is None else kept.view_as(parameter)


def pieces(flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """The parts of a flat tensor that belong to each parameter; views."""
    return flat.split([parameter.numel() for parameter in parameters])
