"""What numba.cuda's kernels tell about their compiled code: on the emulator, there is none."""

from __future__ import annotations

from typing import Any

from labkit.compute.emulator.host.toolkit import NotEmulated


class Inspection:
    """The inspecting methods of a kernel, each of which says why it has nothing to show."""

    source: Any
    signatures: tuple

    def _no_code(self, name: str) -> NotEmulated:
        return NotEmulated(
            f"{self.source.name}.{name} shows compiled code, and the emulator compiles none: install "
            "numba-cuda[cu13], which compiles to PTX without a GPU too, to look at it."
        )

    @property
    def overloads(self) -> Any:
        raise self._no_code("overloads")

    @property
    def definitions(self) -> Any:
        raise self._no_code("definitions")

    @property
    def nopython_signatures(self) -> list:
        """The signatures given at decoration."""
        return list(self.signatures)

    @property
    def specialized(self) -> bool:
        return bool(self.signatures)

    def specialize(self, *args: Any) -> Any:
        """The kernel itself: it adapts to its arguments."""
        return self

    def inspect_asm(self, signature: Any = None) -> Any:
        raise self._no_code("inspect_asm")

    def inspect_llvm(self, signature: Any = None) -> Any:
        raise self._no_code("inspect_llvm")

    def inspect_sass(self, signature: Any = None) -> Any:
        raise self._no_code("inspect_sass")

    def inspect_types(self, file: Any = None) -> Any:
        raise self._no_code("inspect_types")

    def get_regs_per_thread(self, signature: Any = None) -> Any:
        raise self._no_code("get_regs_per_thread")

    def get_local_mem_per_thread(self, signature: Any = None) -> Any:
        raise self._no_code("get_local_mem_per_thread")

    def get_const_mem_size(self, signature: Any = None) -> Any:
        raise self._no_code("get_const_mem_size")

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        raise self._no_code("get_shared_mem_per_block")
