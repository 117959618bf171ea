"""``python -m torch.utils.collect_env``, of every version, and vLLM's copy of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labkit.hardware.reports.base import Reader, Report, Table, show, word

# label in the report -> fact
LABELS = {
    "pytorch version": "pytorch_version",
    "is debug build": "debug_build",
    "cuda used to build pytorch": "cuda_built",
    "rocm used to build pytorch": "rocm_built",
    "os": "os",
    "gcc version": "gcc_version",
    "clang version": "clang_version",
    "cmake version": "cmake_version",
    "libc version": "libc_version",
    "python version": "python_version",
    "python platform": "python_platform",
    "is cuda available": "cuda_available",
    "cuda runtime version": "cuda_runtime_version",
    "cuda_module_loading set to": "cuda_module_loading",
    "gpu models and configuration": "gpus",
    "nvidia driver version": "driver_version",
    "cudnn version": "cudnn_version",
    "is xpu available": "xpu_available",
    "hip runtime version": "hip_runtime_version",
    "miopen runtime version": "miopen_runtime_version",
    "is xnnpack available": "xnnpack_available",
    "caching allocator config": "caching_allocator_config",
}
_CPU = {
    "architecture": "architecture",
    "cpu(s)": "cpus",
    "model name": "model",
    "socket(s)": "sockets",
    "numa node(s)": "numa_nodes",
}
_PAIR = re.compile(r"\s*([A-Za-z][\w ()/.-]{0,50}?)\s*:(?:\s+(.*))?")
_GPU = re.compile(r"\s*GPU (\d{1,3}(?:,\d{1,3})*): (.*?)\s*(?:\(UUID:[^)]*\)?)?")
_PACKAGE = re.compile(r"\s*\[(pip\d?|conda)\]\s+([\w.-]+)(?:==|\s+\(?)([\w.+!-]+)\)?.*")
_HEADINGS = re.compile(
    r"\s*(?:Collecting environment information.*|Versions of relevant libraries:?|CPU:|=+|-+"
    r"|(?:System|PyTorch|Python|CUDA|GPU)[\w /]*(?:Info|Environment|libraries)|\[(?:pip\d?|conda)\].*|/\S+|MIG .*)\s*"
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Environment(Report):
    """Versions as printed; None for "Could not collect", "N/A", "No CUDA" and for what is not there.

    `cuda_built` is None for a CPU build too: `cuda_built_printed` keeps what was printed. `gpus` are names in
    order; `cpu` and `packages` are as found.
    """

    kind = "collect_env"
    title = "torch.utils.collect_env"
    pytorch_version: str | None = None
    debug_build: bool | None = None
    cuda_built: str | None = None
    cuda_built_printed: str | None = None
    rocm_built: str | None = None
    os: str | None = None
    gcc_version: str | None = None
    clang_version: str | None = None
    cmake_version: str | None = None
    libc_version: str | None = None
    python_version: str | None = None
    python_platform: str | None = None
    cuda_available: bool | None = None
    cuda_runtime_version: str | None = None
    cuda_module_loading: str | None = None
    gpus: tuple[str, ...] = ()
    driver_version: str | None = None
    cudnn_version: str | None = None
    xpu_available: bool | None = None
    hip_runtime_version: str | None = None
    miopen_runtime_version: str | None = None
    xnnpack_available: bool | None = None
    caching_allocator_config: str | None = None
    cpu: dict[str, str]
    packages: dict[str, str]

    def headline(self) -> str:
        return (
            f"{self.title}: torch {show(self.pytorch_version)}, built for CUDA {show(self.cuda_built)}, "
            f"driver {show(self.driver_version)}, {len(self.gpus)} GPUs"
        )

    def table(self) -> Table:
        shown = {name: value for name, value in self.facts().items() if value not in (None, (), {}, [])}
        return ("what", "found"), tuple(
            (name.replace("_", " "), _cell(value)) for name, value in shown.items()
        )


class CollectEnvReader(Reader):
    kind = "collect_env"

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.gpus: dict[int, str] = {}
        self.cpu: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.libraries = self.cpu_section = False

    @classmethod
    def starts(cls, line: str) -> bool:
        return bool(
            re.match(
                r"\s*(?:PyTorch version\s*:|CUDA used to build PyTorch\s*:|Collecting environment info)", line
            )
        )

    def take(self, line: str) -> bool:
        if not line.strip():
            return True
        package = _PACKAGE.fullmatch(line)
        if package and "Could not collect" not in line and "No relevant packages" not in line:
            self.packages.setdefault(package[2], package[3])
            if package[2] in ("torch", "pytorch"):
                self.keep("package torch", line)
            return True
        if gpu := _GPU.fullmatch(line):
            self._cards(gpu[1], gpu[2], line)
            return True
        if "relevant libraries" in line:
            self.libraries, self.cpu_section = True, False
        elif line.strip() in ("CPU:", "CPU Info"):
            self.cpu_section = True
        return self._pair(line) or bool(_HEADINGS.fullmatch(line)) or self._cpu_detail(line)

    def _pair(self, line: str) -> bool:
        pair = _PAIR.fullmatch(line)
        if pair is None:
            return False
        label, value = pair[1].strip().lower(), (pair[2] or "").strip()
        if name := LABELS.get(label):
            if name == "pytorch_version" and name in self.values:
                return False  # the next report
            self.values.setdefault(name, value)
            self.keep(name, line)
            if name == "gpus" and (first := _GPU.fullmatch(value)):
                self._cards(first[1], first[2], line)
            return True
        if short := _CPU.get(label):
            self.cpu.setdefault(short, value)
            return True
        return False

    def _cards(self, indices: str, name: str, line: str) -> None:
        for index in indices.split(","):
            self.gpus.setdefault(int(index), name)
        self.keep("gpu", line)

    def _cpu_detail(self, line: str) -> bool:
        """Other lines of the CPU section, which prints all of lscpu, or WMI's fields on Windows."""
        return self.cpu_section and bool(re.match(r"\s*[A-Z][\w() /-]{1,40}[:=]", line))

    def finish(self) -> Environment | None:
        if not self.values:
            return None
        facts: dict[str, object] = {}
        for name, value in self.values.items():
            if name.endswith("_available") or name == "debug_build":
                facts[name] = {"yes": True, "true": True, "no": False, "false": False}.get(value.lower())
            elif name != "gpus":
                facts[name] = word(value)
        facts["cuda_built_printed"] = self.values.get("cuda_built")
        facts["gpus"] = tuple(self.gpus[index] for index in sorted(self.gpus))
        ended = self.libraries or bool(self.packages)
        return Environment(**facts, cpu=self.cpu, packages=self.packages, cut=not ended, quotes=self.quotes)  # type: ignore[arg-type]


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {version}" for name, version in value.items())
    return show(value)
