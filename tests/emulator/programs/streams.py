"""Copies and kernels on streams, pinned memory, events, and the device's limits."""

import numpy as np
from numba import cuda


@cuda.jit("void(float32[:], float32)")
def scale(values, factor):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        values[i] *= factor


device = cuda.get_current_device()
assert cuda.is_available()
assert len(cuda.gpus) >= 1
blocks = 2 * device.MULTIPROCESSOR_COUNT
whole = cuda.pinned_array(1 << 16, dtype=np.float32)
whole[:] = np.arange(whole.size)
expected = whole * 3

start, end = cuda.event(), cuda.event()
start.record()
pieces = []
for piece in np.split(whole, 4):
    stream = cuda.stream()
    on_device = cuda.to_device(piece, stream=stream)
    scale[blocks, device.WARP_SIZE * 4, stream](on_device, 3)
    on_device.copy_to_host(piece, stream=stream)
    pieces.append(stream)
for stream in pieces:
    stream.synchronize()
end.record()
end.synchronize()
np.testing.assert_array_equal(whole, expected)
assert start.elapsed_time(end) > 0

with cuda.gpus[0]:
    managed = cuda.managed_array(100, dtype=np.float32)
    managed[:] = 1
    scale[1, 64](managed, 5)
    cuda.synchronize()
    assert (managed == 5).all()
with cuda.defer_cleanup():
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total
print("streams", "agree")
