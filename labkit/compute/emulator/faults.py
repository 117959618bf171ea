"""The sentences for what a kernel did wrong: which line, which thread, which index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.compute.emulator.program import Site
from labkit.errors import KernelError

if TYPE_CHECKING:
    from labkit.compute.emulator.group import Group
    from labkit.compute.emulator.memory import Array


def where(site: Site) -> str:
    text = f" ({site.text})" if site.text else ""
    return f"Kernel '{site.function}', line {site.line}{text}"


def thread_in_words(block: tuple[int, ...], thread: tuple[int, ...]) -> str:
    """``thread 3 of block 2``, or all three coordinates when the launch has more than one dimension."""
    if not any(block[1:]) and not any(thread[1:]):
        return f"thread {thread[0]} of block {block[0]}"
    return f"thread {thread} of block {block}"


def out_of_bounds(
    array: Array, index: tuple[int, ...], group: Group, lane: int, site: Site, verb: str
) -> KernelError:
    """An access outside an array, by the first lane that makes it."""
    block, thread = group.locate(lane)
    shown = ", ".join(map(str, index))
    axis = next(k for k, (i, n) in enumerate(zip(index, array.shape, strict=True)) if not -n <= i < n)
    length = array.shape[axis]
    valid = f"0 to {length - 1}" if length else "nothing, it is empty"
    along = "" if len(index) == 1 else f" along axis {axis}"
    name = array.name or site.operand
    return KernelError(
        f"{where(site)}: {thread_in_words(block, thread)} {verb} {name}[{shown}], but {name} has shape "
        f"{array.shape}, so valid indices{along} are {valid}. Let only threads whose index is inside the array touch "
        "it, for example with an 'if' around this line.",
        kind="out-of-bounds",
        line=site.line,
        block=block,
        thread=thread,
    )


def undefined(site: Site) -> KernelError:
    return KernelError(
        f"{where(site)}: '{site.operand}' may be used before any value was assigned to it; "
        "assign it before the 'if' or the loop.",
        kind="undefined",
        line=site.line,
    )


def divergent_barrier(name: str, group: Group, line: int, text: str, lane: int, instead: str) -> KernelError:
    block, thread = group.locate(lane)
    return KernelError(
        f"Kernel '{name}', line {line} ({text}): some threads of block {block} wait at this cuda.syncthreads(), but "
        f"{thread_in_words(block, thread)} {instead}. Every thread of a block must reach the same barrier: move "
        "cuda.syncthreads() out of the 'if' or loop that not all threads enter.",
        kind="divergent-barrier",
        line=line,
        block=block,
        thread=thread,
    )


def no_progress(name: str, group: Group, line: int, text: str) -> KernelError:
    block, thread = group.locate(0)
    return KernelError(
        f"Kernel '{name}', line {line} ({text}): {thread_in_words(block, thread)} waits in this loop for memory that "
        "no other thread changes any more, so the kernel would never end. Make sure that some thread writes what the "
        "loop waits for.",
        kind="needs-forward-progress",
        line=line,
        block=block,
        thread=thread,
    )


def step_budget(name: str, group: Group, line: int, text: str, steps: int) -> KernelError:
    block, thread = group.locate(0)
    return KernelError(
        f"Kernel '{name}', line {line} ({text}): {thread_in_words(block, thread)} went round this loop {steps:,} times "
        "without end, so the kernel was stopped. Check that the loop's condition becomes false; if the loop really is "
        "that long, raise the limit with cuda.set_step_budget(steps).",
        kind="step-budget",
        line=line,
        block=block,
        thread=thread,
    )
