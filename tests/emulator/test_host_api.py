"""The host's side of numba.cuda: streams, events, memory, devices, foreign arrays, signatures."""

from __future__ import annotations

import asyncio
import gc
import json
from types import SimpleNamespace

import numpy as np
import pytest

from labkit import KernelError, LabkitError, cuda, hardware
from labkit.compute.emulator import package
from labkit.compute.model import LAUNCH_S


@cuda.jit
def add_one(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


@cuda.jit
def fill(values, number):
    i = cuda.grid(1)
    if i < values.size:
        values[i] = number


# -- streams and events ----------------------------------------------------------------------------------------------


def test_the_time_between_events_is_the_models_and_says_so():
    values = np.zeros(1_000_000, np.float32)
    start, end = cuda.event(), cuda.event()
    start.record()
    add_one.forall(values.size)(cuda.to_device(values))
    end.record()
    card = hardware.gpu("A100")
    link = hardware.link(f"pcie{card.pcie.generation}")
    copied = LAUNCH_S + values.nbytes / (min(link.achieved_GBps) * 1e9)
    run = LAUNCH_S + values.nbytes / card.memory_bandwidth_bytes_per_s
    elapsed = start.elapsed_time(end)
    assert elapsed == pytest.approx((copied + run) * 1e3)
    assert repr(elapsed) == f"{elapsed}" == str(elapsed)
    assert "modelled on A100" in repr(elapsed)
    assert "modelled on A100" in repr(end)
    assert f"{elapsed:.1f}" == f"{float(elapsed):.1f}"
    assert type(elapsed / 1e3) is float


def test_copies_and_kernels_of_different_streams_overlap_and_the_default_stream_waits():
    values = np.zeros(1_000_000, np.float32)

    def elapsed(streams):
        start, end = cuda.event(), cuda.event()
        start.record()
        for stream in streams:
            device = cuda.to_device(values, stream=stream)
            for _ in range(50):
                add_one[4000, 256, stream](device)
        end.record()
        return start.elapsed_time(end)

    apart, together = elapsed([cuda.stream(), cuda.stream()]), elapsed([0, 0])
    copy = 1e3 * (LAUNCH_S + values.nbytes / 24e9)
    assert together - apart == pytest.approx(copy)


def test_events_order_streams():
    first, second = cuda.stream(), cuda.stream()
    mark, end, start = cuda.event(), cuda.event(), cuda.event()
    cuda.synchronize()
    start.record(second)
    cuda.to_device(np.zeros(10**6), stream=first)
    mark.record(first)
    mark.wait(second)
    end.record(second)
    assert start.elapsed_time(end) == pytest.approx(1e3 * (LAUNCH_S + 8e6 / 24e9))
    assert end.query()


def test_events_that_have_no_time_say_why():
    recorded = cuda.event()
    recorded.record()
    with pytest.raises(LabkitError, match="never recorded"):
        recorded.elapsed_time(cuda.event())
    untimed = cuda.event(timing=False)
    untimed.record()
    with pytest.raises(LabkitError, match="timing=False"):
        cuda.event_elapsed_time(recorded, untimed)


def test_streams_of_every_kind():
    called = []
    with cuda.stream().auto_synchronize() as stream:
        device = cuda.to_device(np.zeros(4), stream=stream)
        add_one[1, 4, stream](device)
        stream.add_callback(lambda s, status, arg: called.append((s, status, arg)), "done")
    assert called == [(stream, 0, "done")]
    assert asyncio.run(stream.async_done()) is stream
    for other in (cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()):
        add_one[1, 4, other](device.bind(other))
    np.testing.assert_array_equal(device.copy_to_host(), np.full(4, 4.0))
    with pytest.raises(LabkitError, match=r"cuda\.stream\(\)"):
        cuda.external_stream(0)


# -- memory ----------------------------------------------------------------------------------------------------------


def test_strided_slices_of_device_arrays_are_views_that_copy_both_ways():
    device = cuda.to_device(np.arange(12.0).reshape(3, 4))
    column = device[:, 1]
    assert cuda.to_device(column) is column
    add_one[1, 32](column)
    np.testing.assert_array_equal(column.copy_to_host(), [2.0, 6.0, 10.0])
    column.copy_to_device(np.zeros(3))
    np.testing.assert_array_equal(device.copy_to_host()[:, 1], np.zeros(3))
    host = np.empty(3)
    assert column.copy_to_host(host) is host
    assert np.asarray(device).sum() == device.copy_to_host().sum()


def test_device_arrays_change_shape_and_are_cut_up():
    device = cuda.to_device(np.arange(12, dtype=np.int32))
    assert device.reshape(3, 4).T.shape == (4, 3)
    assert device.reshape(1, 12).squeeze().shape == (12,)
    assert [len(piece) for piece in device.split(5)] == [5, 5, 2]
    assert device.view(np.uint8).size == 48
    assert device.reshape(3, 4).transpose().is_f_contiguous()
    with pytest.raises(LabkitError, match="one dimension"):
        device.reshape(3, 4).split(2)


def test_host_arrays_with_gaps_are_refused_and_backward_views_too():
    with pytest.raises(LabkitError, match="ascontiguousarray"):
        cuda.to_device(np.arange(10.0)[::2])
    with pytest.raises(KernelError, match="backwards"):
        add_one[1, 32](cuda.to_device(np.arange(10.0))[::-1])


@pytest.mark.parametrize("make", [cuda.mapped_array, cuda.managed_array])
def test_mapped_and_managed_memory_is_seen_by_both_sides(make):
    array = make((4, 6), dtype=np.float32, order="F")
    assert array.flags.f_contiguous
    array[...] = 1
    add_one[1, 32](array[1])  # a row of it has gaps, and needs no copy
    np.testing.assert_array_equal(array[1], np.full(6, 2))
    np.testing.assert_array_equal(array[2], np.ones(6))
    array.copy_to_device(np.zeros((4, 6), np.float32))
    assert array.copy_to_host().sum() == 0
    assert type(array.copy_to_host()) is np.ndarray


def test_pinned_and_mapped_blocks():
    values = np.zeros(8)
    with cuda.pinned(values):
        add_one[1, 8](values)
    with cuda.mapped(values) as view:
        add_one[1, 8](view)
    np.testing.assert_array_equal(values, np.full(8, 2.0))
    assert cuda.pinned_array_like(np.zeros((2, 3), order="F")).flags.f_contiguous
    assert cuda.mapped_array_like(values).shape == (8,)
    with pytest.raises(LabkitError, match="NumPy arrays"), cuda.pinned([1, 2]):
        pass


def test_memory_info_counts_what_is_alive():
    free, total = cuda.current_context().get_memory_info()
    assert total == 80e9
    array = cuda.device_array(10**6, np.float64)
    view = array[10:]
    del array
    gc.collect()
    assert free - cuda.current_context().get_memory_info().free == 8 * 10**6
    del view
    gc.collect()
    assert cuda.current_context().get_memory_info().free == free


# -- foreign arrays --------------------------------------------------------------------------------------------------


def test_writes_reach_tensors(require):
    require("torch")
    import torch

    tensor = torch.zeros(6)
    add_one[1, 32](tensor)
    add_one[1, 32](tensor[::2])
    assert tensor.tolist() == [2, 1, 2, 1, 2, 1]
    assert cuda.to_device(tensor).copy_to_host().tolist() == tensor.tolist()
    wanting = torch.zeros(6, requires_grad=True)
    with pytest.raises(KernelError, match="detach"):
        add_one[1, 32](wanting)
    add_one[1, 32](wanting.detach())
    assert wanting.tolist() == [1] * 6
    with pytest.raises(KernelError, match="NumPy cannot view"):
        add_one[1, 32](torch.zeros(3, dtype=torch.bfloat16))


class ByInterface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class ByDLPack:
    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


@pytest.mark.parametrize("wrap", [ByInterface, ByDLPack])
def test_writes_reach_arrays_behind_protocols(wrap):
    array = np.zeros(5)
    add_one[1, 32](wrap(array))
    add_one[1, 32](cuda.as_cuda_array(wrap(array)))
    np.testing.assert_array_equal(array, np.full(5, 2.0))


@pytest.mark.parametrize(
    "value",
    [
        SimpleNamespace(__cuda_array_interface__={}),
        SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (2, 0)),
    ],
)
def test_memory_of_a_real_gpu_is_told_apart(value):
    with pytest.raises(LabkitError, match="memory of a real GPU"):
        add_one[1, 32](value)
    with pytest.raises(LabkitError, match="memory of a real GPU"):
        cuda.to_device(value)


# -- devices ---------------------------------------------------------------------------------------------------------


def test_the_device_says_that_it_is_emulated_and_has_the_cards_figures(capsys):
    device = cuda.get_current_device()
    assert device.name == "labkit emulator" == device.name.decode()
    assert device.compute_capability == (8, 0)
    assert (device.MULTIPROCESSOR_COUNT, device.WARP_SIZE, device.MAX_THREADS_PER_BLOCK) == (108, 32, 1024)
    assert "emulated" in repr(device)
    with pytest.raises(AttributeError, match="no attribute 'SPEED'"):
        _ = device.SPEED
    assert cuda.detect()
    assert "emulated" in capsys.readouterr().out


def test_there_is_one_device():
    assert len(cuda.gpus) == len(list(cuda.gpus)) == len(cuda.list_devices()) == cuda.device_count() == 1
    with cuda.gpus[0] as device:
        assert device.id == 0
    assert cuda.gpus.current.id == cuda.current_context().device.id == 0
    cuda.select_device(0)
    with pytest.raises(LabkitError, match="no device 1"):
        cuda.select_device(1)


def test_the_rest_of_the_hosts_names():
    assert cuda.is_available()
    assert cuda.is_supported_version()
    assert cuda.cuda_error() is None
    cuda.profile_start()
    cuda.profile_stop()
    with cuda.profiling(), cuda.defer_cleanup():
        cuda.close()
    assert cuda.is_cuda_array(cuda.device_array(3))
    assert not cuda.is_cuda_array(np.zeros(3))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: cuda.compile_ptx(add_one.py_func, ()), "numba-cuda"),
        (lambda: cuda.compile(add_one.py_func, ()), "numba-cuda"),
        (lambda: cuda.declare_device("f", "int32(int32)"), "device=True"),
        (lambda: cuda.jit(link=["f.cu"])(add_one.py_func), "device=True"),
        (lambda: add_one.overloads, "numba-cuda"),
        (lambda: add_one.inspect_asm(), "numba-cuda"),
        (lambda: add_one.get_regs_per_thread(), "numba-cuda"),
        (lambda: cuda.from_cuda_array_interface({}), "cuda.to_device"),
        (lambda: cuda.as_cuda_array([1]), "cuda.to_device"),
        (lambda: cuda.jit(fastmaths=True), "Did you mean 'fastmath'"),
    ],
)
def test_what_needs_the_toolkit_ends_in_a_sentence(use, words):
    with pytest.raises(LabkitError, match=words):
        use()


def test_options_of_the_compiler_change_nothing():
    values = np.zeros(4)
    kernel = cuda.jit(fastmath=True, max_registers=32, lineinfo=True, cache=True)(add_one.py_func)
    kernel.specialize(values)[1, 4](values)
    np.testing.assert_array_equal(values, np.ones(4))


# -- explicit signatures ---------------------------------------------------------------------------------------------

SPELLINGS = [
    "void(float32[:], int32)",
    "(float32[:], int32)",
    "f4[::1], i4",
    ["void(float32[:], int32)"],
    (cuda.float32[:], cuda.int32),
    cuda.void(cuda.float32[:], cuda.int32),
    [cuda.void(cuda.float32[:], cuda.int32), "void(float64[:], float64)"],
]


@pytest.mark.parametrize("signature", SPELLINGS, ids=repr)
def test_signatures_convert_numbers_and_refuse_other_arrays(signature):
    kernel = cuda.jit(signature)(fill.py_func)
    values = np.zeros(4, np.float32)
    kernel[1, 4](values, 2.75)
    np.testing.assert_array_equal(values, np.full(4, 2))
    with pytest.raises(KernelError, match=r"Argument 'values'.*int16") as caught:
        kernel[1, 4](np.zeros(4, np.int16), 1)
    assert caught.value.kind == "arguments"


def test_signatures_of_numbas_types(require):
    require("numba")
    import numba

    for signature in (
        numba.void(numba.float32[:], numba.int32),
        (numba.float32[::1], numba.int32),
        [(numba.float32[:], numba.int32)],
    ):
        values = np.zeros(3, np.float32)
        cuda.jit(signature)(fill.py_func)[1, 4](values, 1.5)
        np.testing.assert_array_equal(values, np.ones(3))
    layout = cuda.jit(numba.void(numba.float32[::1, :], numba.int32))(fill.py_func).signatures[0].arguments[0]
    assert (layout.ndim, layout.layout) == (2, "F")


def test_several_signatures_choose_by_type():
    kernel = cuda.jit(["void(float64[:], int64)", "void(float64[:], float64)"])(fill.py_func)
    values = np.zeros(2)
    kernel[1, 2](values, 2.5)
    np.testing.assert_array_equal(values, [2.5, 2.5])


def test_contiguous_signatures_refuse_strided_arrays():
    kernel = cuda.jit("void(float64[::1], float64)")(fill.py_func)
    device = cuda.to_device(np.zeros(8))
    kernel[1, 8](device, 1.0)
    with pytest.raises(KernelError, match="float64\\[:\\]"):
        kernel[1, 8](device[::2], 1.0)


def test_the_signature_of_a_device_function_converts():
    add = cuda.jit("float32(float32, float32)", device=True)(_add)

    @cuda.jit
    def kernel(out):
        out[0] = add(2**24, 1)

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 2**24  # in float32 the 1 is lost


def _add(a, b):
    return a + b


def test_signatures_travel_with_packed_kernels():
    add = cuda.jit("float32(float32, float32)", device=True)(_add)

    @cuda.jit("void(float64[:], int32)")
    def kernel(out, number):
        out[0] = add(2**24, number)

    packed, arrays = package.pack(kernel)
    out = np.zeros(1)
    package.unpack(json.loads(json.dumps(packed)), arrays)[1, 1](out, 1.9)
    assert out[0] == 2**24
    assert package.unpack(packed, arrays).signatures == kernel.signatures


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("void(word[:], int32)", "'word' is not a type"),
        ("void(float32[:]", "not a valid expression"),
        ("void(float32[3], int32)", "written with colons"),
        ("void(float32[:])", "names 1 type"),
    ],
)
def test_signatures_that_cannot_be_read(signature, words):
    with pytest.raises(KernelError, match=words) as caught:
        cuda.jit(signature)(fill.py_func)
    assert caught.value.kind == "signature"
