"""``cuda.jit`` in all its spellings."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from labkit.compute.emulator.kernel import EmulatedKernel
from labkit.compute.emulator.kernel import jit as make
from labkit.compute.emulator.signatures import is_signature
from labkit.errors import KernelError

# Options of numba.cuda.jit that change compiled code only, and so nothing here.
COMPILER_OPTIONS = {
    "abi",
    "abi_info",
    "boundscheck",
    "chip",
    "error_model",
    "forceinline",
    "launch_bounds",
    "lto",
    "max_registers",
    "nopython",
    "nrt",
    "shared_memory_carveout",
}


def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: Any = "never",
    link: Any = (),
    debug: Any = None,
    opt: Any = None,
    lineinfo: bool = False,
    cache: bool = False,
    fastmath: bool = False,
    **options: Any,
) -> Any:
    """Make a kernel, or with ``device=True`` a function that kernels call; brackets may be left out.

    Parameters
    ----------
    func_or_sig : function, signature or list of signatures
        A signature such as ``"void(float32[:], int32)"`` or ``(float32[:], int32)`` fixes the types: numbers are
        converted to them, and arrays of other types are refused.
    device : bool
        Whether this is a function for kernels instead of a kernel.

    The other options are the compiler's; they change nothing here, except that ``link`` is refused.
    """
    _check_options(options)
    if link:
        raise KernelError(
            "cuda.jit(link=...) adds CUDA C++ code, which the emulator cannot run: write the function in Python with "
            "@cuda.jit(device=True).",
            kind="unsupported",
        )
    signature = options.pop("argtypes", None)
    signed = is_signature(func_or_sig)

    def decorate(function: Callable) -> EmulatedKernel:
        # numba's own @jit functions may be decorated once more
        return make(getattr(function, "py_func", function), device, func_or_sig if signed else signature)

    return decorate if signed or func_or_sig is None else decorate(func_or_sig)


def _check_options(options: dict[str, Any]) -> None:
    known = {*COMPILER_OPTIONS, "argtypes", "restype", "bind", "extensions"}
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *inspect.signature(jit).parameters], 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise KernelError(f"cuda.jit has no option '{name}'.{hint}", kind="unsupported")
