"""The search for GPUs, against a real library of C calls: each test is a process with its own driver."""

from __future__ import annotations

import subprocess
import sys

import pytest

H100 = "NVIDIA H100 80GB HBM3"


def test_two_gpus_are_read_in_the_drivers_order(ask):
    cards = ask("[d.to_dict() for d in h.devices()]", STUB_CUDA_DEVICES=f"{H100};NVIDIA A100-SXM4-80GB")
    assert [card["kind"] for card in cards] == ["gpu", "gpu", "cpu"]
    assert [card["name"] for card in cards[:2]] == [H100, "NVIDIA A100-SXM4-80GB"]
    assert [card["index"] for card in cards[:2]] == [0, 1]
    assert cards[0]["compute_capability"] == "9.0"
    assert cards[0]["memory_bytes"] == 80 << 30
    assert cards[1]["uuid"] == "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1"


def test_a_gpu_is_used_and_found_in_the_catalogue(ask):
    expression = "[h.backend(), h.why_no_gpu(), h.usable_gpu().name, h.usable_gpu().catalogued().id]"
    assert ask(expression, STUB_CUDA_DEVICES=H100) == ["gpu", "", H100, "H100_SXM5"]


def test_a_card_of_the_same_name_with_other_memory_is_not_taken_for_the_catalogues(ask):
    variables = {"STUB_CUDA_DEVICES": "NVIDIA GeForce RTX 3080", "STUB_CUDA_MEMORY": str(12 << 30)}
    assert ask("h.usable_gpu().catalogued()", **variables) is None


@pytest.mark.parametrize(("visible", "names"), [("1", ["B"]), ("1,0", ["B", "A"]), ("0,7,1", ["A"])])
def test_visible_devices_are_the_drivers_business(ask, visible, names):
    variables = {"STUB_CUDA_DEVICES": "A;B", "CUDA_VISIBLE_DEVICES": visible}
    assert ask("[d.name for d in h.devices() if d.kind == 'gpu']", **variables) == names


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_gpus_name_the_variable(ask, hidden):
    backend, why = ask("[h.backend(), h.why_no_gpu()]", STUB_CUDA_DEVICES=H100, CUDA_VISIBLE_DEVICES=hidden)
    assert backend == "emulator"
    assert why == f"CUDA_VISIBLE_DEVICES={hidden!r} leaves no GPU visible: unset it."


@pytest.mark.parametrize(
    ("status", "words"),
    [("803", "differ in version"), ("802", "fabric manager"), ("34", "LD_LIBRARY_PATH"), ("7", "nvidia-smi")],
)
def test_a_driver_that_does_not_start_says_what_to_do(ask, status, words):
    backend, why = ask("[h.backend(), h.why_no_gpu()]", STUB_CUDA_DEVICES=H100, STUB_CUDA_INIT=status)
    assert backend == "emulator"
    assert words in why
    assert f"cuInit returned {status}" in why


def test_a_driver_without_gpus(ask):
    backend, why, count = ask("[h.backend(), h.why_no_gpu(), len(h.devices())]")
    assert (backend, count) == ("emulator", 1)
    assert why.startswith("The driver sees no GPU (cuInit returned 100): ")


def test_a_lost_gpu_hides_only_itself(ask):
    cards = ask("[d.to_dict() for d in h.devices()]", STUB_CUDA_DEVICES=f"{H100};{H100}", STUB_CUDA_LOST="0")
    assert cards[0]["memory_bytes"] is None
    assert cards[0]["uuid"] is None
    assert cards[0]["compute_capability"] is None
    assert cards[1]["memory_bytes"] == 80 << 30


@pytest.mark.parametrize(("version", "extra"), [("12040", "gpu12"), ("13000", "gpu13")])
def test_a_gpu_without_its_compiler_names_the_command(ask, version, extra):
    # Only what labkit asks for is hidden: the machine that runs this test may have numba-cuda.
    expression = (
        "(__import__('sys').modules.__setitem__('numba_cuda', None), h.backend(), h.why_no_gpu(), "
        "h.usable_gpu() is None, [d.kind for d in h.devices()])"
    )
    variables = {"STUB_CUDA_DEVICES": H100, "STUB_CUDA_VERSION": version}
    _, backend, why, unusable, kinds = ask(expression, **variables)
    assert (backend, unusable, kinds) == ("emulator", True, ["gpu", "cpu"])
    assert why.endswith(f"pip install 'gpu-labkit[{extra}]'.")


@pytest.mark.parametrize(
    ("wish", "backend"), [("auto", "gpu"), ("", "gpu"), ("GPU", "gpu"), ("emulator", "emulator")]
)
def test_the_variable_chooses(ask, wish, backend):
    assert ask("h.backend()", STUB_CUDA_DEVICES=H100, LABKIT_BACKEND=wish) == backend


@pytest.mark.parametrize(
    ("wish", "words"), [("gpu", "the driver sees no GPU"), ("cuda", "auto, gpu or emulator")]
)
def test_a_wish_that_cannot_be_met_is_one_clear_error(with_driver, wish, words):
    done = with_driver("-c", "import labkit.hardware as h; h.backend()", LABKIT_BACKEND=wish)
    assert done.returncode == 1
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("labkit.errors.LabkitError: LABKIT_BACKEND=")
    assert words in message


def test_here_names_the_variable_that_refuses_a_gpu(ask):
    machine = ask("h.here().to_dict()", STUB_CUDA_DEVICES=H100, LABKIT_BACKEND="emulator")
    assert machine["backend"] == "emulator"
    assert machine["reason"] == "LABKIT_BACKEND=emulator asks for it."


def test_here_on_a_gpu(ask):
    text, html = ask("[repr(h.here()), h.here()._repr_html_()]", STUB_CUDA_DEVICES=H100)
    assert text.startswith(f"Kernels run on {H100}: times are measured there.")
    assert "80 GiB" in html


FORK = """
import os
import labkit.hardware as h
assert h.backend() == "emulator"
child = os.fork()
if child == 0:
    h.devices.__globals__["answer"].cache_clear()
    h.devices.__globals__["obstacle"].cache_clear()
    os._exit(0 if h.backend() == "emulator" else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_asking_without_a_gpu_leaves_later_forks_alone(with_driver):
    assert with_driver("-c", FORK).returncode == 0


def test_no_driver_at_all():
    program = (
        "from labkit.hardware import driver; driver._LIBRARIES['linux'] = ('libnothing.so.1',); "
        "print(driver.probe().reason)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "driver" in done.stdout
    assert ": " in done.stdout
