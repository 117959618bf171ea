"""``cuda.jit`` on the emulator: a kernel, its launches, and the programs made for its argument types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from labkit.compute.emulator import activity, signatures, subset
from labkit.compute.emulator.allocations import address, allocation_of
from labkit.compute.emulator.arguments import Argument, classify, leaves
from labkit.compute.emulator.executor import ChunkRun, run_all
from labkit.compute.emulator.geometry import Chunk, Launch, chunks
from labkit.compute.emulator.host.clock import CLOCK, KERNELS
from labkit.compute.emulator.host.inspection import Inspection
from labkit.compute.emulator.limits import all_resident, check_local, check_shared, launch_shape
from labkit.compute.emulator.lower import lower, parameter
from labkit.compute.emulator.memory import Array, Memory
from labkit.compute.emulator.program import Builder, Program
from labkit.compute.emulator.source import Source, capture
from labkit.errors import KernelError, LaunchInterrupted

DEFAULT_STEP_BUDGET = 8_000_000
_step_budget = DEFAULT_STEP_BUDGET


def set_step_budget(steps: int | None) -> None:
    """How many turns loops may make in one launch before it is stopped as endless; None restores the default.

    The budget is in turns of a ``while`` loop that moves a variable towards a bound; other ``while`` loops cost 20.
    ``for ... in range(...)`` costs nothing: it always ends.
    """
    global _step_budget
    _step_budget = DEFAULT_STEP_BUDGET if steps is None else int(steps)


class EmulatedKernel(Inspection):
    """A kernel, launched by ``kernel[grid, block](*arguments)``, or a device function, which kernels call."""

    def __init__(
        self, source: Source, py_func: Callable | None = None, device: bool = False, signature: Any = None
    ):
        self.source = source
        self.py_func = py_func
        self.device = device
        self.signatures = signatures.read_all(signature)
        self._programs: dict[tuple, Program] = {}
        if py_func is not None:
            functools.update_wrapper(self, py_func)
        else:
            self.__name__ = source.name
        subset.check(source)
        signatures.check_length(self.signatures, source.parameters, source.name)

    def __repr__(self) -> str:
        kind = "device function" if self.device else "kernel"
        return f"<emulated CUDA {kind} {self.source.name}({', '.join(self.source.parameters)})>"

    def __getitem__(self, configuration: Any) -> Configured:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise KernelError(
                f"Kernel '{self.source.name}' needs a launch shape of blocks and threads: "
                f"{self.source.name}[blocks, threads_per_block](...).",
                kind="launch-limit",
            )
        return Configured(self, *configuration)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.source.name
        if self.device:
            raise KernelError(
                f"'{name}' is a device function: call it inside a kernel, not from the host.", kind="host-use"
            )
        raise KernelError(
            f"Kernel '{name}' was called without a launch shape: write {name}[blocks, threads_per_block](...).",
            kind="launch-limit",
        )

    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> Configured:
        return Configured(self, griddim, blockdim, stream, sharedmem)

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Configured:
        """A launch of at least ``ntasks`` threads in one dimension."""
        threads = tpb or 128
        return Configured(self, max(1, -(-ntasks // threads)), threads, stream, sharedmem)

    def program(self, arguments: list[Argument]) -> Program:
        """The program for these argument types, lowered on first use."""
        key = tuple(a.kind for a in arguments)
        if key not in self._programs:
            self._programs[key] = self._lower(key)
        return self._programs[key]

    def _lower(self, kinds: tuple) -> Program:
        builder = Builder(self.source.name)
        names = self.source.parameters
        pairs = enumerate(zip(names, kinds, strict=True))
        values = {name: parameter(builder, name, kind, (k,)) for k, (name, kind) in pairs}
        try:
            return lower(self.source, values, builder)
        except RecursionError:
            raise subset.unsupported(
                self.source,
                self.source.tree,
                "an expression with so many parts; give its parts names on lines of their own",
            ) from None

    def classify(self, arguments: tuple) -> list[Argument]:
        names = self.source.parameters
        if len(arguments) != len(names):
            raise KernelError(
                f"Kernel '{self.source.name}' takes {len(names)} argument(s) ({', '.join(names)}), but got "
                f"{len(arguments)}.",
                kind="arguments",
            )
        given = [
            classify(value, name, self.source.name) for value, name in zip(arguments, names, strict=True)
        ]
        return signatures.apply(self.signatures, given, names, self.source.name) if self.signatures else given


class Configured:
    """A kernel with its launch shape, ready to be called with arguments."""

    def __init__(self, kernel: EmulatedKernel, grid: Any, block: Any, stream: Any = 0, sharedmem: int = 0):
        if kernel.device:
            raise KernelError(
                f"'{kernel.source.name}' is a device function and cannot be launched; call it inside a kernel.",
                kind="host-use",
            )
        self.kernel = kernel
        self.shape = launch_shape(grid, block, kernel.source.name)
        self.sharedmem = sharedmem
        self.stream = stream

    def __call__(self, *arguments: Any) -> None:
        run(self.kernel, self.shape, arguments, sharedmem=self.sharedmem)
        if CLOCK.running:
            CLOCK.submit(self.stream, KERNELS, sum(getattr(a, "nbytes", 0) for a in arguments))

    def __repr__(self) -> str:
        return f"{self.kernel!r}[{self.shape.grid}, {self.shape.block}]"


def run(
    kernel: EmulatedKernel,
    shape: Launch,
    arguments: tuple,
    *,
    sharedmem: int = 0,
    step_budget: int | None = None,
    pieces: Iterable[Chunk] | None = None,
    memory_class: Callable[[list], Memory] = Memory,
    run_class: type[ChunkRun] = ChunkRun,
) -> Memory:
    """Run one launch to its end, or only the given ``pieces`` of it.

    ``memory_class`` and ``run_class`` are where observers come in.
    """
    activity.begin()
    try:
        with np.errstate(all="ignore"):
            given = kernel.classify(arguments)
            program = kernel.program(given)
            memory = memory_class(program.sites)
            launch = Prepared(program, given, sharedmem)
            budget = _step_budget if step_budget is None else step_budget
            if program.whole_grid:
                pieces = chunks(shape, all_resident(shape, kernel.source.name))
            elif pieces is None:
                pieces = chunks(shape)
            run_all(run_class(program, c, memory, launch.arrays(c), launch.frame(), budget) for c in pieces)
            if memory_class is Memory:
                launch.nothing_is_unwritten()
            return memory
    except KeyboardInterrupt:
        raise LaunchInterrupted(kernel.source.name) from None
    finally:
        activity.end()


def in_device_memory(array: Array, data: np.ndarray) -> Array:
    """Tell an argument where in its allocation it lies, and which of its elements nobody has written."""
    allocation = allocation_of(data)
    if allocation is not None:
        array.allocation = allocation
        array.origin = address(data) - allocation.start
        if allocation.written is not None and data.itemsize == allocation.itemsize:
            first = array.origin // data.itemsize
            array.initialized = allocation.written[first : first + array.flat.size]
    return array


class Prepared:
    """A program with the arguments of one launch."""

    def __init__(self, program: Program, given: list[Argument], sharedmem: int):
        self.program = program
        values = dict(leaf for k, argument in enumerate(given) for leaf in leaves(argument.value, (k,)))
        self.sharedmem = sharedmem
        self.fixed = {n: self._fixed(origin, values) for n, origin in enumerate(program.arrays)}
        self.registers = {"p" + "_".join(map(str, number)): value for number, value in values.items()}
        self._check_shared()
        self._check_local()

    @staticmethod
    def _fixed(origin: tuple, values: dict) -> Array | None:
        kind, what = origin[:2]
        if kind == "argument":
            return in_device_memory(Array.of(values[what], "", "global"), values[what])
        return Array.of(what, "", "constant") if kind == "constant" else None

    def nothing_is_unwritten(self) -> None:
        """Nobody has watched what the launch wrote."""
        for array in self.fixed.values():
            if array is not None and array.allocation is not None:
                array.allocation.written = None

    def _check_shared(self) -> None:
        sizes = [(prod(o[1]) * o[2].itemsize, o[3]) for o in self.program.arrays if o[0] == "shared"]
        check_shared(sum(size for size, _ in sizes), self.program.name, sizes[-1][1] if sizes else None)

    def _check_local(self) -> None:
        sizes = [(prod(o[1]) * o[2].itemsize, o[3]) for o in self.program.arrays if o[0] == "local"]
        check_local(sum(size for size, _ in sizes), self.program.name, sizes[-1][1] if sizes else None)

    def arrays(self, chunk: Chunk) -> list[Any]:
        """The array operands for one chunk: shared arrays are per block, local ones per lane."""
        dynamic = None
        made: list[Any] = []
        for number, origin in enumerate(self.program.arrays):
            if origin[0] in ("shared", "local"):
                copies = chunk.blocks if origin[0] == "shared" else chunk.lanes
                made.append(Array.private(copies, origin[1], origin[2], "", origin[0]))
            elif origin[0] == "dynamic":
                if dynamic is None:
                    dynamic = np.full((chunk.blocks, self.sharedmem), 0xCD, np.uint8)
                made.append(self._dynamic(dynamic, origin[1]))
            else:
                made.append(self.fixed[number])
        return made

    def _dynamic(self, memory: np.ndarray, dtype: np.dtype) -> Array:
        """Every dynamic shared array of a block starts at the same place."""
        count = self.sharedmem // dtype.itemsize
        flat = memory[:, : count * dtype.itemsize].copy() if self.sharedmem % dtype.itemsize else memory
        array = Array(flat.reshape(-1).view(dtype), (count,), (1,), "", "shared")
        array.aliased = sum(origin[0] == "dynamic" for origin in self.program.arrays) > 1
        return array

    def frame(self) -> list[Any]:
        frame: list[Any] = [None] * len(self.program.slots)
        for register, value in self.registers.items():
            if register in self.program.slots:
                frame[self.program.slots[register]] = value
        return frame


def jit(py_func: Callable, device: bool = False, signature: Any = None) -> EmulatedKernel:
    """Make an emulated kernel (or device function) of a Python function, whatever hardware is there."""
    return EmulatedKernel(capture(py_func), py_func, device, signature)
