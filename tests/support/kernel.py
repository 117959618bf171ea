"""A real ipykernel, spoken to as a notebook's front end does."""

from __future__ import annotations

import time
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

Message = dict[str, Any]


class Kernel:
    """Starts a kernel; use as a context manager."""

    def __enter__(self) -> Kernel:
        self.manager = KernelManager(kernel_name="python3", transport="ipc")
        self.manager.start_kernel()
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        return self

    def __exit__(self, *_: Any) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def send(self, code: str, cell: str = "") -> str:
        """Ask to run code, in a cell of the given identity; returns the request's id."""
        message = self.client.session.msg(
            "execute_request", {"code": code, "silent": False, "store_history": True}
        )
        message["metadata"] = {"cellId": cell} if cell else {}
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def run(self, code: str, cell: str = "", seconds: float = 30) -> list[Message]:
        """Run code; everything the kernel published until it was idle again. Errors fail the test."""
        request = self.send(code, cell)
        seen = self.listen(seconds, until=lambda message: is_idle(message, request))
        assert seen, "the kernel said nothing"
        assert is_idle(seen[-1], request), "the cell did not end"
        assert not (errors := [m["content"]["traceback"] for m in seen if m["msg_type"] == "error"]), errors
        return seen

    def value(self, expression: str) -> Any:
        """The value of an expression that prints as a literal."""
        import ast

        seen = self.run(f"print(repr({expression}))")
        return ast.literal_eval("".join(m["content"]["text"] for m in seen if m["msg_type"] == "stream"))

    def listen(self, seconds: float, until: Any = lambda message: False) -> list[Message]:
        """What the kernel publishes within a time, or until a message that fits."""
        seen: list[Message] = []
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0 and not (seen and until(seen[-1])):
            try:
                seen.append(self.client.get_iopub_msg(timeout=left))
            except Empty:
                break
        return seen

    def say(self, comm: str, **content: Any) -> None:
        """A message from the view of a widget."""
        data = {"method": "custom", "content": content}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", {"comm_id": comm, "data": data}))


def is_idle(message: Message, request: str) -> bool:
    return (
        message["msg_type"] == "status"
        and message["content"]["execution_state"] == "idle"
        and message["parent_header"].get("msg_id") == request
    )


def opened(messages: list[Message]) -> Message:
    """The message that opened the live plot."""
    (found,) = [
        m for m in messages if m["msg_type"] == "comm_open" and "_esm" in m["content"]["data"]["state"]
    ]
    return found


def customs(messages: list[Message], comm: str) -> list[Message]:
    """Custom messages of one widget: samples and histories."""
    return [
        m
        for m in messages
        if m["msg_type"] == "comm_msg"
        and m["content"]["comm_id"] == comm
        and m["content"]["data"]["method"] == "custom"
    ]


def samples(messages: list[Message], comm: str) -> list[Message]:
    return [m for m in customs(messages, comm) if isinstance(m["content"]["data"]["content"], list)]


def histories(messages: list[Message], comm: str) -> list[Message]:
    return [m for m in customs(messages, comm) if isinstance(m["content"]["data"]["content"], dict)]
