"""The fork server of a cluster: it may enter every node, and forks torchrun's agents and the ranks into them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from typing import Any, NoReturn

from labkit.network.cluster import kernel
from labkit.network.launch import server, wire

_AGENT = ("torch.distributed.run", "torch.distributed.elastic.agent.server.local_elastic_agent")
_POLL_S = 0.02


class NodeServer(server.Server):
    """Whoever is asked for begins inside a node: its network and its host name come as the last descriptors."""

    def _become_rank(self, message: dict[str, Any], files: list[int], server: int) -> None:
        *files, network, name = files
        try:
            for space in (network, name):
                kernel.enter(space)
                os.close(space)
        except OSError:
            os._exit(71)
        if message["agent"]:
            self._become_agent(*files)
        super()._become_rank(message, files, server)

    def _become_agent(self, door: int, log: int, told: int) -> NoReturn:
        """torchrun, as its command starts it, but for the imports, which have been done already."""
        try:
            self._shed()
            os.setpgid(0, 0)
            for target, source in ((0, door), (1, log), (2, log)):
                os.dup2(source, target)
            sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 (as long as the agent lives)
            sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
            settings = wire.read_json(told)
            os.environ.update(settings["environment"])
            os.chdir(settings["folder"])
            if "store" in settings:
                _hold_store(*settings["store"])
            from torch.distributed import run

            _poll_often()
            run.main(settings["torchrun"])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)


def _hold_store(address: str, port: int) -> NoReturn:
    """What the agents of all nodes meet in, as a machine of its own would hold it: no node's end can end it."""
    from torch.distributed import TCPStore

    store = TCPStore(address, port, is_master=True, wait_for_workers=False)
    while store:
        time.sleep(3600)
    os._exit(0)


def _poll_often() -> None:
    """torchrun looks at its rendezvous once a second, which spares one that thousands share; few share this one.

    The names are torch's own affair: where they have gone, starting takes a second longer.
    """
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous as inner

    with contextlib.suppress(AttributeError):
        inner._BackendRendezvousStateHolder.__init__.__defaults__ = (_POLL_S,)
        inner._delay = lambda seconds: time.sleep(_POLL_S)


if __name__ == "__main__":
    server.main(NodeServer, _AGENT)
