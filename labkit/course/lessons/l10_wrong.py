"""Lesson 10: typical wrong answers, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.lessons.l10_cases import BREAK_EVEN as _PARAMETERS
from labkit.course.wrong import Wrong, function, wrong


def _sign(label: str, says: str, **changes: str) -> Wrong:
    """The right answer with one line changed."""
    lines = {
        "x": "gradient + residual",
        "scale": "np.abs(x).mean()",
        "packed": "np.packbits(x >= 0)",
        "unpacked": "np.unpackbits(row[4:], count=len(x))",
        "average": "np.mean(sent, 0)",
        "left": "x - sent[rank]",
    } | changes
    body = f"""
    from labkit.network import rank_context, ring_all_gather
    rank, ranks = rank_context().rank, rank_context().world_size
    x = {lines["x"]}
    scale = {lines["scale"]}
    message = np.concatenate([np.float32([scale]).view(np.uint8), {lines["packed"]}])
    rows = np.empty((ranks, len(message)), np.uint8)
    rows[rank] = message
    ring_all_gather(rows)
    sent = [row[:4].copy().view(np.float32)[0] * (2.0 * {lines["unpacked"]} - 1) for row in rows]
    mean = {lines["average"]}
    return mean, {lines["left"]}
    """
    return function("sign_mean(gradient, residual)", label, "failed", says, body)


SIGNS = (
    _sign("no error feedback", "without error feedback", x="gradient", left="np.zeros_like(x)"),
    _sign("the residual is kept and never used", "without error feedback", x="gradient"),
    _sign("residual of the average", "the residual of the *average*", left="x - mean"),
    _sign("scale missing", "the scale is missing", scale="1.0"),
    _sign("largest magnitude as scale", "the scale is the largest magnitude", scale="np.abs(x).max()"),
    _sign("root of the mean square as scale", "nearest to x with mean(|x|)", scale="np.sqrt(np.mean(x**2))"),
    _sign("scale of the gradient", "the scale is that of the gradient", scale="np.abs(gradient).mean()"),
    _sign("sum", "divide by their number", average="np.sum(sent, 0)"),
    _sign("the old residual is forgotten", "forgets the old one", left="gradient - sent[rank]"),
    _sign("this rank alone", "what this rank sent itself", average="sent[rank]"),
    _sign(
        "a byte a sign",
        "np.packbits puts eight into a byte",
        packed="(x >= 0).astype(np.uint8)",
        unpacked="row[4:]",
    ),
    _sign(
        "the last byte is not cut",
        "np.packbits fills up the last byte",
        unpacked="np.unpackbits(row[4:])",
        average="np.mean(sent, 0)",
        left="np.resize(x, len(sent[rank])) - sent[rank]",
    ),
    function(
        "sign_mean(gradient, residual)",
        "everything is sent",
        "failed",
        "as much as the gradient itself",
        """
        from labkit.network import rank_context, ring_all_gather
        x = gradient + residual
        rows = np.empty((rank_context().world_size, len(x)), np.float32)
        rows[rank_context().rank] = np.abs(x).mean() * np.where(x >= 0, 1, -1)
        ring_all_gather(rows)
        return rows.mean(0), x - rows[rank_context().rank]
        """,
    ),
    function(
        "sign_mean(gradient, residual)",
        "rank 0 does not send",
        "error",
        "Nobody can go on",
        """
        from labkit.network import rank_context, recv
        other = np.empty_like(gradient)
        recv(other, (rank_context().rank + 1) % rank_context().world_size)
        return other, residual
        """,
    ),
    function(
        "sign_mean(gradient, residual)",
        "one value",
        "failed",
        "mean and residual",
        "return gradient + residual",
    ),
)


def _adam(label: str, says: str, **changes: str) -> Wrong:
    lines = {
        "first": "mean(g)",
        "square": "average**2",
        "while": "t < warm_up",
        "sent": "sign_mean(beta1 * m + (1 - beta1) * g, residual)",
        "after": "",
        "step": "m / (np.sqrt(v) + eps)",
    } | changes
    body = f"""
    m, v, residual = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients):
        if {lines["while"]}:
            average = {lines["first"]}
            m = beta1 * m + (1 - beta1) * average
            v = beta2 * v + (1 - beta2) * {lines["square"]}
        else:
            m, residual = {lines["sent"]}
            {lines["after"]}
        w = w - lr * {lines["step"]}
    return w
    """
    return function(
        "one_bit_adam(w, gradients, warm_up, mean, sign_mean, lr, beta1, beta2, eps)",
        label,
        "failed",
        says,
        body,
    )


ADAM = (
    _adam(
        "the variance still moves",
        "each rank knows only its own gradient",
        after="v = beta2 * v + (1 - beta2) * g**2",
    ),
    _adam(
        "the variance moves with the signs",
        "by the averaged signs",
        after="v = beta2 * v + (1 - beta2) * m**2",
    ),
    _adam(
        "no error feedback",
        "hand back to sign_mean what it returned",
        sent="sign_mean(beta1 * m + (1 - beta1) * g, np.zeros_like(w))",
    ),
    _adam(
        "its own momentum",
        "or the ranks' weights drift apart",
        sent="(beta1 * m + (1 - beta1) * g, sign_mean(beta1 * m + (1 - beta1) * g, residual)[1])",
    ),
    _adam(
        "the momentum begins anew",
        "it goes on from where it was",
        sent="sign_mean(beta1 * m * (t > warm_up) + (1 - beta1) * g, residual)",
    ),
    _adam("squares of own gradients", "square the averaged gradient", square="mean(g**2)"),
    _adam(
        "corrected moments",
        "corrected for their start at zero",
        step="m / (1 - beta1 ** (t + 1)) / (np.sqrt(v / (1 - beta2 ** min(t + 1, warm_up))) + eps)",
    ),
    _adam("no root", "it is m / (sqrt(v) + eps)", step="m / (v + eps)"),
    _adam("one step short", "expected mean", **{"while": "t < warm_up - 1"}),
    _adam("never compressed", "expected sign_mean", **{"while": "True"}),
    _adam(
        "variance exchanged as well",
        "once a step is enough",
        square="(mean(g) ** 2)",
    ),
    function(
        "one_bit_adam(w, gradients, warm_up, mean, sign_mean, lr, beta1, beta2, eps)",
        "the gradient is compressed",
        "failed",
        "sends the momentum",
        """
        m, v, residual = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
        for t, g in enumerate(gradients):
            if t < warm_up:
                g = mean(g)
                v = beta2 * v + (1 - beta2) * g**2
            else:
                g, residual = sign_mean(g, residual)
            m = beta1 * m + (1 - beta1) * g
            w = w - lr * m / (np.sqrt(v) + eps)
        return w
        """,
    ),
)


def _even(label: str, says: str, **changes: str) -> Wrong:
    lines = {
        "before": "rest + allreduce_ms",
        "after": "rest + allreduce_ms / times_smaller + compress_ms",
        "faster": "before / after",
        "rate": "gradient_bytes / (allreduce_ms / 1000)",
        "even": "gradient_bytes * (1 - 1 / times_smaller) / (compress_ms / 1000)",
    } | changes
    body = f"""
    rest = forward_ms + backward_ms + other_ms
    before = {lines["before"]}
    after = {lines["after"]}
    return {lines["faster"]}, {lines["rate"]}, {lines["even"]}
    """
    return function(f"break_even({', '.join(_PARAMETERS)})", label, "failed", says, body)


BREAK_EVEN = (
    _even(
        "compressing costs nothing",
        "the time to compress is missing",
        after="rest + allreduce_ms / times_smaller",
    ),
    _even(
        "the exchange alone",
        "a step also computes",
        before="allreduce_ms",
        after="allreduce_ms / times_smaller + compress_ms",
    ),
    _even("the whole step gets smaller", "only the exchange gets smaller", faster="times_smaller"),
    _even("upside down", "is its inverse", faster="after / before"),
    _even("bits", "these are bits a second", rate="8 * gradient_bytes / (allreduce_ms / 1000)"),
    _even("milliseconds", "bytes a millisecond", rate="gradient_bytes / allreduce_ms"),
    _even(
        "both directions", "both directions are counted", rate="2 * gradient_bytes / (allreduce_ms / 1000)"
    ),
    _even("nothing left to send", "still have to travel", even="gradient_bytes / (compress_ms / 1000)"),
    _even(
        "what is still sent",
        "what counts is what is saved",
        even="gradient_bytes / times_smaller / (compress_ms / 1000)",
    ),
    _even(
        "break-even in bits",
        "these are bits a second",
        even="8 * gradient_bytes * (1 - 1 / times_smaller) / (compress_ms / 1000)",
    ),
    function(
        f"break_even({', '.join(_PARAMETERS)})",
        "hard-coded result",
        "failed",
        "expected",
        "return 3.3, 3e8, 1e10",
    ),
)


def _claim(label: str, says: str, **changes: object) -> Wrong:
    right = {
        "verdict": "misleading",
        "number": 4.92,
        "unit": "times",
        "left_out": "the warm-up; fp16 is usual",
    }
    return wrong(label, "failed", says, f"claim = {right | changes!r}")


CLAIM = (
    _claim("believes it", "right for all steps of a training", verdict="true"),
    _claim("denies it", "there is a stage of which it is right", verdict="false"),
    _claim("warm-up forgotten", "the warm-up is forgotten", number=16),
    _claim("against fp32", "the compressed stage alone, against fp32", number=32),
    _claim("fp32 baseline with warm-up", "that is against fp32", number=5.66),
    _claim("warm-up and rest exchanged", "not 85 %", number=1.164),
    _claim("both directions", "they cancel", number=9.85),
    _claim("percent", "a factor is in 'times'", unit="%", number=80),
    _claim("nothing left out", "name what the 97 % hide", left_out="nothing"),
    _claim("half filled in", "nothing under 'number'", number=None),
)


def _thin(label: str, says: str, **changes: str) -> Wrong:
    lines = {
        "x": "matrix + residual",
        "p": "mean(x @ q)",
        "orthonormal": "np.linalg.qr(p)[0]",
        "q": "mean(own)",
        "left": "x - p @ own.T",
        "next": "new",
    } | changes
    body = f"""
    from labkit.network import rank_context, ring_all_reduce

    def mean(part):
        total = np.ascontiguousarray(part, np.float32).copy()
        ring_all_reduce(total)
        return total / rank_context().world_size

    x = {lines["x"]}
    p = {lines["p"]}
    p = {lines["orthonormal"]}
    own = x.T @ p
    new = {lines["q"]}
    return p @ new.T, {lines["left"]}, {lines["next"]}
    """
    return function("power_sgd(matrix, residual, q)", label, "failed", says, body)


LOW_RANK = (
    _thin("no error feedback", "without error feedback", x="matrix", left="np.zeros_like(matrix)"),
    _thin("not orthonormal", "P is not orthonormal", orthonormal="p"),
    _thin("residual of the average", "the residual of the *average*", left="x - p @ new.T"),
    _thin("P of this rank", "average P over the ranks", p="x @ q"),
    _thin("Q of this rank", "average Q as well", q="own"),
    _thin("starts cold", "the one that came in", next="q"),
    _thin("sum", "divide by their number", q="mean(own) * rank_context().world_size"),
    _thin("everything is sent", "P and Q are all that has to travel", p="mean(x) @ q"),
    _thin("two results", "an approximation, a residual and Q", next="new[:1]"),
)
