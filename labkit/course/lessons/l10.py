"""Lesson 10, less traffic: its exercises, with tasks and hints; what is said about mistakes stands in l10_ways and
l10_why."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l10_cases as cases
from labkit.course.lessons import l10_record as record
from labkit.course.lessons import l10_why as why
from labkit.course.lessons import l10_why_numbers as why_numbers
from labkit.course.lessons import l10_wrong as wrong
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

_ADAM = ("w", "gradients", "warm_up", "mean", "sign_mean", "lr", "beta1", "beta2", "eps")

EXERCISES = (
    Exercise(
        name="10.sign",
        title="One bit an element, and nothing lost",
        function="sign_mean",
        kind="core",
        minutes=25,
        task=(
            "Write sign_mean(gradient, residual), which every rank calls in every step: compress gradient + residual "
            "to one bit an element and one scale, exchange that, and return the average of what all ranks sent, and "
            "this rank's new residual."
        ),
        hints=(
            "Four lines of thought: x = gradient + residual; the scale is np.abs(x).mean(); what this rank sends "
            "stands for scale * sign; what is left of x is the new residual.",
            "np.packbits(x >= 0) makes the bytes, np.unpackbits(bytes, count=len(x)) the bits again, 0 and 1, and "
            "2.0 * bits - 1 the signs. np.float32([scale]).view(np.uint8) makes four bytes of the scale.",
            "One message for both: message = np.concatenate([scale_bytes, sign_bytes]). Then rows = np.empty((ranks, "
            "len(message)), np.uint8), rows[rank] = message, ring_all_gather(rows): now row r is rank r's message.",
        ),
        praise="A bit an element on the wire, and what it leaves out comes later.",
        plan=RecordedCheck(("gradient", "residual"), cases.signs, why.signs, record.signs),
        wrong=wrong.SIGNS,
    ),
    Exercise(
        name="10.one_bit_adam",
        title="1-bit Adam: when the variance freezes",
        function="one_bit_adam",
        kind="core",
        minutes=25,
        task=(
            "Write one_bit_adam(w, gradients, warm_up, mean, sign_mean, lr, beta1, beta2, eps): Adam on averaged "
            "gradients for warm_up steps, then the variance stays as it is and the momentum is exchanged by signs, "
            "with error feedback. Return the weights."
        ),
        hints=(
            "Warm-up: g = mean(gradients[t]); m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g**2. "
            "After each step, of either kind: w = w - lr * m / (np.sqrt(v) + eps).",
            "After the warm-up each rank updates the momentum with its *own* gradient, and that momentum is what is "
            "sent: m, residual = sign_mean(beta1 * m + (1 - beta1) * gradients[t], residual).",
            "Begin with m, v and residual as np.zeros_like(w). There is no line with v after the warm-up.",
        ),
        praise="The variance froze in time, and the momentum went on in signs.",
        plan=RecordedCheck(_ADAM, cases.adam, why.adam, record.adam),
        wrong=wrong.ADAM,
    ),
    Exercise(
        name="10.break_even",
        title="How slow a link has to be",
        function="break_even",
        kind="core",
        minutes=15,
        task=(
            "Write break_even(forward_ms, allreduce_ms, backward_ms, other_ms, gradient_bytes, times_smaller, "
            "compress_ms): return how many times faster a step gets, the rate at which gradient_bytes are exchanged "
            "now, and the rate at which compression would gain nothing (both in bytes/s)."
        ),
        hints=(
            "A step is the sum of its four parts. With compression the exchange takes allreduce_ms / times_smaller, "
            "and compress_ms come on top.",
            "The rate now is gradient_bytes over the seconds of the exchange. Milliseconds are thousandths.",
            "At the break-even rate B the time that is saved, gradient_bytes * (1 - 1 / times_smaller) / B, is the "
            "time that compressing takes. Solve for B.",
        ),
        praise="Right: below that rate compression pays, above it the link is too good for it.",
        plan=FunctionCheck(cases.BREAK_EVEN, cases.break_even, why_numbers.break_even),
        wrong=wrong.BREAK_EVEN,
        table=cases.step_table,
    ),
    Exercise(
        name="10.claim",
        title="97 % less",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: '1-bit Adam removes 97 % of the communication.' Fill the dictionary claim: verdict "
            "(true, mostly true, misleading, false or unsourced), number and unit (how many times smaller the volume "
            "of the whole training is than with fp16 gradients, if 15 % of the steps are the warm-up and go in "
            "fp16), left_out."
        ),
        hints=(
            "97 % is 1 - 1/32: one bit instead of 32. When is one bit sent, and what else would be sent?",
            "Against fp16 a compressed step sends 1/16. An uncompressed one sends all of it.",
            "1 / (0.15 + 0.85 / 16).",
        ),
        praise="Yes: the number is that of one stage, against a baseline that nobody has to use.",
        plan=DataCheck(why_numbers.claim, claim_begun),
        wrong=wrong.CLAIM,
    ),
    Exercise(
        name="10.power_sgd",
        title="A thin matrix for a thick one",
        function="power_sgd",
        kind="stretch",
        minutes=25,
        task=(
            "Write power_sgd(matrix, residual, q), which every rank calls in every step: with x = matrix + residual, "
            "average P = x @ q over the ranks, make it orthonormal, average Q = x.T @ P, and return P @ Q.T, this "
            "rank's new residual and the averaged Q."
        ),
        hints=(
            "The average: total = p.copy(), ring_all_reduce(total), total / ranks. It wants contiguous arrays; "
            "np.ascontiguousarray helps where one is not.",
            "np.linalg.qr(p)[0] is orthonormal and spans the same columns. All ranks must do it to the same P.",
            "Keep this rank's own Q before averaging: the residual is x - p @ own.T.",
        ),
        praise="r (n + m) numbers instead of n m, the same on every rank, and the rest kept for later.",
        plan=RecordedCheck(("matrix", "residual", "q"), cases.low_rank, why.low_rank, record.low_rank),
        wrong=wrong.LOW_RANK,
    ),
)
