"""Where no namespaces are allowed: the same call, on ranks of one machine with an emulated link each."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from labkit.errors import LabkitError
from labkit.network.ranks import TIMEOUT_S, ranks
from labkit.network.results import RankResults


class EmulatedCluster:
    """Stands in for a `Cluster`: `run` works, what needs real links says why it cannot.

    Attributes
    ----------
    nodes : tuple of str
    note : str
        What is missing for a real one.
    """

    label = "emulated"

    def __init__(self, nodes: tuple[str, ...], bandwidth: float | None, latency: float, missing: str):
        self.nodes, self.bandwidth, self.latency = nodes, bandwidth, latency
        self.missing = missing
        self.note = f"{missing} Ranks on one machine with an emulated link each stand in for the nodes."

    def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        ranks_per_node: int = 1,
        trace: bool = False,
        timeout: float | str = TIMEOUT_S,
        **options: Any,
    ) -> RankResults:
        """Call ``function(*args)`` on every rank; see `labkit.ranks`.

        The link is emulated in labkit's own sends, receives and collectives, and nowhere else.

        Raises
        ------
        LabkitError
            For options (restarts, min_nodes) that need real nodes.
        """
        if options:
            self._refuse(f"run({', '.join(options)})")
        count = len(self.nodes) * ranks_per_node
        return ranks(count, self.bandwidth, self.latency or None).run(
            function, *args, trace=trace, timeout=timeout
        )

    def link(self, first: str, second: str | None = None) -> NoReturn:
        """Raises: emulated links do not change."""
        self._refuse("link(...)")

    def bytes(self) -> NoReturn:
        """Raises: there is no device that counts."""
        self._refuse("bytes()")

    def kill(self, node: str) -> NoReturn:
        """Raises: there is no node."""
        self._refuse("kill(...)")

    def start(self, node: str) -> NoReturn:
        """Raises: there is no node."""
        self._refuse("start(...)")

    def call(self, node: str, program: Any, **options: Any) -> NoReturn:
        """Raises: there is no node."""
        self._refuse("call(...)")

    def warm_up(self) -> None:
        """Nothing to be done: ranks share one server."""

    def _refuse(self, what: str) -> NoReturn:
        raise LabkitError(f"{what} needs real nodes, and this cluster is emulated: {self.missing}")

    def close(self) -> None:
        """Nothing is up."""

    def __enter__(self) -> EmulatedCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cluster({len(self.nodes)} nodes, emulated: {self.note})"
