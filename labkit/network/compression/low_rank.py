"""A gradient matrix as the product of two thin ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from labkit.errors import LabkitError
from labkit.network.compression.residuals import Residuals, pieces
from labkit.network.compression.transport import Transport


class PowerSGD:
    """Rank-r approximation by one step of power iteration: r (n + m) numbers for an n x m matrix.

    With M the gradient of a rank plus its remainder and Q what the step before has left: P = M Q, averaged over the
    ranks and made orthonormal; Q = M' P, averaged. Both averages are sums, so all-reduce works and the volume does
    not grow with the ranks. Every rank decodes P Q'. Biases, and matrices that would not get smaller, go as they
    are. Source: Vogels, Karimireddy, Jaggi, "PowerSGD", NeurIPS 2019, algorithms 1 and 2.

    Parameters
    ----------
    rank : int
        Columns of P and Q, from 1.
    feedback, warm_start : bool
        Keep what the approximation left out; begin from the Q of the step before rather than from a random one.

    Raises
    ------
    LabkitError
        For a rank below 1.
    """

    def __init__(self, rank: int = 2, feedback: bool = True, warm_start: bool = True, by: str | None = None):
        if rank < 1:
            raise LabkitError(f"PowerSGD({rank!r}): the rank is a whole number from 1 on.")
        self.rank, self.feedback, self.warm_start = rank, feedback, warm_start
        self.transport = Transport(by)
        self.residuals = Residuals()
        self._q: dict[torch.Tensor, torch.Tensor] = {}
        self._random = torch.Generator().manual_seed(0)  # all ranks draw the same numbers

    def average(self, flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> torch.Tensor:
        corrected = self.residuals.added(flat, parameters)
        parts = list(zip(parameters, pieces(corrected, parameters), strict=True))
        matrices = [(one, part.view(len(one), -1)) for one, part in parts if self.worth_it(one)]
        small = [part for one, part in parts if not self.worth_it(one)]

        rest = torch.cat(small) if small else corrected[:0]

        start = [matrix @ self._start(one, matrix) for one, matrix in matrices]
        *left, mean_rest = self._mean([*start, rest])
        left = [torch.linalg.qr(p.float()).Q.to(p.dtype) for p in left]
        own = [matrix.T @ p for (_, matrix), p in zip(matrices, left, strict=True)]
        if self.feedback:
            self.residuals.keep(corrected - self._joined(parameters, left, own, rest), parameters)
        right = self._mean(own)
        self._remember([one for one, _ in matrices], right)
        return self._joined(parameters, left, right, mean_rest)

    def _remember(self, parameters: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> None:
        """Q for the next step; one that is not finite is drawn anew, or it would never be finite again."""
        for parameter, q in zip(parameters, right, strict=True):
            if q.isfinite().all():
                self._q[parameter] = q
            else:
                self._q.pop(parameter, None)

    def worth_it(self, parameter: torch.Tensor) -> bool:
        """Whether a parameter is a matrix (or a stack of filters) that r (n + m) numbers make smaller."""
        if parameter.dim() < 2 or not parameter.numel():
            return False
        rows, columns = len(parameter), parameter.numel() // len(parameter)
        return self.rank * (rows + columns) < rows * columns

    def _start(self, parameter: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.warm_start and parameter in self._q:
            return self._q[parameter]
        drawn = torch.randn(matrix.shape[1], self.rank, generator=self._random)
        return drawn.to(matrix.device, matrix.dtype)

    def _mean(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Of each tensor over all ranks, in one message."""
        if not tensors:
            return []
        flat = self.transport.sum_(torch.cat([one.reshape(-1) for one in tensors])) / self.transport.ranks
        return [part.view_as(one) for part, one in zip(pieces(flat, tensors), tensors, strict=True)]

    def _joined(
        self,
        parameters: Sequence[torch.Tensor],
        left: Sequence[torch.Tensor],
        right: Sequence[torch.Tensor],
        rest: torch.Tensor,
    ) -> torch.Tensor:
        """One flat tensor again, in the order of the parameters: products P Q', and what went as it is."""
        small = iter(pieces(rest, [one for one in parameters if not self.worth_it(one)]))
        large = (p @ q.T for p, q in zip(left, right, strict=True))
        parts = [next(large).reshape(-1) if self.worth_it(one) else next(small) for one in parameters]
        return torch.cat([rest[:0], *parts])
