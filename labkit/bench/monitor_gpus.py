"""What watching eight GPUs costs: against a stub of NVML, and beside nvitop in the same process.

The stub answers at once, so that the times are those of the programs and not of a driver. Ten metrics are
asked for: utilisation, memory, power, temperature, SM and memory clock, encoder, decoder, and NVLink both ways
(18 links, as an H100 has). labkit's own sample holds more than these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labkit.bench import Figure
from labkit.errors import LabkitError

GPUS, METRICS = 8, 10
STUB = Path("tests", "telemetry", "nvml_stub.c")
SCRIPT = f"""devices {GPUS}
* utilization 57 31
* memory_v2 8589934592 85899345920
* power 250500
* limit 700000
* temperature 61
* slowdown 87
* mig 0
* sm_clock 1980
* memory_clock 2619
* reasons 0
* encoder 12
* decoder 34
* pcie_tx 1500000
* pcie_rx 250000
* field138 1000
* field139 2000
* field3 0
* field4 0
* field91 18
"""

_SHARE = """
import json, sys, time
from labkit.telemetry.sampler import Sampler
from labkit.telemetry.sources.nvml import NvmlSource
class Consumer:
    samples = 0
    def take(self, now, readings):
        self.samples += 1
        self.known = sum(one.value is not None for one in readings)
consumer, sampler = Consumer(), Sampler(lambda: [NvmlSource()])
sampler.subscribe(consumer, 0.5)
time.sleep(1.5)
cpu, wall, before = time.process_time(), time.perf_counter(), consumer.samples
time.sleep(float(sys.argv[1]))
share = (time.process_time() - cpu) / (time.perf_counter() - wall)
print(json.dumps([share, consumer.samples - before, consumer.known]))
"""

_BESIDE = """
import json, statistics, sys, time
from nvitop import Device
from labkit.telemetry.sources.nvml import NvmlSource
NAMES = ("gpu_utilization", "memory_percent", "power_draw", "temperature", "sm_clock", "memory_clock",
         "encoder_utilization", "decoder_utilization", "nvlink_total_tx_throughput", "nvlink_total_rx_throughput")
devices, source = Device.all(), NvmlSource()
def theirs():
    for device in devices:
        with device.oneshot():
            for name in NAMES:
                getattr(device, name)()
def seconds(sample):
    began = time.process_time()
    for _ in range(20):
        sample()
    return (time.process_time() - began) / 20
theirs(), source.read(), time.sleep(0.2)
rounds = [(seconds(source.read), seconds(theirs)) for _ in range(int(sys.argv[1]))]
print(json.dumps([statistics.median(times) for times in zip(*rounds)]))
"""


def figures(quick: bool) -> Iterable[Figure]:
    """The share of a core that sampling takes, and one sample's time beside nvitop's."""
    with tempfile.TemporaryDirectory(prefix="labkit-nvml-") as folder:
        environment = _stub(Path(folder))
        share, samples, known = _run(_SHARE, environment, 5 if quick else 20)
        detail = f"of one core at 2 Hz: {known} values of {GPUS} stub GPUs a sample, {samples} samples"
        yield Figure("watching eight GPUs", 100 * share, "%", "at most", 1, detail)
        if find_spec("nvitop") is None:
            raise LabkitError("The comparison needs nvitop: pip install 'gpu-labkit[test]'.")
        own, theirs = _run(_BESIDE, environment, 5 if quick else 15)
        detail = f"{1e3 * own:.2f} ms and {1e3 * theirs:.2f} ms, {METRICS} metrics of {GPUS} stub GPUs"
        yield Figure("one sample over nvitop's", own / theirs, "", "at most", 0.333, detail)


def _stub(folder: Path) -> dict[str, str]:
    """Compile the stub and write its script; the environment in which a process meets it."""
    import labkit

    source = Path(labkit.__file__).resolve().parents[1] / STUB
    if not source.is_file():
        raise LabkitError(f"This benchmark needs {STUB.as_posix()}: run it in a clone of the repository.")
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(folder / "libnvidia-ml.so.1"), str(source)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LabkitError(f"The stub of NVML cannot be compiled ({error}): install a C compiler.") from error
    script = folder / "script"
    script.write_text(SCRIPT)
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {
        **kept,
        "LD_LIBRARY_PATH": str(folder),
        "NVML_STUB_SCRIPT": str(script),
        "NVML_STUB_FROZEN": "1",
    }


def _run(program: str, environment: dict[str, str], argument: int) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program, str(argument)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise LabkitError(f"A process of the benchmark failed: {lines[-1]}.")
    return json.loads(done.stdout.splitlines()[-1])
