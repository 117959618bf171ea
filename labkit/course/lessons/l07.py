"""Lesson 07, parallel training: its exercises, with tasks and hints; what is said about mistakes stands in l07_why and
l07_why_more."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l07_cases as cases
from labkit.course.lessons import l07_record as record
from labkit.course.lessons import l07_why as why
from labkit.course.lessons import l07_why_more as more
from labkit.course.lessons import l07_wrong as wrong
from labkit.course.lessons import l07_wrong_more as wrong_more
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

_TORCH = ("torch",)

EXERCISES = (
    Exercise(
        name="07.ddp",
        title="Data parallelism by hand",
        function="train",
        kind="core",
        minutes=20,
        task=(
            "Write train(world, model, loss, batches, lr): all ranks start from rank 0's weights; each works on its "
            "equal share of every batch; after each batch all step with the gradient of the whole batch. Only "
            "gradients of trained parameters are all-reduced, each once a step."
        ),
        hints=(
            "Four things, in this order: broadcast every parameter's data once; and for each batch take a part, run "
            "backward, average, step.",
            "x[world.rank :: world.world_size] is a part that no other rank has. A frozen parameter has .grad None; "
            "model.parameters() lists a shared one once.",
            "After loss(model(x), y).backward(): world.all_reduce(p.grad), then p.grad /= world.world_size for each "
            "p with a gradient; p.data -= lr * p.grad; p.grad = None.",
        ),
        praise="Every rank ends with the weights of serial training, having done its share and sent no byte too much.",
        plan=RecordedCheck(cases.TRAIN, cases.train, why.train, record.train, loads=_TORCH),
        wrong=wrong.TRAIN,
    ),
    Exercise(
        name="07.buckets",
        title="Buckets that leave while backward runs",
        function="overlapped",
        kind="core",
        minutes=30,
        task=(
            "Write overlapped(world, parameters, bucket_bytes): put hooks on the parameters so that their gradients "
            "are averaged in buckets of at most bucket_bytes, filled from the last parameter on, each launched when "
            "its last gradient is there; return finish(), which is called after every backward."
        ),
        hints=(
            "Plan the buckets first, as lists of parameters: go through reversed(parameters), and start a new one when "
            "the next gradient would make it too large. Count how many gradients each still lacks.",
            "p.register_post_accumulate_grad_hook(hook) calls hook(p) when p.grad is complete. The hook counts; when "
            "its bucket lacks nothing, it copies the gradients into one flat tensor of that bucket's own and starts "
            "world.all_reduce_async(flat).",
            "torch.cat([p.grad.reshape(-1) for p in bucket]) makes the flat tensor. finish() waits for each handle, "
            "divides by world.world_size, copies the pieces back (flat.split(sizes)), and sets the counts anew.",
        ),
        praise="The first bucket is on its way before backward ends, and every byte of it is accounted for.",
        plan=RecordedCheck(cases.OVERLAP, cases.overlapped, why.overlapped, record.overlapped, loads=_TORCH),
        wrong=wrong.OVERLAPPED,
    ),
    Exercise(
        name="07.no_sync",
        title="Accumulate, and send once",
        function="accumulate",
        kind="core",
        minutes=15,
        task=(
            "Write accumulate(ddp, loss, micro_batches, optimizer): one step of the optimizer with the mean over all "
            "micro-batches of all ranks, sending gradients once. ddp is a model wrapped in DataParallel."
        ),
        hints=(
            "Backward adds to the gradients that are there. So clear them first, and make what adds up a mean.",
            "Inside with ddp.no_sync(): forward and backward send nothing. Which micro-batch has to be outside?",
            "All but the last inside; the last one outside: its backward sends the sum of all. Each loss is divided "
            "by len(micro_batches); ddp divides by the ranks.",
        ),
        praise="The same weights as with one large batch, for the bytes of one.",
        plan=RecordedCheck(
            cases.ACCUMULATE, cases.accumulate, why.accumulate, record.accumulate, loads=_TORCH
        ),
        wrong=wrong.ACCUMULATE,
    ),
    Exercise(
        name="07.unused",
        title="What find_unused_parameters does",
        function="unused",
        kind="core",
        minutes=20,
        task=(
            "Write unused(output, parameters): names of those parameters (a dictionary from name to parameter) that "
            "backward from output would not reach; found by walking autograd's graph, without running it."
        ),
        hints=(
            "output.grad_fn is the node that made the output (None when nothing asks for a gradient). "
            "node.next_functions holds pairs (node, number): those that backward goes on to.",
            "The walk ends at nodes that have an attribute variable: the parameter itself. Compare with `is`, since == "
            "compares elements.",
            "Keep a list of nodes still to visit and a set of those seen: graphs have thousands of nodes in a row, "
            "too deep for recursion, and many ways to the same node. A node may be None.",
        ),
        praise="One walk over the graph, each node once: that is all that the option adds to a step.",
        plan=RecordedCheck(("output", "parameters"), cases.unused, why.unused, record.unused, loads=_TORCH),
        wrong=wrong.UNUSED,
    ),
    Exercise(
        name="07.claim",
        title="75 % less time on eight cards",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'BERT-base trains in 75 % less time on eight V100s than on one.' Fill the dictionary "
            "claim: verdict (true, mostly true, misleading, false or unsourced), number and unit (the parallel "
            "efficiency that it amounts to, in %), left_out."
        ),
        hints=(
            "75 % less time is a quarter of the time. How many times as fast is that?",
            "Efficiency is the speed-up divided by the number of cards. Is it much, with 0.44 GB of gradients a step "
            "and links of 130 GB/s?",
            "Four times as fast with eight cards: 50 %. And no batch, no link, no software and no source is named.",
        ),
        praise="Yes: it sounds like much, is half of what was paid for, and nobody says how it was measured.",
        plan=DataCheck(more.claim, claim_begun),
        wrong=wrong_more.CLAIM,
    ),
    Exercise(
        name="07.tensor_parallel",
        title="Two layers cut over the ranks",
        function="two_layers",
        kind="stretch",
        minutes=25,
        task=(
            "Write two_layers(world, x, up, up_bias, down, down_bias, dy): y = relu(x up' + up_bias) down' + down_bias "
            "and the gradient dx of x, where each rank has some hidden features only; two all-reduces in all. Arrays "
            "are NumPy's; returns (y, dx)."
        ),
        hints=(
            "Cut by columns, each rank computes some hidden features from the whole x, and needs nobody for it. What "
            "does it have of y after the second layer?",
            "A share of every element: the sum over hidden features is cut into parts, one a rank. world.all_reduce "
            "adds them up, in place. The bias comes once, after that.",
            "Backward: dh = dy @ down, set to zero where relu was; dx = dh @ up is again a share of every element.",
        ),
        praise="No rank has the whole layer, and two all-reduces are all the others hear of it.",
        plan=RecordedCheck(cases.TWO_LAYERS, cases.two_layers, more.two_layers, record.two_layers),
        wrong=wrong_more.TWO_LAYERS,
    ),
    Exercise(
        name="07.pipeline",
        title="One forward, one backward",
        function="one_f_one_b",
        kind="stretch",
        minutes=25,
        task=(
            'Write one_f_one_b(stages, micro_batches, stage): the list of ("forward", m) and ("backward", m) that '
            "this stage runs, in order; with the smallest bubble, and the fewest activations kept."
        ),
        hints=(
            "Look at the last stage: its backward of a micro-batch can come right after its forward.",
            "The stage before it runs one forward more before its first backward, the one before that two more, and "
            "so on: stage s starts with stages - 1 - s forward steps.",
            "Then turns: forward of the next, backward of the oldest; in the end the backward steps that are left. "
            "Mind that there may be fewer micro-batches than stages.",
        ),
        praise="The bubble of GPipe, with the activations of as many micro-batches as there are stages ahead.",
        plan=RecordedCheck(
            ("stages", "micro_batches", "stage"), cases.pipelines, more.pipeline, record.pipeline
        ),
        wrong=wrong_more.PIPELINE,
    ),
    Exercise(
        name="07.zero",
        title="The ZeRO stage that fits",
        function="zero_stage",
        kind="stretch",
        minutes=15,
        task=(
            "Write zero_stage(parameters, ranks, memory, activations): the lowest ZeRO stage (0 to 3) at which "
            "mixed-precision training with Adam fits into memory bytes a rank, or None; activations are bytes a rank."
        ),
        hints=(
            "A parameter has 2 bytes of weight, 2 of gradient, and 12 in the optimizer: an fp32 copy and two moments.",
            "Stage 1 divides the optimizer's part by the ranks, stage 2 the gradients too, stage 3 also the weights.",
            "Go through the stages from 0 to 3 and return the first whose bytes, activations added, are at most "
            "memory; None after the loop.",
        ),
        praise="Right for every table, yours included.",
        plan=FunctionCheck(cases.ZERO, cases.zero, more.zero),
        wrong=wrong_more.ZERO,
        table=cases.zero_table,
    ),
    Exercise(
        name="07.embedding",
        title="A table too large for one card",
        function="lookup",
        kind="stretch",
        minutes=30,
        task=(
            "Write lookup(world, block, ids, gradient): every rank holds an equal block of a table's rows and asks for "
            "ids of its own. Return the rows for ids, and the gradient of this rank's block when gradient is that of "
            "the rows; with three all-to-alls and no byte more than the ids, their rows and their gradients."
        ),
        hints=(
            "ids // len(block) says who owns each row. Send every rank the ids that it owns; it answers with rows.",
            "world.all_to_all(parts) sends parts[k] to rank k and returns what each rank sent here. An owner's row "
            "number is the id less the first row of its block.",
            "Put what comes back where it belongs: rows[owner == k] = answer[k]. The gradients go the way of the ids, "
            "and np.add.at(total, place, gradient) also adds for places that come twice.",
        ),
        praise="Every lookup and every gradient is that of the whole table, and only what was asked for has travelled.",
        plan=RecordedCheck(cases.LOOKUP, cases.lookups, more.lookup, record.lookup),
        wrong=wrong_more.LOOKUP,
    ),
)
