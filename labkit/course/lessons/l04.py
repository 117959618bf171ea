"""Lesson 04, libraries and precision: its exercises, with tasks and hints; mistakes are explained in l04_why."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l04_cases as cases
from labkit.course.lessons import l04_drivers as drivers
from labkit.course.lessons import l04_why as why
from labkit.course.lessons import l04_why_more as why_more
from labkit.course.lessons import l04_wrong as wrong
from labkit.course.lessons import l04_wrong_accumulate as wrong_accumulate
from labkit.course.lessons import l04_wrong_more as wrong_more
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="04.mixed_step",
        title="Multiply in 16 bits, add in 32",
        function="mixed_step",
        kind="core",
        minutes=20,
        task=(
            "Write mixed_step(master, forward, lr, scale): one step of SGD. master is a list of float32 tensors; "
            "forward(copies) gives the loss for a list of float16 copies of them. Multiply the loss by scale, go "
            "backward, and update the master weights in place, in float32."
        ),
        hints=(
            "Make a float16 copy of every master weight that wants gradients: w.half().requires_grad_().",
            "After (forward(copies) * scale).backward() each copy has a .grad in float16, scale times too large.",
            "First copy.grad.float(), then / scale, then w -= lr * that. In the other order it underflows again.",
        ),
        praise="The multiplications were in 16 bits, and no update was lost.",
        plan=RecordedCheck(
            ("master", "forward", "lr", "scale"),
            cases.mixed_steps,
            why.mixed,
            drivers.mixed,
            loads=("torch",),
        ),
        wrong=wrong.MIXED,
    ),
    Exercise(
        name="04.loss_scaling",
        title="Save the gradients that vanish",
        function="scaled_step",
        kind="core",
        minutes=20,
        task=(
            "Write scaled_step(weights, backward, scaler, lr, max_norm): backward(scale) gives the float16 gradient "
            "of scale times the loss. Skip the step when it is not finite, and halve scaler['scale']; else unscale, "
            "clip to max_norm, step, and double the scale after scaler['patience'] good steps in a row."
        ),
        hints=(
            "torch.isfinite(gradient).all() tells whether every element is a plain number.",
            "Not finite: scaler['scale'] /= 2, scaler['good'] = 0, and return. No update.",
            "Finite: g = gradient.float() / scaler['scale']; if g.norm() > max_norm, multiply it by max_norm / "
            "g.norm(); weights -= lr * g; count scaler['good'] up, and at patience double the scale and start again "
            "at 0.",
        ),
        praise="Nothing vanished, nothing exploded, and the scale finds its own size.",
        plan=RecordedCheck(
            ("weights", "backward", "scaler", "lr", "max_norm"),
            cases.scalings,
            why.scaling,
            drivers.scaling,
            loads=("torch",),
        ),
        wrong=wrong.SCALING,
    ),
    Exercise(
        name="04.accumulate",
        title="A large batch in small parts",
        function="accumulate",
        kind="core",
        minutes=20,
        task=(
            "Write accumulate(model, loss_fn, optimizer, batches, group): one optimizer step for every group of so "
            "many batches, the last incomplete group included, each with the gradient of the mean loss over all "
            "samples of its group. loss_fn(model(x), y) is the mean over one batch."
        ),
        hints=(
            "Take the groups apart first: for first in range(0, len(batches), group), part = batches[first : first + "
            "group].",
            "The mean over a group is the sum of each batch's mean times len(x), divided by the samples in the group.",
            "So: optimizer.zero_grad(); for each (x, y) of the part (loss_fn(model(x), y) * len(x) / samples)"
            ".backward(); then optimizer.step().",
        ),
        praise="Equal to the big batch at every step, the last group included.",
        plan=RecordedCheck(
            ("model", "loss_fn", "optimizer", "batches", "group"),
            cases.accumulations,
            why.accumulate,
            drivers.accumulate,
            loads=("torch", "torch.optim"),
        ),
        wrong=wrong_accumulate.ACCUMULATE,
    ),
    Exercise(
        name="04.memory",
        title="What training keeps",
        function="training_bytes",
        kind="core",
        minutes=15,
        task=(
            f"Write training_bytes({', '.join(cases.MEMORY)}): return a dictionary with the bytes on one rank of "
            "weights, gradients, optimizer (with the master copy, if there is one) and activations. precision is "
            "'fp32' or 'mixed', optimizer 'sgd', 'momentum' or 'adam'."
        ),
        hints=(
            "Bytes a parameter: weights and gradients 4 + 4 in fp32, 2 + 2 in mixed precision.",
            "The optimizer keeps 0, 1 or 2 numbers a parameter, always fp32; in mixed precision the master copy is "
            "4 bytes more. Activations: 4 bytes each in fp32, 2 in mixed precision.",
            "zero_stage >= 1 divides optimizer by ranks, >= 2 also gradients, >= 3 also weights; never activations.",
        ),
        praise="Right for every job: you can tell what fits before you rent it.",
        plan=FunctionCheck(cases.MEMORY, cases.memories, why_more.memory),
        wrong=wrong_more.MEMORY,
        table=cases.memory_table,
    ),
    Exercise(
        name="04.claim",
        title="48 GB become 24",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'Mixed precision triples throughput and halves the memory of ViT training, from 48 to "
            "24 GB.' Fill the dictionary claim: verdict (true, mostly true, misleading, false or unsourced), number "
            "and unit (what 48 GB in fp32 really become, for 86 million weights and Adam), left_out."
        ),
        hints=(
            "Which of the four parts of the memory halves? How many bytes a weight are the other three, before and "
            "after?",
            "The state is 86e6 * 16 bytes in either precision; what is left of the 48 GB are activations.",
            "1.376 GB stay, 46.624 GB halve: number = 1.376 + 46.624 / 2.",
        ),
        praise="Yes: near half where activations rule, and hardly at all where weights do.",
        plan=DataCheck(why_more.claim, claim_begun),
        wrong=wrong_more.CLAIM,
    ),
    Exercise(
        name="04.int8",
        title="A layer in eight bits",
        function="int8_layer",
        kind="stretch",
        minutes=20,
        task=(
            "Write int8_layer(weights, x): return q (int8, shape of weights), scales (float32, one a row: largest "
            "magnitude / 127), size (bytes of q and scales together) and bound (one number a row: how far output "
            "(q * scales) @ x can at most be from weights @ x)."
        ),
        hints=(
            "scales = np.abs(weights).max(axis=1) / 127; a row of zeros needs another scale, such as 1.",
            "q = np.rint(weights / scales[:, None]).astype(np.int8). Rounding is off by half a scale at most.",
            "An output adds up weight times x over a row, so its error is at most scales / 2 * np.abs(x).sum().",
        ),
        praise="A quarter of the bytes, and you know the worst case before running it.",
        plan=FunctionCheck(("weights", "x"), cases.layers, why_more.int8),
        wrong=wrong_more.INT8,
    ),
    Exercise(
        name="04.fft",
        title="From how many taps on is the detour shorter?",
        function="fft_crossover",
        kind="stretch",
        minutes=15,
        task=(
            "Write fft_crossover(n): the smallest number of taps k, at most n, for which convolving n samples by FFT "
            "takes fewer operations than 2 * n * k; None if there is none. The FFT way: three transforms of N numbers, "
            "5 * N * log2(N) operations each, and 6 * N for the product; N is the next power of two from n + k - 1 on."
        ),
        hints=(
            "Write the two counts as functions of n and k first; then try k = 1, 2, 3, ...",
            "The next power of two from m on is 1 << (m - 1).bit_length(), and its log2 is its bit_length() - 1.",
            "next((k for k in range(1, n + 1) if by_fft(n, k) < 2 * n * k), None).",
        ),
        praise="Counted, not timed: true for every machine whose operations cost alike.",
        plan=FunctionCheck(("n",), cases.crossings, why_more.fft),
        wrong=wrong_more.FFT,
    ),
)
