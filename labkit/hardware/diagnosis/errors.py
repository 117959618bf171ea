"""What the errors of programs and of the driver mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

from labkit.errors import LabkitError
from labkit.hardware.diagnosis.case import Case
from labkit.hardware.diagnosis.finding import Finding
from labkit.hardware.diagnosis.health import LOST
from labkit.hardware.reports.python_error import ErrorSeen, PythonErrors
from labkit.hardware.units import parse

DUPLICATE = (
    "Two ranks use one GPU, which NCCL refuses. Give each process its own: "
    "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) "
    "before the process group is made, no more processes a node than GPUs, and no CUDA_VISIBLE_DEVICES=0 for "
    "all of them."
)
SHARED_MEMORY = (
    "Shared memory (/dev/shm) is too small or full: a container gets 64 MB by default. Start it with "
    "'--shm-size=16g' or "
    "'--ipc=host' (Kubernetes: an emptyDir with medium Memory at /dev/shm), and see what fills it with 'df "
    "-h /dev/shm'."
)
WIRE = (
    "Retries were exceeded on the wire: packets to a peer got no answer. Check cable and port ('ibstat', "
    "'mlxlink'), "
    "that both ends are up and on one fabric, and on RoCE the lossless setting (PFC, ECN) and NCCL_IB_GID_INDEX; "
    "'ib_write_bw' between the two nodes shows it without NCCL."
)

# what an error is -> severity, what it means and what to do
_MEANINGS = {
    "newer_ptx": (
        "error",
        "The program was compiled by a newer CUDA than the driver knows. Install a newer driver, or a build "
        "for an older CUDA.",
    ),
    "cpu_only_torch": (
        "error",
        "This PyTorch is built for the CPU only. Uninstall torch and install a build for CUDA: the selector "
        "on pytorch.org "
        "gives the command.",
    ),
    "no_driver": (
        "error",
        "No driver or no GPU is visible. On the host run 'nvidia-smi' and 'lsmod | grep nvidia' next (after "
        "a kernel update the "
        "module must be built anew); in a container start it with '--gpus all'; see that "
        "CUDA_VISIBLE_DEVICES is not empty.",
    ),
    "driver_mismatch": (
        "error",
        "The driver's libraries were updated while the old kernel module still runs. Restart the machine, or "
        "unload and load "
        "the nvidia modules.",
    ),
    "fabric": (
        "error",
        "The NVSwitch fabric is not up: CUDA cannot start (error 802). Run 'systemctl status "
        "nvidia-fabricmanager' next; its "
        "version must be the driver's.",
    ),
    "shared_memory": ("error", SHARED_MEMORY),
    "duplicate_gpu": ("error", DUPLICATE),
    "wire": ("error", WIRE),
    "nccl_error": (
        "error",
        "NCCL failed; this line alone does not say why. Run again with NCCL_DEBUG=INFO and read the first "
        "'NCCL WARN' of any rank.",
    ),
    "ecc": (
        "error",
        "The GPU met a memory error that it could not correct. Run 'nvidia-smi -q -d ECC,ROW_REMAPPER' next; "
        "drain and reset it.",
    ),
    "illegal_access": (
        "error",
        "A kernel touched memory that is not its own. Run again with CUDA_LAUNCH_BLOCKING=1, or under "
        "'compute-sanitizer', to "
        "see which: the line shown may be a later one.",
    ),
    "device_assert": (
        "error",
        "A kernel's assertion failed, most often an index out of range (a label or token beyond the table). "
        "Run again with "
        "CUDA_LAUNCH_BLOCKING=1, or on the CPU, for the line.",
    ),
    "launch_failure": (
        "error",
        "A kernel died on the device. Run under 'compute-sanitizer' next, and look for 'Xid' in dmesg.",
    ),
    "busy_device": (
        "error",
        "The GPU takes no further process: its compute mode is exclusive, or it is held by another. "
        "'nvidia-smi' shows both; "
        "'sudo nvidia-smi -c 0' allows sharing.",
    ),
    "bad_ordinal": (
        "error",
        "The program asks for a GPU number that it cannot see. Compare CUDA_VISIBLE_DEVICES and the number "
        "of processes a node "
        "with 'nvidia-smi -L'.",
    ),
    "peer_access": (
        "error",
        "These two GPUs cannot reach each other directly. 'nvidia-smi topo -p2p r' shows which can.",
    ),
    "nvml": ("error", "The driver's management library cannot start: run 'nvidia-smi' on the host next."),
    "unknown_error": (
        "error",
        "CUDA cannot start, for no stated reason: often after suspend or a driver update. Reload nvidia_uvm "
        "or restart, and look "
        "for 'Xid' in dmesg.",
    ),
    "other": ("note", "An error of a GPU program that says nothing further here; the lines around it may."),
}


def errors(case: Case) -> Iterator[Finding]:
    for report in case.all(PythonErrors):
        for error in report.errors:
            finding = _explain(error, report)
            if finding:
                yield finding
        yield from _timeouts(report)


def _explain(error: ErrorSeen, report: PythonErrors) -> Finding | None:
    special = _SPECIAL.get(error.what)
    if (
        error.what in ("unsupported_arch", "too_old_gpu")
        and "gpu" not in error.details
        and _named(report, error.what)
    ):
        return None  # another line says it with the card's name
    if special:
        severity, text = special(error, report)
    elif error.what in _MEANINGS:
        severity, text = _MEANINGS[error.what]
    else:
        return None
    return Finding(severity, text, error.message)


def _named(report: PythonErrors, what: str) -> bool:
    return any(error.what == what and "gpu" in error.details for error in report.errors)


def _arch(error: ErrorSeen, report: PythonErrors) -> tuple[str, str]:
    listed = next(
        (seen.details["arch_list"] for seen in report.errors if "arch_list" in seen.details), ""
    ).strip()
    gpu, arch = error.details.get("gpu"), error.details.get("arch")
    who = f"{gpu.strip()} ({arch})" if gpu and arch else arch or "This GPU"
    has = f" (it has {listed})" if listed else ""
    age = _age(arch, listed)
    nxt = (
        ""
        if listed
        else " 'python -c \"import torch; print(torch.cuda.get_arch_list())\"' lists what the build has; "
        "'nvidia-smi --query-gpu=name,compute_cap --format=csv' what the card needs."
    )
    return "error", f"The build holds no code for this card: {who} is {age}{has}. {_remedy(age)}{nxt}"


def _age(arch: str | None, listed: str) -> str:
    known = [int(number) for number in re.findall(r"sm_(\d{1,4})", listed)]
    own = re.search(r"\d+", arch or "")
    if not known or own is None:
        return "too old or too new for it"
    return (
        "too new for it"
        if int(own[0]) > max(known)
        else "too old for it"
        if int(own[0]) < min(known)
        else "not among its architectures"
    )


def _remedy(age: str) -> str:
    if age.startswith("too new"):
        return "Install a build for a newer CUDA (12.8 or newer for Blackwell)."
    if age.startswith("too old for it"):
        return "Install an older build that still has it, or build from source with TORCH_CUDA_ARCH_LIST set."
    return "Install a build that has it."


def _capability(error: ErrorSeen, report: PythonErrors) -> tuple[str, str]:
    gpu, capability = error.details.get("gpu"), error.details.get("capability")
    who = f"{gpu} (compute capability {capability})" if gpu else "This GPU"
    if capability and int(capability.split(".")[0]) >= 10:
        return (
            "error",
            f"{who} is newer than this build of PyTorch knows: install one built for CUDA 12.8 or newer.",
        )
    if not gpu or any(seen.what == "too_old_gpu" and "gpu" not in seen.details for seen in report.errors):
        return (
            "error",
            f"{who} is too old for this build of PyTorch: install an older one, built for an older CUDA.",
        )
    return "error", (
        f"{who} is not among the cards this build of PyTorch has code for. 'python -c \"import torch; "
        "print(torch.cuda.get_arch_list())\"' lists what it has; install a build that fits."
    )


def _old_driver(error: ErrorSeen, report: PythonErrors) -> tuple[str, str]:
    found = error.details.get("found")
    has = ""
    if found and len(found) < 7:
        has = f" It runs CUDA up to {int(found) // 1000}.{int(found) % 1000 // 10}."
    needs = f" CUDA {error.details['needs']} is asked for." if "needs" in error.details else ""
    return "error", (
        f"The driver is older than this build's CUDA runtime needs.{has}{needs} Install a newer driver, or a "
        "build for an older "
        "CUDA. 'nvidia-smi' shows the driver's version and the newest CUDA it runs."
    )


def _lost(error: ErrorSeen, report: PythonErrors) -> tuple[str, str]:
    which = error.details.get("gpu") or error.details.get("bus") or ""
    return "error", f"{f'The GPU at {which}'.rstrip(':.') if which else 'A GPU'} {LOST}"


def _xid(error: ErrorSeen, report: PythonErrors) -> tuple[str, str]:
    number = error.details["xid"]
    return "warning", (
        f"The driver logged Xid {number} for the GPU at {error.details['bus']}: NVIDIA's list of Xid errors "
        "tells what it means. "
        "Run 'nvidia-smi -q' next."
    )


def _memory(error: ErrorSeen, report: PythonErrors) -> tuple[str, str]:
    others = _others(error)
    if others:
        who = " and ".join(f"process {pid} has {amount}" for pid, amount in others.items())
        return "error", (
            f"Out of memory, and another process holds part of it: {who}. End it, or choose another GPU with "
            "CUDA_VISIBLE_DEVICES; 'nvidia-smi' lists who holds what."
        )
    foreign = _foreign(error)
    if foreign:
        return "error", (
            f"Out of memory, and about {foreign:.3g} GiB of it are held by something other than this "
            "program's PyTorch. "
            "See who with 'nvidia-smi', and end it or choose another GPU."
        )
    return "error", (
        "Out of memory: the program asks for more than the GPU has left. Make the batch smaller, accumulate gradients, "
        "use mixed precision or activation checkpointing. To see whether another process holds memory, run "
        "'nvidia-smi' next."
    )


def _bytes(error: ErrorSeen, key: str) -> float | None:
    try:
        return parse(error.details[key].replace(" ", ""), "size")
    except (KeyError, LabkitError):
        return None


def _others(error: ErrorSeen) -> dict[str, str]:
    """Processes other than this one. PyTorch may list its own by number too: the one that fits its own figures."""
    holders: dict[str, str] = dict(error.details.get("processes", {}))
    allocated = _bytes(error, "allocated")
    if "this_process" in error.details or allocated is None or not holders:
        return holders
    own = allocated + (_bytes(error, "unallocated") or 0)
    distance = {pid: abs(parse(amount.replace(" ", ""), "size") - own) for pid, amount in holders.items()}
    nearest = min(distance, key=lambda pid: distance[pid])
    if distance[nearest] < 2 * 2**30:  # a context and its libraries take up to that
        del holders[nearest]
    return holders


def _foreign(error: ErrorSeen) -> float | None:
    """GiB that neither this program nor nobody holds, when the message tells enough and it is much."""
    total, free = _bytes(error, "total"), _bytes(error, "free")
    mine = _bytes(error, "this_process") or _bytes(error, "reserved")
    if total is None or free is None or mine is None:
        return None
    rest = total - free - mine
    return rest / 2**30 if rest > 0.2 * total else None


def _timeouts(report: PythonErrors) -> Iterator[Finding]:
    late = [error for error in report.errors if error.what == "timeout"]
    if not late:
        return
    ranks = sorted({int(error.details["rank"]) for error in late if "rank" in error.details})
    missing = sorted(set(range(ranks[-1] + 1)) - set(ranks)) if ranks and ranks[-1] < 100_000 else []
    if 0 < len(missing) <= max(1, len(ranks) // 2):
        who = (
            f"Rank {', '.join(map(str, missing))} did not time out: it is the slow one, and the others waited "
            "for it. See what it does"
        )
    else:
        who = (
            "One rank did not come, or called another collective: find the one that reports no timeout, and see "
            "what it does"
        )
    text = (
        f"A collective timed out. {who} (py-spy dump --pid), and set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 for a "
        "record of the calls."
    )
    yield Finding("error", text, late[0].message)


_SPECIAL = {
    "unsupported_arch": _arch,
    "too_old_gpu": _capability,
    "old_driver": _old_driver,
    "lost_gpu": _lost,
    "xid": _xid,
    "out_of_memory": _memory,
}
