"""The counters of a launch: their names, here and in Nsight Compute, and a table that holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# key -> (Nsight Compute's metric where it has one, what is counted)
COUNTERS: dict[str, tuple[str | None, str]] = {
    "global_load_requests": (
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "warp instructions that read global memory",
    ),
    "global_load_sectors": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "32-byte sectors they touch",
    ),
    "global_store_requests": (
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "warp instructions that write global memory",
    ),
    "global_store_sectors": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "32-byte sectors they touch",
    ),
    "shared_load_requests": (
        "smsp__inst_executed_op_shared_ld.sum",
        "warp instructions that read shared memory",
    ),
    "shared_store_requests": (
        "smsp__inst_executed_op_shared_st.sum",
        "warp instructions that write shared memory",
    ),
    "shared_bank_conflicts": (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "passes beyond the first, summed over warp requests",
    ),
    "local_requests": (None, "warp instructions that touch local arrays"),
    "atomic_requests": (None, "warp instructions that update memory atomically, global or shared"),
    "atomic_conflicts": (
        None,
        "lanes of a warp that must wait for another lane's update of the same element",
    ),
    "branches": (None, "branch instructions of warps"),
    "divergent_branches": (None, "of these, the ones at which the warp's lanes part"),
    "warp_instructions": ("smsp__inst_executed.sum", "the source's operations, counted once a warp"),
    "thread_instructions": (
        "smsp__thread_inst_executed.sum",
        "the source's operations, counted once a thread",
    ),
    "barriers": (None, "barrier instructions of warps"),
    "flops_fp16": (None, "half-precision operations of threads; a fused multiply-add is two"),
    "flops_fp32": (None, "single-precision operations of threads"),
    "flops_fp64": (None, "double-precision operations of threads"),
    "int_ops": (None, "whole-number operations of threads that the source writes; addresses are not counted"),
    "dram_read_bytes": ("dram__bytes_read.sum", "bytes read from device memory, by the L2 model"),
    "dram_write_bytes": ("dram__bytes_write.sum", "bytes written to device memory, by the L2 model"),
}


class Counts(Mapping[str, int]):
    """Counters by name, as items or attributes: ``counts["branches"]``, ``counts.branches``."""

    def __init__(self, values: Mapping[str, int] | None = None):
        self._values = dict.fromkeys(COUNTERS, 0) | {k: int(v) for k, v in (values or {}).items()}

    def __getitem__(self, key: str) -> int:
        return self._values[key]

    def __getattr__(self, key: str) -> int:
        if key.startswith("_") or key not in COUNTERS:
            raise AttributeError(f"there is no counter '{key}'; they are {', '.join(COUNTERS)}")
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value}" for key, value in self._values.items() if value)
        return f"Counts({shown})"

    @property
    def flops(self) -> int:
        """Floating-point operations of all precisions."""
        return self.flops_fp16 + self.flops_fp32 + self.flops_fp64

    @property
    def dram_bytes(self) -> int:
        """Bytes moved between device memory and L2."""
        return self.dram_read_bytes + self.dram_write_bytes

    def scaled(self, factor: float) -> Counts:
        """The counts of ``factor`` times as many blocks."""
        return Counts({key: round(value * factor) for key, value in self._values.items()})
