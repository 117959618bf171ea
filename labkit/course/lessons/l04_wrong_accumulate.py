"""Lesson 04: typical wrong ways to accumulate, each with its outcome and words that its feedback has to contain."""

from __future__ import annotations

from labkit.course.wrong import function

_ACCUMULATE = "accumulate(model, loss_fn, optimizer, batches, group)"
ACCUMULATE = (
    function(
        _ACCUMULATE,
        "unscaled",
        "failed",
        "it is the sum of 2 means",
        """
        for first in range(0, len(batches), group):
            optimizer.zero_grad()
            for x, y in batches[first : first + group]:
                loss_fn(model(x), y).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "the usual sample, divided",
        "failed",
        "the last group is incomplete",
        """
        optimizer.zero_grad()
        for i, (x, y) in enumerate(batches):
            (loss_fn(model(x), y) / group).backward()
            if (i + 1) % group == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
    ),
    function(
        _ACCUMULATE,
        "incomplete group divided by group",
        "failed",
        "this group has 1 batches, not 2",
        """
        optimizer.zero_grad()
        for i, (x, y) in enumerate(batches):
            (loss_fn(model(x), y) / group).backward()
            if (i + 1) % group == 0 or i + 1 == len(batches):
                optimizer.step()
                optimizer.zero_grad()
        """,
    ),
    function(
        _ACCUMULATE,
        "a mean of means",
        "failed",
        "they differ in size",
        """
        for first in range(0, len(batches), group):
            part = batches[first : first + group]
            optimizer.zero_grad()
            for x, y in part:
                (loss_fn(model(x), y) / len(part)).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "never zeroed",
        "failed",
        "gradients of the step before are still in it",
        """
        for first in range(0, len(batches), group):
            part = batches[first : first + group]
            samples = sum(len(x) for x, _ in part)
            for x, y in part:
                (loss_fn(model(x), y) * len(x) / samples).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "zeroed for every batch",
        "failed",
        "expected",
        """
        for first in range(0, len(batches), group):
            part = batches[first : first + group]
            samples = sum(len(x) for x, _ in part)
            for x, y in part:
                optimizer.zero_grad()
                (loss_fn(model(x), y) * len(x) / samples).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "a step for every batch",
        "failed",
        "step only when a group is complete",
        """
        for x, y in batches:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "divided by all batches",
        "failed",
        "divided by the number of all batches",
        """
        for first in range(0, len(batches), group):
            optimizer.zero_grad()
            for x, y in batches[first : first + group]:
                (loss_fn(model(x), y) / len(batches)).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "one big batch after all",
        "failed",
        "The model was given 8 samples at once",
        """
        import torch

        for first in range(0, len(batches), group):
            part = batches[first : first + group]
            optimizer.zero_grad()
            x, y = torch.cat([x for x, _ in part]), torch.cat([y for _, y in part])
            loss_fn(model(x), y).backward()
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "no backward",
        "failed",
        "no gradient was there",
        """
        for first in range(0, len(batches), group):
            optimizer.zero_grad()
            loss = sum(loss_fn(model(x), y) for x, y in batches[first : first + group])
            optimizer.step()
        """,
    ),
    function(
        _ACCUMULATE,
        "no step",
        "failed",
        "optimizer.step() was never called",
        """
        for x, y in batches:
            loss_fn(model(x), y).backward()
        """,
    ),
)
