"""Which GPUs a process may use, and in which order: the rules of ``CUDA_VISIBLE_DEVICES``.

Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
"""

from __future__ import annotations

from collections.abc import Sequence


def visible_uuids(variable: str | None, uuids: Sequence[str]) -> list[str]:
    """UUIDs of the visible devices, in the order in which CUDA numbers them.

    Parameters
    ----------
    variable : str or None
        Value of ``CUDA_VISIBLE_DEVICES``; None when it is not set, which makes every GPU visible. Entries are
        numbers, ``GPU-`` UUIDs or unique beginnings of them, or ``MIG-`` UUIDs; the first entry that names
        no device ends the list.
    uuids : sequence of str
        UUIDs of all GPUs, in PCI bus order (the order that ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` gives, and
        that CUDA uses anyway when all GPUs are alike).
    """
    if variable is None:
        return list(uuids)
    chosen: list[str] = []
    for entry in variable.split(","):
        uuid = _resolve(entry.strip(), uuids)
        if uuid is None:
            break
        if uuid not in chosen:
            chosen.append(uuid)
    return chosen


def _resolve(entry: str, uuids: Sequence[str]) -> str | None:
    if entry.startswith("MIG-"):
        return entry
    if entry.isdecimal():
        return uuids[int(entry)] if int(entry) < len(uuids) else None
    matches = [uuid for uuid in uuids if entry.startswith("GPU-") and uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None
