"""Lesson 04: typical wrong steps in 16 bits, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import function

_MIXED = "mixed_step(master, forward, lr, scale)"
_COPIES = "copies = [w.half().requires_grad_() for w in master]\n"
_BACK = _COPIES + "(forward(copies) * scale).backward()\nfor w, c in zip(master, copies):\n"
MIXED = (
    function(
        _MIXED,
        "unscale forgotten",
        "failed",
        "still multiplied by the scale",
        _BACK + "    w -= lr * c.grad.float()",
    ),
    function(
        _MIXED,
        "unscaled in fp16",
        "failed",
        "where it underflows again",
        _BACK + "    w -= lr * (c.grad / scale).float()",
    ),
    function(
        _MIXED,
        "loss not scaled",
        "failed",
        "The loss went backward multiplied by 1",
        _COPIES
        + "forward(copies).backward()\nfor w, c in zip(master, copies):\n    w -= lr * c.grad.float()",
    ),
    function(
        _MIXED,
        "update in fp16",
        "failed",
        "less than half a step",
        _BACK + "    w.copy_((w.half() - (lr * c.grad.float() / scale).half()).float())",
    ),
    function(
        _MIXED,
        "master weights in fp16",
        "failed",
        "The master weights are float16",
        """
        for n, w in enumerate(master):
            master[n] = w.half()
        copies = [w.clone().requires_grad_() for w in master]
        (forward(copies) * scale).backward()
        for w, c in zip(master, copies):
            w -= lr * c.grad / scale
        """,
    ),
    function(
        _MIXED,
        "forward in fp32",
        "failed",
        "forward was given float32 weights",
        """
        copies = [w.clone().requires_grad_() for w in master]
        (forward(copies) * scale).backward()
        for w, c in zip(master, copies):
            w -= lr * c.grad / scale
        """,
    ),
    function(
        _MIXED,
        "bfloat16 copies",
        "failed",
        "forward was given bfloat16 weights",
        """
        copies = [w.bfloat16().requires_grad_() for w in master]
        (forward(copies) * scale).backward()
        for w, c in zip(master, copies):
            w -= lr * c.grad.float() / scale
        """,
    ),
    function(
        _MIXED,
        "uphill",
        "failed",
        "the weights went uphill",
        _BACK + "    w += lr * c.grad.float() / scale",
    ),
    function(
        _MIXED,
        "not in place",
        "failed",
        "did not move",
        _BACK + "    w = w - lr * c.grad.float() / scale",
    ),
    function(
        _MIXED,
        "copies without gradients",
        "error",
        "does not require grad",
        """
        copies = [w.half() for w in master]
        (forward(copies) * scale).backward()
        """,
    ),
)

_SCALING = "scaled_step(weights, backward, scaler, lr, max_norm)"
_SKIP = """
g = backward(scaler["scale"])
if not torch.isfinite(g).all():
    scaler["scale"] /= 2
    scaler["good"] = 0
    return
"""
_CLIP = """
if g.norm() > max_norm:
    g = g * (max_norm / g.norm())
"""
_UNSCALE = 'g = g.float() / scaler["scale"]\n'
_GROW = """
weights -= lr * g
scaler["good"] += 1
if scaler["good"] == scaler["patience"]:
    scaler["scale"] *= 2
    scaler["good"] = 0
"""
_IMPORT = "import torch\n"
SCALING = (
    function(
        _SCALING,
        "unscale forgotten",
        "failed",
        "still multiplied by the scale",
        _IMPORT + _SKIP + "g = g.float()" + _CLIP + _GROW,
    ),
    function(
        _SCALING,
        "clipped before unscaling",
        "failed",
        "clipped before it was unscaled",
        _IMPORT + _SKIP + "g = g.float()" + _CLIP + _UNSCALE + _GROW,
    ),
    function(
        _SCALING,
        "not clipped",
        "failed",
        "longer than max_norm",
        _IMPORT + _SKIP + _UNSCALE + _GROW,
    ),
    function(
        _SCALING,
        "unscaled in fp16",
        "failed",
        "in fp16, where it underflows again",
        _IMPORT + _SKIP + 'g = (g / scaler["scale"]).float()' + _CLIP + _GROW,
    ),
    function(
        _SCALING,
        "step on infinity",
        "failed",
        "infinite or NaN gradient was taken",
        _IMPORT
        + 'g = backward(scaler["scale"])\nscale = scaler["scale"]\nbad = not torch.isfinite(g).all()\n'
        + "g = g.float() / scale"
        + _CLIP
        + "weights -= lr * g\nif bad:\n    scaler['scale'] /= 2\n    scaler['good'] = 0\n    return\n"
        + _GROW.replace("weights -= lr * g\n", ""),
    ),
    function(
        _SCALING,
        "NaN overlooked",
        "failed",
        "infinite or NaN gradient was taken",
        _IMPORT
        + _SKIP.replace("not torch.isfinite(g).all()", "torch.isinf(g).any()")
        + _UNSCALE
        + _CLIP
        + _GROW,
    ),
    function(
        _SCALING,
        "scale never halved",
        "failed",
        "halves the scale",
        _IMPORT + _SKIP.replace('    scaler["scale"] /= 2\n', "") + _UNSCALE + _CLIP + _GROW,
    ),
    function(
        _SCALING,
        "scale never doubled",
        "failed",
        "the scale doubles",
        _IMPORT + _SKIP + _UNSCALE + _CLIP + 'weights -= lr * g\nscaler["good"] += 1',
    ),
    function(
        _SCALING,
        "doubled at every good step",
        "failed",
        "only after `patience` good steps",
        _IMPORT + _SKIP + _UNSCALE + _CLIP + 'weights -= lr * g\nscaler["scale"] *= 2',
    ),
    function(
        _SCALING,
        "count of good steps kept",
        "failed",
        "sets the count of good steps back",
        _IMPORT + _SKIP.replace('    scaler["good"] = 0\n', "") + _UNSCALE + _CLIP + _GROW,
    ),
    function(
        _SCALING,
        "no scale",
        "failed",
        "backward was called with 1",
        _IMPORT
        + _SKIP.replace('backward(scaler["scale"])', "backward(1.0)")
        + "g = g.float()"
        + _CLIP
        + _GROW,
    ),
    function(
        _SCALING,
        "skipped step tried again",
        "failed",
        "backward was called",
        _IMPORT
        + _SKIP.replace("    return\n", '    g = backward(scaler["scale"])\n')
        + _UNSCALE
        + _CLIP
        + _GROW,
    ),
    function(
        _SCALING,
        "not in place",
        "failed",
        "the weights did not move",
        _IMPORT + _SKIP + _UNSCALE + _CLIP + _GROW.replace("weights -= lr * g", "weights = weights - lr * g"),
    ),
)
