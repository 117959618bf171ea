"""Lesson 00: environment reports as people paste them, each with one fault, and the lines that show it."""

from __future__ import annotations

from dataclasses import dataclass

FAULTS = ("driver too old", "build without CUDA", "card too new", "card too old")

_TEXT = """Collecting environment information...
PyTorch version: {torch}
Is debug build: False
CUDA used to build PyTorch: {cuda}
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version: Could not collect
CMake version: version 3.22.1
Libc version: glibc-2.35

Python version: 3.11.9 (main, Apr  6 2024, 17:59:24) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.0-119-generic-x86_64-with-glibc2.35
Is CUDA available: False
CUDA runtime version: {runtime}
CUDA_MODULE_LOADING set to: N/A
GPU models and configuration: GPU 0: {card}
Nvidia driver version: {driver}
cuDNN version: Could not collect
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True

CPU:
Architecture:                       x86_64
CPU(s):                             64
Model name:                         Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] torch=={torch}
"""


@dataclass(frozen=True)
class Pasted:
    """One report: what is wrong with it, and its four facts."""

    fault: str
    torch: str
    cuda: str
    runtime: str
    card: str
    driver: str

    @property
    def text(self) -> str:
        facts = ("torch", "cuda", "runtime", "card", "driver")
        return _TEXT.format(**{name: getattr(self, name) for name in facts})

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that contradict each other: either of them shows the fault."""
        built, driver = f"CUDA used to build PyTorch: {self.cuda}", f"Nvidia driver version: {self.driver}"
        card = f"GPU models and configuration: GPU 0: {self.card}"
        version = f"PyTorch version: {self.torch}"
        return {
            "driver too old": (driver, built),
            "build without CUDA": (built, version, f"[pip3] torch=={self.torch}"),
            "card too new": (card, built),
            "card too old": (card, built),
        }[self.fault]


REPORTS = (
    Pasted("driver too old", "2.4.1+cu124", "12.4", "12.4.131", "NVIDIA A100-SXM4-40GB", "470.82.01"),
    Pasted("driver too old", "2.9.0+cu130", "13.0", "12.2.140", "NVIDIA H100 80GB HBM3", "535.183.01"),
    Pasted("build without CUDA", "2.6.0+cpu", "None", "12.2.140", "NVIDIA L4", "535.183.01"),
    Pasted("build without CUDA", "2.4.0+cpu", "None", "11.8.89", "Tesla T4", "550.54.15"),
    Pasted("card too new", "2.5.1+cu124", "12.4", "12.8.61", "NVIDIA GeForce RTX 5090", "570.86.15"),
    Pasted("card too new", "1.12.1+cu113", "11.3", "12.2.140", "NVIDIA H100 80GB HBM3", "535.183.01"),
    Pasted("card too old", "2.9.0+cu130", "13.0", "13.0.48", "Tesla V100-SXM2-32GB", "580.65.06"),
    Pasted("card too old", "2.3.0+cu121", "12.1", "12.1.105", "Tesla K80", "535.183.01"),
)
