"""The worker: runs one answer over all the cases of a check, and writes what came of each to a file of its
own.

A kernel is interpreted by the emulator, which runs no Python of the learner's. A function is Python and does
as it likes in here: nothing this process says is believed beyond the values it returns, which the notebook
compares.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from labkit.course.sandbox import loads, tensors, unpack, values, wire
from labkit.errors import KernelError

GUARD = 64  # elements before and after every output, to notice a write that goes astray


def main(path: str, start: int) -> None:
    """Run the job in the folder ``path``; one byte on descriptor ``start`` says that the answer's own time begins."""
    folder = Path(path)
    job, arrays = wire.read(folder / "job")
    if job["kind"] == "kernel":
        import labkit.compute.emulator.package
        import labkit.course.sandbox.observe  # noqa: F401  (both loaded before the clock starts)
    loads.load(job.get("loads", ()))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.write(start, b"!")
    os.close(start)
    save = _saver(folder)
    try:
        run = _prepare(job, arrays)
    except BaseException as error:
        save("case-0", raised(error), {})
        return
    for number, case in enumerate(job["cases"]):
        document, results = run(case)
        save(f"case-{number}", document, results)
        if "raised" in document or "kernel_error" in document:
            break
    with contextlib.suppress(Exception):
        sys.stdout.flush()


def _saver(folder: Path) -> Callable[[str, dict[str, Any], dict[str, np.ndarray]], None]:
    write = (
        wire.write
    )  # held here, so that an answer that patches modules by accident does not lose its results
    return lambda name, document, arrays: write(folder / name, document, arrays)


def _prepare(job: dict[str, Any], arrays: dict[str, np.ndarray]) -> Callable[[dict[str, Any]], Any]:
    if job["kind"] == "kernel":
        from labkit.compute.emulator import package

        own = {name[2:]: array for name, array in arrays.items() if name.startswith("p.")}
        kernel = package.unpack(job["package"], own)
        return lambda case: launch(kernel, case, arrays)
    function = unpack.function(job["package"], arrays)
    return lambda case: call(function, case, arrays)


def call(function: Callable[..., Any], case: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Call a Python answer with the arguments of one case."""
    arguments = values.decode(case["arguments"], arrays, tensors.to_tensor)
    encoder = values.Encoder("r")
    try:
        returned = encoder.encode(function(*arguments))
    except BaseException as error:
        return raised(error), {}
    return {"returned": returned}, encoder.arrays


def launch(kernel: Any, case: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Launch a kernel on the emulator with the sanitizer on; every array comes back, inputs too."""
    from labkit.course.sandbox import observe

    arguments = list(values.decode(case["arguments"], arrays))
    buffers = {n: _guarded(arguments[n]) for n in case["outputs"]}
    for n, (_, inner) in buffers.items():
        arguments[n] = inner
    try:
        seen = observe.launch(kernel, case, tuple(arguments))
    except KernelError as error:
        where = {"line": error.line, "block": error.block, "thread": error.thread}
        return {"kernel_error": {"kind": error.kind, "message": str(error), **where}}, {}
    except BaseException as error:
        return raised(error), {}
    after = {f"a{n}": a for n, a in enumerate(arguments) if isinstance(a, np.ndarray)}
    document = {
        **seen,
        "stray": {str(n): s for n, (buffer, _) in buffers.items() if (s := _stray(buffer)) is not None},
    }
    return document, after


def _guarded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A buffer with ``array`` in its middle, and that middle."""
    buffer = np.frombuffer(bytearray(b"\xa5" * (array.size + 2 * GUARD) * array.itemsize), array.dtype)
    inner = buffer[GUARD : GUARD + array.size].reshape(array.shape)
    inner[...] = array
    return buffer, inner


def _stray(buffer: np.ndarray) -> int | None:
    """Flat index, relative to the output's first element, of the first guard element that was written."""
    raw = buffer.view(np.uint8).reshape(buffer.size, -1)
    touched = np.flatnonzero((raw != 0xA5).any(axis=1))
    outside = touched[(touched < GUARD) | (touched >= buffer.size - GUARD)]
    return int(outside[0]) - GUARD if outside.size else None


def raised(error: BaseException) -> dict[str, Any]:
    """What an answer raised: type, message, and the last line of the answer's own that was running."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if _is_own(f)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    try:
        message = " ".join(filter(None, [str(error), *getattr(error, "__notes__", ())]))[:500]
    except BaseException:  # also what is raised on purpose to escape
        message = ""
    return {
        "raised": {"type": values.type_name(error), "message": message, "line": lines[-1] if lines else None}
    }


def _is_own(frame: traceback.FrameSummary) -> bool:
    """Whether a line is the learner's: what a check puts around an answer travels as text, too."""
    return frame.filename == unpack.FILENAME and not frame.name.startswith("_labkit")
