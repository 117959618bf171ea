"""Lesson 04: typical wrong estimates, claims and quantisers, with outcomes and words their feedback has to contain."""

from __future__ import annotations

from labkit.course.lessons.l04_cases import MEMORY as PARAMETERS
from labkit.course.wrong import Wrong, function, wrong

_MEMORY = f"training_bytes({', '.join(PARAMETERS)})"
_START = """
two = precision == "mixed"
each = 2 if two else 4
numbers = {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
"""
_DIVIDE = """
def share(stage):
    return ranks if zero_stage >= stage else 1

"""
_RETURN = """
return {
    "weights": each * parameters / share(3),
    "gradients": each * parameters / share(2),
    "optimizer": OPTIMIZER / share(1),
    "activations": each * activation_values,
}
"""
_OPTIMIZER = "(4 * numbers + (4 if two else 0)) * parameters"
_GOOD = _START + _DIVIDE + _RETURN.replace("OPTIMIZER", _OPTIMIZER)
MEMORY = (
    function(
        _MEMORY,
        "master copy forgotten",
        "failed",
        "the fp32 master copy is missing",
        _GOOD.replace(_OPTIMIZER, "4 * numbers * parameters"),
    ),
    function(
        _MEMORY,
        "optimizer in 16 bits",
        "failed",
        "keeps its numbers in fp32",
        _GOOD.replace(_OPTIMIZER, "each * numbers * parameters"),
    ),
    function(
        _MEMORY,
        "activations forgotten",
        "failed",
        "the activations are missing",
        _GOOD.replace("each * activation_values", "0"),
    ),
    function(
        _MEMORY,
        "activations in fp32",
        "failed",
        "activations are 16-bit numbers",
        _GOOD.replace("each * activation_values", "4 * activation_values"),
    ),
    function(
        _MEMORY,
        "activations divided by ZeRO",
        "failed",
        "ZeRO does not divide activations",
        _GOOD.replace("each * activation_values", "each * activation_values / share(1)"),
    ),
    function(
        _MEMORY,
        "no ZeRO",
        "failed",
        "stage 1 divides the optimizer's part",
        _GOOD.replace("ranks if zero_stage >= stage else 1", "1"),
    ),
    function(
        _MEMORY,
        "ZeRO divides everything",
        "failed",
        "stage 1 divides the optimizer's part",
        _GOOD.replace("ranks if zero_stage >= stage else 1", "ranks if zero_stage else 1"),
    ),
    function(
        _MEMORY,
        "weights in fp32",
        "failed",
        "in mixed precision these are 16-bit numbers",
        _GOOD.replace('"weights": each *', '"weights": 4 *'),
    ),
    function(
        _MEMORY,
        "gigabytes in all",
        "failed",
        "a dictionary is asked for",
        "return 16 * parameters / 1e9",
    ),
)


def _claim(label: str, says: str, verdict: str, number: str, unit: str, left_out: str) -> Wrong:
    source = (
        f'claim = {{"verdict": "{verdict}", "number": {number}, "unit": "{unit}", "left_out": "{left_out}"}}'
    )
    return wrong(label, "failed", says, source)


_LEFT = "only activations halve; weights, gradients, master copy and Adam take 16 bytes either way"
CLAIM = (
    _claim("believed", "mostly weights and optimizer", "true", "24.7", "GB", _LEFT),
    _claim("mostly true", "is not the best verdict", "mostly true", "24.7", "GB", _LEFT),
    _claim("false", "something does halve", "false", "24.7", "GB", _LEFT),
    _claim("half of everything", "that is half of everything", "misleading", "24", "GB", _LEFT),
    _claim("the state alone", "that is the state alone", "misleading", "1.376", "GB", _LEFT),
    _claim("state forgotten", "those are the activations alone", "misleading", "46.62 / 2", "GB", _LEFT),
    _claim(
        "master copy forgotten",
        "a master copy of 4 bytes",
        "misleading",
        "86e6 * 12 / 1e9 + 46.624 / 2",
        "GB",
        _LEFT,
    ),
    _claim("another unit", "memory is in 'GB' here", "misleading", "24.7", "times", _LEFT),
    _claim("nothing left out", "nothing under 'left_out'", "misleading", "24.7", "GB", ""),
    _claim(
        "something else left out", "what halves and what does not", "misleading", "24.7", "GB", "the price"
    ),
    _claim("no such verdict", "it should be 'true'", "perhaps", "24.7", "GB", _LEFT),
)

_INT8 = "int8_layer(weights, x)"
_SCALES = """
scales = (np.abs(weights).max(axis=1) / 127).astype(np.float32)
scales[scales == 0] = 1
"""
_Q = "q = np.rint(weights / scales[:, None]).clip(-127, 127).astype(np.int8)\n"
_END = "return q, scales, q.nbytes + scales.nbytes, scales / 2 * np.abs(x).sum()"
INT8 = (
    function(
        _INT8,
        "one scale for all",
        "failed",
        "one scale for all rows",
        _SCALES + "scales[:] = np.abs(weights).max() / 127\n" + _Q + _END,
    ),
    function(
        _INT8,
        "divided by 128",
        "failed",
        "divide by 127",
        _SCALES.replace("127", "128") + _Q + _END,
    ),
    function(
        _INT8,
        "largest value instead of magnitude",
        "failed",
        "negative weights would be clipped",
        _SCALES.replace("np.abs(weights).max(axis=1)", "weights.max(axis=1)") + _Q + _END,
    ),
    function(
        _INT8,
        "cut instead of rounded",
        "failed",
        "int8 cuts digits off",
        _SCALES + _Q.replace("np.rint(weights / scales[:, None])", "(weights / scales[:, None])") + _END,
    ),
    function(
        _INT8,
        "not divided",
        "failed",
        "divide by their row's scale first",
        _SCALES + "q = np.rint(weights).astype(np.int8)\n" + _END,
    ),
    function(
        _INT8,
        "a row of zeros divided by zero",
        "failed",
        "a row of zeros",
        _SCALES.replace("scales[scales == 0] = 1", "scales[scales == 0] = np.nan")
        + "q = np.nan_to_num(np.rint(weights / scales[:, None])).astype(np.int8)\n"
        + _END,
    ),
    function(
        _INT8,
        "q in fp32",
        "failed",
        "dtype int8, is asked for",
        _SCALES + "q = np.rint(weights / scales[:, None])\n" + _END,
    ),
    function(
        _INT8,
        "scales not counted",
        "failed",
        "the scales are missing",
        _SCALES + _Q + _END.replace("q.nbytes + scales.nbytes", "q.nbytes"),
    ),
    function(
        _INT8,
        "bound of one weight",
        "failed",
        "that bounds one weight",
        _SCALES + _Q + _END.replace(" * np.abs(x).sum()", ""),
    ),
    function(
        _INT8,
        "signs cancel",
        "failed",
        "errors can have either sign",
        _SCALES + _Q + _END.replace("scales / 2 * np.abs(x).sum()", "np.abs(scales / 2 * x.sum())"),
    ),
    function(
        _INT8,
        "a whole step",
        "failed",
        "off by half a scale at most",
        _SCALES + _Q + _END.replace("scales / 2", "scales"),
    ),
)

_FFT = "fft_crossover(n)"
_COUNT = """
import math

def by_fft(k):
    size = 1 << (n + k - 2).bit_length()
    return 3 * 5 * size * math.log2(size) + 6 * size

return next((k for k in range(1, n + 1) if by_fft(k) < 2 * n * k), None)
"""
FFT = (
    function(
        _FFT, "the way back forgotten", "failed", "three transforms are due", _COUNT.replace("3 * 5", "2 * 5")
    ),
    function(_FFT, "one transform", "failed", "one transform is not enough", _COUNT.replace("3 * 5", "5")),
    function(_FFT, "natural logarithm", "failed", "to base 2", _COUNT.replace("math.log2", "math.log")),
    function(
        _FFT,
        "no product",
        "failed",
        "the product of the transforms is missing",
        _COUNT.replace(" + 6 * size", ""),
    ),
    function(
        _FFT,
        "not padded",
        "failed",
        "so that the ends do not wrap around",
        _COUNT.replace("1 << (n + k - 2).bit_length()", "n"),
    ),
    function(_FFT, "n when there is none", "failed", "return None", _COUNT.replace(", None)", ", n)")),
    function(_FFT, "logarithm of n", "failed", "taps on", "import math\nreturn int(15 * math.log2(n))"),
)
