"""Lesson 07, core: typical wrong answers, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function

_TRAIN = "train(world, model, loss, batches, lr)"


def _train(
    label: str,
    says: str,
    start: str = "for p in model.parameters():\n    world.broadcast(p.data)",
    part: str = "x, y = x[world.rank :: world.world_size], y[world.rank :: world.world_size]",
    average: str = "world.all_reduce(p.grad)\np.grad /= world.world_size",
    which: str = "[p for p in model.parameters() if p.requires_grad]",
    clear: str = "p.grad = None",
    outcome: str = "failed",
) -> Wrong:
    body = "\n".join(
        (
            start,
            f"chosen = {which}",
            "for x, y in batches:",
            f"    {part}",
            "    loss(model(x), y).backward()",
            "    for p in chosen:",
            *(f"        {line}" for line in average.splitlines()),
            "    for p in model.parameters():",
            "        if p.grad is not None:",
            "            p.data -= lr * p.grad",
            f"            {clear}",
        )
    )
    return function(_TRAIN, label, outcome, says, body)


TRAIN = (
    _train(
        "no division by the world size",
        "not divided by world_size",
        average="world.all_reduce(p.grad)",
    ),
    _train("ranks start as they are", "rank 0's have to be broadcast", start="pass"),
    _train(
        "frozen layer not broadcast",
        "a frozen layer is not trained, and yet",
        start="for p in model.parameters():\n    if p.requires_grad:\n        world.broadcast(p.data)",
    ),
    _train(
        "the same part on all ranks",
        "every rank took the same part",
        part="n = len(x) // world.world_size; x, y = x[:n], y[:n]",
    ),
    _train("the whole batch on all ranks", "nothing is gained", part="pass"),
    _train("never averaged", "gradients have to be averaged", average="pass"),
    _train(
        "shared matrix reduced twice",
        "once under each of its names",
        which="[p for _, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]",
    ),
    _train(
        "zeros of the frozen layer sent",
        "they are zero and need no message",
        which="list(model.parameters())",
        average="if p.grad is None:\n    p.grad = 0 * p.data\nworld.all_reduce(p.grad)\np.grad /= world.world_size",
    ),
    _train(
        "frozen parameters included",
        "frozen, or was not used, has none",
        which="list(model.parameters())",
        outcome="error",
    ),
    _train("gradients never cleared", "gradients of earlier steps are still there", clear="pass"),
    _train(
        "only rank 0 reduces",
        "Nobody can go on",
        average="if world.rank == 0:\n    world.all_reduce(p.grad)\n    p.grad /= world.world_size",
        outcome="error",
    ),
    _train(
        "not waited for",
        "never waited for all-reduce",
        average="world.all_reduce_async(p.grad)",
    ),
)

_OVERLAPPED = "overlapped(world, parameters, bucket_bytes)"
_PLAN = """
import torch

buckets = []
for p in {order}:
    size = p.numel() * p.element_size()
    if not buckets or sum(q.numel() * q.element_size() for q in buckets[-1]) + size > {limit}:
        buckets.append([])
    buckets[-1].append(p)
lacking = [len(bucket) for bucket in buckets]
handles = {{}}
{before}

def ready(number):
    def hook(p):
        lacking[number] -= 1
        if {when}:
            {launch}
    return hook

for number, bucket in enumerate(buckets):
    for p in bucket:
        p.register_post_accumulate_grad_hook(ready(number))

def finish():
    {first}
    for number, bucket in enumerate(buckets):
        flat, handle = handles[number]
        {wait}
        flat {divide}
        for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
            {back}
        {reset}

return finish
"""
_START = "start(number)"
_DEFINE = """
def start(number):
    flat = torch.cat([p.grad.reshape(-1) for p in buckets[number]])
    handles[number] = flat, world.all_reduce_async(flat)
"""


def _overlapped(label: str, says: str, **parts: str) -> Wrong:
    usual = {
        "order": "reversed(parameters)",
        "limit": "bucket_bytes",
        "before": _DEFINE,
        "when": "lacking[number] == 0",
        "launch": _START,
        "first": "pass",
        "wait": "handle.wait()",
        "divide": "/= world.world_size",
        "back": "p.grad.copy_(piece.view_as(p))",
        "reset": "lacking[number] = len(bucket)",
    }
    return function(_OVERLAPPED, label, "failed", says, _PLAN.format(**(usual | parts)))


OVERLAPPED = (
    _overlapped("no division by the world size", "not divided by world_size", divide="*= 1"),
    _overlapped(
        "reduced after backward has ended",
        "the first bucket was sent after the last gradient",
        launch="pass",
        first="[start(number) for number in range(len(buckets))]",
    ),
    _overlapped(
        "sent before its gradients are there",
        "was sent before all of its gradients were there",
        before="""
def start(number):
    flat = torch.cat([(p.grad if p.grad is not None else 0 * p).detach().reshape(-1) for p in buckets[number]])
    handles[number] = flat, world.all_reduce_async(flat)
""",
        when="lacking[number] == len(buckets[number]) - 1",
    ),
    _overlapped(
        "one buffer for all buckets",
        "give each bucket its own",
        before="""
whole = torch.empty(max(sum(p.numel() for p in bucket) for bucket in buckets), dtype=torch.float64)
def start(number):
    flat = whole[: sum(p.numel() for p in buckets[number])]
    flat.copy_(torch.cat([p.grad.reshape(-1) for p in buckets[number]]))
    handles[number] = flat, world.all_reduce_async(flat)
""",
    ),
    _overlapped("buckets in forward order", "filled from the first parameter on", order="parameters"),
    _overlapped("a bucket for each parameter", "every gradient travels alone", limit="0"),
    _overlapped("no wait", "read before its wait() had returned", wait="pass"),
    _overlapped(
        "waits inside the hook",
        "wait in finish, when backward has ended",
        launch="start(number); handles[number][1].wait()",
    ),
    _overlapped("counts not set anew", "has to start anew after each backward", reset="pass"),
    _overlapped("average not copied back", "copy the average from the bucket back", back="pass"),
    function(
        _OVERLAPPED,
        "blocking all-reduce in the hook",
        "failed",
        "all_reduce_async returns at once",
        """
        buckets, room = [[]], bucket_bytes
        for p in reversed(parameters):
            size = p.numel() * p.element_size()
            if buckets[-1] and size > room:
                buckets.append([])
                room = bucket_bytes
            buckets[-1].append(p)
            room -= size
        import torch
        lacking = [len(bucket) for bucket in buckets]
        def ready(number):
            def hook(p):
                lacking[number] -= 1
                if lacking[number] == 0:
                    flat = torch.cat([q.grad.reshape(-1) for q in buckets[number]])
                    world.all_reduce(flat)
                    flat /= world.world_size
                    for q, piece in zip(buckets[number], flat.split([q.numel() for q in buckets[number]])):
                        q.grad.copy_(piece.view_as(q))
                    lacking[number] = len(buckets[number])
            return hook
        for number, bucket in enumerate(buckets):
            for p in bucket:
                p.register_post_accumulate_grad_hook(ready(number))
        return lambda: None
        """,
    ),
    function(_OVERLAPPED, "no finish", "failed", "returned no function", "world.rank"),
)

_ACCUMULATE = "accumulate(ddp, loss, micro_batches, optimizer)"


def _accumulate(label: str, outcome: str, says: str, body: str) -> Wrong:
    return function(_ACCUMULATE, label, outcome, says, body)


ACCUMULATE = (
    _accumulate(
        "all micro-batches at once",
        "failed",
        "A forward pass took",
        """
        import torch

        optimizer.zero_grad()
        x, y = (torch.cat(parts) for parts in zip(*micro_batches))
        loss(ddp(x), y).backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "synchronised at every micro-batch",
        "failed",
        "every micro-batch was synchronised",
        """
        optimizer.zero_grad()
        for x, y in micro_batches:
            (loss(ddp(x), y) / len(micro_batches)).backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "unscaled",
        "failed",
        "divide each loss by their number",
        """
        optimizer.zero_grad()
        with ddp.no_sync():
            for x, y in micro_batches[:-1]:
                loss(ddp(x), y).backward()
        x, y = micro_batches[-1]
        loss(ddp(x), y).backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "never synchronised",
        "failed",
        "nothing was ever synchronised",
        """
        optimizer.zero_grad()
        with ddp.no_sync():
            for x, y in micro_batches:
                (loss(ddp(x), y) / len(micro_batches)).backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "forward inside, backward outside",
        "error",
        "run forward and backward together",
        """
        optimizer.zero_grad()
        for x, y in micro_batches:
            with ddp.no_sync():
                value = loss(ddp(x), y)
            (value / len(micro_batches)).backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "the first one synchronised",
        "failed",
        "has to be the last one",
        """
        optimizer.zero_grad()
        x, y = micro_batches[0]
        (loss(ddp(x), y) / len(micro_batches)).backward()
        with ddp.no_sync():
            for x, y in micro_batches[1:]:
                (loss(ddp(x), y) / len(micro_batches)).backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "a step for each micro-batch",
        "failed",
        "one step a batch",
        """
        for x, y in micro_batches:
            optimizer.zero_grad()
            loss(ddp(x), y).backward()
            optimizer.step()
        """,
    ),
    _accumulate(
        "gradients of the last batch kept",
        "failed",
        "optimizer.zero_grad() is missing",
        """
        for n, (x, y) in enumerate(micro_batches):
            value = lambda: loss(ddp(x), y) / len(micro_batches)
            if n < len(micro_batches) - 1:
                with ddp.no_sync():
                    value().backward()
            else:
                value().backward()
        optimizer.step()
        """,
    ),
    _accumulate(
        "divided by the ranks as well",
        "failed",
        "ddp has divided by world_size already",
        """
        optimizer.zero_grad()
        share = len(micro_batches) * ddp.world.world_size
        with ddp.no_sync():
            for x, y in micro_batches[:-1]:
                (loss(ddp(x), y) / share).backward()
        x, y = micro_batches[-1]
        (loss(ddp(x), y) / share).backward()
        optimizer.step()
        """,
    ),
)

_UNUSED = "unused(output, parameters)"
UNUSED = (
    function(
        _UNUSED,
        "asks for gradients before backward",
        "failed",
        ".grad says nothing",
        "return [name for name, p in parameters.items() if p.grad is None]",
    ),
    function(
        _UNUSED,
        "runs backward",
        "failed",
        "find out without running backward",
        """
        if output.grad_fn is not None:
            output.sum().backward()
        return [name for name, p in parameters.items() if p.grad is None]
        """,
    ),
    function(
        _UNUSED,
        "the nearest nodes alone",
        "failed",
        "follow next_functions from node to node",
        """
        if output.grad_fn is None:
            return list(parameters)
        near = [node.variable for node, _ in output.grad_fn.next_functions if hasattr(node, "variable")]
        return [name for name, p in parameters.items() if not any(p is one for one in near)]
        """,
    ),
    function(
        _UNUSED,
        "recursion",
        "error",
        "recursion",
        """
        found = []
        seen = set()
        def walk(node):
            if node is None or node in seen:
                return
            seen.add(node)
            if hasattr(node, "variable"):
                found.append(node.variable)
            for following, _ in node.next_functions:
                walk(following)
        walk(output.grad_fn)
        return [name for name, p in parameters.items() if not any(p is one for one in found)]
        """,
    ),
    function(
        _UNUSED,
        "every way through the graph",
        "error",
        "3 s",
        """
        found, nodes = [], [output.grad_fn]
        while nodes:
            node = nodes.pop()
            if node is None:
                continue
            if hasattr(node, "variable"):
                found.append(node.variable)
            nodes += [following for following, _ in node.next_functions]
        return [name for name, p in parameters.items() if not any(p is one for one in found)]
        """,
    ),
    function(_UNUSED, "nothing is unused", "failed", "nothing was found unused", "return [] + list({})"),
    function(
        _UNUSED,
        "requires_grad asked",
        "failed",
        "nothing was found unused",
        "return [name for name, p in parameters.items() if not p.requires_grad]",
    ),
)
