"""Lesson 08: typical wrong scripts and wrong ways to resume, each with its outcome and words that have to be said."""

from __future__ import annotations

from labkit.course.wrong import Wrong, function

_SCRIPT = """
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

rank, local_rank, world = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
gpu = torch.cuda.is_available()
dist.init_process_group("gloo")
device = torch.device("cuda", local_rank) if gpu else torch.device("cpu")
torch.manual_seed(0)
model = torch.nn.Linear(64, 10).to(device)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.data -= 0.5 * p.grad / world
            p.grad = None
    if rank == 0:
        print(epoch, loss.item())
if rank == 0:
    torch.save(model.state_dict(), path)
dist.destroy_process_group()
return model
"""


def _script(label: str, says: str, *changes: tuple[str, str], outcome: str = "failed") -> Wrong:
    """The right script with some of its text replaced."""
    return function("train(data, epochs, path)", label, outcome, says, _changed(_SCRIPT, changes))


def _changed(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


TORCHRUN = (
    _script(
        "LOCAL_RANK as RANK",
        "LOCAL_RANK counts within a node",
        (
            'for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")',
            'for name in ("LOCAL_RANK", "LOCAL_RANK", "WORLD_SIZE")',
        ),
        ("DistributedSampler(data)", "DistributedSampler(data, world, rank)"),
    ),
    _script(
        "joins as LOCAL_RANK",
        "LOCAL_RANK counts within a node",
        (
            'dist.init_process_group("gloo")',
            'dist.init_process_group("gloo", rank=local_rank, world_size=world)',
        ),
    ),
    _script(
        "the master's address in the script",
        "which is written in the script",
        (
            'dist.init_process_group("gloo")',
            'dist.init_process_group("gloo", "tcp://127.0.0.1:29500", rank=rank, world_size=world)',
        ),
    ),
    _script(
        "sets the master itself",
        "The script sets MASTER_ADDR itself",
        (
            'dist.init_process_group("gloo")',
            'os.environ["MASTER_ADDR"] = "localhost"\ndist.init_process_group("gloo")',
        ),
    ),
    _script(
        "every rank saves",
        "only rank 0 should",
        ("if rank == 0:\n    torch.save", "if True:\n    torch.save"),
    ),
    _script(
        "one rank a node saves",
        "LOCAL_RANK counts within a node",
        ("if rank == 0:\n    torch.save", "if local_rank == 0:\n    torch.save"),
    ),
    _script(
        "nobody saves", "Nobody saves the model", ("    torch.save(model.state_dict(), path)", "    pass")
    ),
    _script(
        "everybody prints",
        "Rank 1 prints too",
        ("    if rank == 0:\n        print", "    if True:\n        print"),
    ),
    _script("no set_epoch", "sampler.set_epoch(epoch)", ("    sampler.set_epoch(epoch)\n", "")),
    _script(
        "all samples on every rank",
        "trains on all 96 samples",
        ("batch_size=8, sampler=sampler", "batch_size=8, shuffle=True"),
    ),
    _script(
        "each shuffles in its own way",
        "each rank has shuffled in its own way",
        ("DistributedSampler(data)", "DistributedSampler(data, seed=rank)"),
    ),
    _script(
        "gradients are not exchanged",
        "gradients are averaged in every step",
        ("            dist.all_reduce(p.grad)\n", ""),
    ),
    _script(
        "other weights at the start",
        "all start alike",
        ("torch.manual_seed(0)", "torch.manual_seed(rank)"),
    ),
    _script("left open", "destroy_process_group", ("dist.destroy_process_group()\n", "")),
    _script(
        "one GPU for all",
        "all ranks of a node would share one GPU",
        ('torch.device("cuda", local_rank)', 'torch.device("cuda:0")'),
    ),
    _script(
        "GPU by RANK",
        "does not look at LOCAL_RANK",
        (
            'rank, local_rank, world = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))',
            'rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])',
        ),
        ('"cuda", local_rank', '"cuda", rank'),
    ),
    _script(
        "no process group",
        "init_process_group comes before anything",
        ('dist.init_process_group("gloo")\n', ""),
    ),
    _script(
        "rank 0 alone reduces",
        "a collective that not all of them call",
        (
            "            dist.all_reduce(p.grad)\n",
            "            if rank == 0:\n                dist.all_reduce(p.grad)\n",
        ),
    ),
    _script("a name that nobody sets", "KeyError", ('"WORLD_SIZE"', '"WORLD"')),
    _script("returns nothing", "train returns no model", ("return model", "")),
)

_JOB = """
import os

model, optimizer = job.new()
step = 0
if os.path.exists(path):
    state = job.load(path)
    step, model, optimizer = state["step"], state["model"], state["optimizer"]
while step < job.steps:
    epoch, place = divmod(step, job.steps_per_epoch)
    batch = job.order(epoch)[place * job.batch : (place + 1) * job.batch]
    job.update(model, optimizer, batch[job.rank :: job.world])
    step += 1
    if step % job.every == 0 and job.rank == 0:
        job.save({"step": step, "model": model, "optimizer": optimizer}, path + ".new")
        os.replace(path + ".new", path)
return model
"""


def _resume(label: str, says: str, *changes: tuple[str, str]) -> Wrong:
    return function("resumable(job, path)", label, "failed", says, _changed(_JOB, changes))


RESUME = (
    _resume(
        "not atomic",
        "os.replace",
        ('path + ".new")\n        os.replace(path + ".new", path)', "path)"),
    ),
    _resume(
        "resumes at the start of the epoch",
        "resumes at the start of the epoch",
        ('step, model, optimizer = state["step"]', 'step, model, optimizer = state["step"] // 4 * 4'),
    ),
    _resume(
        "goes on with the next epoch",
        "the rest of this one is skipped",
        ('step, model, optimizer = state["step"]', 'step, model, optimizer = -(-state["step"] // 4) * 4'),
    ),
    _resume(
        "begins again with a trained model",
        "begins with the first batch again",
        ('step, model, optimizer = state["step"]', "step, model, optimizer = 0"),
    ),
    _resume("one step too few", "one step too few", ('{"step": step,', '{"step": step - 1,')),
    _resume("one step too many", "one step too many", ('{"step": step,', '{"step": step + 1,')),
    _resume("every rank writes", "all write the checkpoint", (" and job.rank == 0", "")),
    _resume(
        "without the optimizer",
        "its momentum",
        (
            'step, model, optimizer = state["step"], state["model"], state["optimizer"]',
            'step, model = state["step"], state["model"]',
        ),
    ),
    _resume(
        "rank 0 alone loads",
        "wait for others",
        ("if os.path.exists(path):", "if job.rank == 0 and os.path.exists(path):"),
    ),
    _resume(
        "other ranks load the step alone",
        "every rank has to load",
        (
            'step, model, optimizer = state["step"], state["model"], state["optimizer"]',
            'step = state["step"]\n    if job.rank == 0:\n        model, optimizer = list(state.values())[1:]',
        ),
    ),
    _resume("no set_epoch", "uses the order of epoch 0", ("job.order(epoch)", "job.order(0)")),
    _resume(
        "shares of a fixed world",
        "shares follow job.rank and job.world",
        ("batch[job.rank :: job.world]", "batch[job.rank :: 2]"),
    ),
    _resume(
        "everybody takes the whole batch",
        "instead of 12",
        ("batch[job.rank :: job.world]", "batch"),
    ),
    _resume("never saves", "since the last checkpoint", ("step % job.every == 0", "False")),
    _resume(
        "saves half as often",
        "write a checkpoint every job.every steps",
        ("step % job.every == 0", "step % (2 * job.every) == 0"),
    ),
    _resume(
        "loads what is not there", "there is no checkpoint yet", ("if os.path.exists(path):", "if True:")
    ),
    _resume("returns nothing", "returned no model", ("return model", "return step")),
)
