"""Fabrics of GPUs, simulated: which links there are, who sends what over them, and when everything has arrived.

Everything here is modelled: flows share links max-min fairly, and rates and latencies come from the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.lazy import exports

if TYPE_CHECKING:
    from labkit.network.fabric.calibration import Calibration, calibrate
    from labkit.network.fabric.custom import from_yaml
    from labkit.network.fabric.flows import simulate_flows
    from labkit.network.fabric.machine import Fabric, fabric
    from labkit.network.fabric.result import CollectiveResult, LinkLoad
    from labkit.network.fabric.topology import Topology

_MODULES = {
    "labkit.network.fabric.calibration": "Calibration calibrate",
    "labkit.network.fabric.custom": "from_yaml",
    "labkit.network.fabric.flows": "simulate_flows",
    "labkit.network.fabric.machine": "Fabric fabric",
    "labkit.network.fabric.result": "CollectiveResult LinkLoad",
    "labkit.network.fabric.topology": "Topology",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Calibration",
    "CollectiveResult",
    "Fabric",
    "LinkLoad",
    "Topology",
    "calibrate",
    "fabric",
    "from_yaml",
    "simulate_flows",
]

__getattr__, __dir__ = exports(__name__, _LAZY)
