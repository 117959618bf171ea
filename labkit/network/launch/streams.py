"""What ranks print, shown in the cell that runs them: each line with its rank, in order, and bounded."""

from __future__ import annotations

import os
import sys

HEAD = 64 * 1024  # bytes of a stream of a rank that are shown as they come
TAIL = 8 * 1024  # and of what follows, so many of the last
LINE = 8 * 1024  # a longer line is shown in pieces
_PIECE = 1 << 16


class Stream:
    """Standard output or standard error of one rank: the reading end of its pipe.

    Parameters
    ----------
    pipe : int
        Descriptor, which this object closes.
    rank : int
    name : {"stdout", "stderr"}
    """

    def __init__(self, pipe: int, rank: int, name: str):
        self.pipe, self.rank, self.name = pipe, rank, name
        os.set_blocking(pipe, False)
        self.total = 0
        self._shown = 0
        self._partial = b""
        self._tail = b""

    def pump(self) -> bool:
        """Show what has come; False when the other end is closed."""
        try:
            piece = os.read(self.pipe, _PIECE)
        except BlockingIOError:
            return True
        self.total += len(piece)
        room = HEAD - self._shown
        self._shown += min(room, len(piece))
        self._show(piece[:room])
        self._tail = (self._tail + piece[room:])[-TAIL:]
        return bool(piece)

    def close(self) -> None:
        """Show what is left, with a note of what is left out."""
        for _ in range(64):  # a pipe holds a megabyte at most
            before = self.total
            if not self.pump() or self.total == before:
                break
        self._show(b"\n" if self._partial else b"")
        left_out = self.total - self._shown - len(self._tail)
        if left_out:
            self._write(
                f"[... {left_out:,} of {self.total:,} bytes that it wrote to {self.name} left out ...]"
            )
        self._show(self._tail.removesuffix(b"\n") + b"\n" if self._tail else b"")
        os.close(self.pipe)

    def _show(self, piece: bytes) -> None:
        *lines, rest = (self._partial + piece).split(b"\n")
        while len(rest) > LINE:
            lines.append(rest[:LINE])
            rest = rest[LINE:]
        self._partial = rest
        for line in lines:
            # a progress bar returns to the start of its line: what stands there in the end is shown
            self._write(line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace"))

    def _write(self, text: str) -> None:
        target = getattr(sys, self.name)
        target.write(f"[rank {self.rank}] {text}\n")
        target.flush()
