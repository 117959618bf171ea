"""Lesson 03: typical wrong programs for the modelled card, each with its outcome and words that have to be said."""

from __future__ import annotations

from labkit.course.wrong import function

_PIPELINE = "pipeline(d, x, y, chunks, chunk_s)"
_ROOM = """
a, b = d.buffer("a", x.size), d.buffer("b", x.size)
parts = list(zip(x.split(chunks), a.split(chunks), b.split(chunks), y.split(chunks)))
"""
_STEPS = """
    d.copy_in(p, q, s)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=s)
    d.copy_out(r, t, s)
"""
PIPELINE = (
    function(
        _PIPELINE,
        "one stream for everything",
        "failed",
        "both are on stream 1",
        _ROOM + "s = d.stream()\nfor p, q, r, t in parts:" + _STEPS,
    ),
    function(
        _PIPELINE,
        "no stream at all",
        "failed",
        "No overlap: the copy in of chunk 2 cannot start before the kernel of chunk 1 has ended",
        _ROOM + "for p, q, r, t in parts:" + _STEPS.replace(", s)", ")").replace(", stream=s", ""),
    ),
    function(
        _PIPELINE,
        "kernel on the default stream",
        "failed",
        "a call without stream= goes to the default stream",
        _ROOM + "for p, q, r, t in parts:\n    s = d.stream()" + _STEPS.replace(", stream=s", ""),
    ),
    function(
        _PIPELINE,
        "a stream for each stage, no events",
        "failed",
        "may not have delivered yet: nothing makes stream 2 wait for stream 1",
        _ROOM
        + """
s, k, o = d.stream(), d.stream(), d.stream()
for p, q, r, t in parts:
    d.copy_in(p, q, s)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
    d.copy_out(r, t, o)
""",
    ),
    function(
        _PIPELINE,
        "the host waits after each chunk",
        "failed",
        "the host waits for the first before it submits the second",
        _ROOM + "for p, q, r, t in parts:\n    s = d.stream()" + _STEPS + "    s.synchronize()",
    ),
    function(
        _PIPELINE,
        "one place on the device for all chunks",
        "failed",
        "a place that is used again is free only when its last reader is done",
        """
        parts = x.split(chunks)
        a, b = d.buffer("a", parts[-1].size), d.buffer("b", parts[-1].size)
        for p, t in zip(parts, y.split(chunks)):
            s = d.stream()
            d.copy_in(p, a, s)
            d.kernel("f", reads=a, writes=b, takes=chunk_s, stream=s)
            d.copy_out(b, t, s)
        """,
    ),
    function(
        _PIPELINE,
        "the kernel is forgotten",
        "failed",
        "There are no kernels",
        _ROOM
        + "for p, q, r, t in parts:\n    s = d.stream()\n    d.copy_in(p, q, s)\n    d.copy_out(q, t, s)",
    ),
    function(
        _PIPELINE,
        "results of another chunk",
        "failed",
        "holds the result for x[16 MiB : 32 MiB]",
        _ROOM
        + """
for n, (p, q, r, t) in enumerate(parts):
    s = d.stream()
    d.copy_in(p, q, s)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=s)
    d.copy_out(r, parts[n ^ 1][3] if parts[n ^ 1][3].size == r.size else t, s)
""",
    ),
    function(
        _PIPELINE,
        "copies out what is not the result",
        "failed",
        "comes from x without going through the kernel",
        _ROOM + "for p, q, r, t in parts:\n    s = d.stream()" + _STEPS.replace("(r, t, s)", "(q, t, s)"),
    ),
    function(
        _PIPELINE,
        "one chunk only",
        "failed",
        "There are 1 copies in for 4 chunks",
        _ROOM
        + """
s = d.stream()
d.copy_in(x, a, s)
d.kernel("f", reads=a, writes=b, takes=chunk_s, stream=s)
d.copy_out(b, y, s)
""",
    ),
    function(
        _PIPELINE,
        "crash: host memory in a kernel",
        "error",
        "copy it in first",
        'd.kernel("f", reads=x, writes=y, takes=chunk_s)',
    ),
    function(
        _PIPELINE,
        "does nothing with d",
        "failed",
        "Nothing was submitted to d",
        "return [x.split(chunks), y.split(chunks)]",
    ),
)

_EVENTS = "three_streams(d, x, y, chunks, chunk_s)"
_STAGES = _ROOM + "s, k, o = d.stream('in'), d.stream('f'), d.stream('out')\n"
EVENTS = (
    function(
        _EVENTS,
        "the common sample as it is",
        "failed",
        "may not have delivered yet: nothing makes f wait for in (8 hazards in all)",
        _STAGES
        + """
for p, q, r, t in parts:
    d.copy_in(p, q, s)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
    d.copy_out(r, t, o)
""",
    ),
    function(
        _EVENTS,
        "only half repaired",
        "failed",
        "may not have written yet: nothing makes out wait for f",
        _STAGES
        + """
for p, q, r, t in parts:
    d.copy_in(p, q, s)
    e = d.event()
    e.record(s)
    e.wait(k)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
    d.copy_out(r, t, o)
""",
    ),
    function(
        _EVENTS,
        "the event is recorded before the copy",
        "failed",
        "may not have delivered yet",
        _STAGES
        + """
for p, q, r, t in parts:
    e, done = d.event(), d.event()
    e.record(s)
    d.copy_in(p, q, s)
    e.wait(k)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
    done.record(k)
    done.wait(o)
    d.copy_out(r, t, o)
""",
    ),
    function(
        _EVENTS,
        "waited for before it is recorded",
        "error",
        "CUDA lets everybody pass such an event",
        _STAGES
        + """
for p, q, r, t in parts:
    d.copy_in(p, q, s)
    e = d.event()
    e.wait(k)
    e.record(s)
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
    d.copy_out(r, t, o)
""",
    ),
    function(
        _EVENTS,
        "synchronize instead of events",
        "failed",
        "the host waits for the first before it submits the second",
        _STAGES
        + """
for p, q, r, t in parts:
    d.copy_in(p, q, s)
    s.synchronize()
    d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
    k.synchronize()
    d.copy_out(r, t, o)
""",
    ),
    function(
        _EVENTS,
        "everybody waits for the end of a chunk",
        "failed",
        "an event holds the second back until the first is done",
        _STAGES
        + """
for p, q, r, t in parts:
    for first, second in ((s, k), (k, o), (o, s)):
        if first is s:
            d.copy_in(p, q, s)
        elif first is k:
            d.kernel("f", reads=q, writes=r, takes=chunk_s, stream=k)
        else:
            d.copy_out(r, t, o)
        e = d.event()
        e.record(first)
        e.wait(second)
""",
    ),
    function(
        _EVENTS,
        "a stream for each chunk",
        "failed",
        "this sample keeps one stream for each stage",
        _ROOM + "for p, q, r, t in parts:\n    s = d.stream()" + _STEPS,
    ),
    function(
        _EVENTS,
        "all on one stream",
        "failed",
        "Two stages share a stream",
        _ROOM + "s = d.stream()\nfor p, q, r, t in parts:" + _STEPS,
    ),
)

_TRAIN = "train(d, x, losses, steps, step_s)"
_BATCHES = """
batch, loss = d.buffer("batch", x.size), d.buffer("loss", 4 * steps)
parts = list(zip(x.split(steps), batch.split(steps), loss.split(steps), losses.split(steps)))
copies, work = d.stream("copies"), d.stream("work")
"""
_STEP = """
    d.copy_in(p, q, copies)
    e = d.event()
    e.record(copies)
    e.wait(work)
    d.kernel("step", reads=q, writes=r, takes=step_s, stream=work)
"""
_LOOK = "d.host_work('look', '10us', reads=losses)\n"
TRAIN = (
    function(
        _TRAIN,
        "the sample: each loss is copied out at once",
        "failed",
        "losses lies in pageable memory, so each copy into it makes the host wait",
        _BATCHES + "for p, q, r, t in parts:" + _STEP + "    d.copy_out(r, t, work)\n" + _LOOK,
    ),
    function(
        _TRAIN,
        "each loss is printed",
        "failed",
        "a look at every step's loss costs a wait at every step",
        _BATCHES
        + "for p, q, r, t in parts:"
        + _STEP
        + "    work.synchronize()\nd.copy_out(loss, losses, work)\n"
        + _LOOK,
    ),
    function(
        _TRAIN,
        "the losses stay on the device",
        "failed",
        "The loss of step 0 never reaches the host",
        _BATCHES + "for p, q, r, t in parts:" + _STEP + "d.synchronize()",
    ),
    function(
        _TRAIN,
        "nobody looks",
        "failed",
        "The host never looks at the loss of step 0",
        _BATCHES + "for p, q, r, t in parts:" + _STEP + "d.copy_out(loss, losses, work)",
    ),
    function(
        _TRAIN,
        "only the last loss",
        "failed",
        "The loss of step 0 never reaches the host",
        _BATCHES
        + "for p, q, r, t in parts:"
        + _STEP
        + "d.copy_out(r, t, work)\n"
        + _LOOK.replace("losses", "t"),
    ),
    function(
        _TRAIN,
        "copied out on a stream that does not wait",
        "failed",
        "may not have written yet: nothing makes results wait for work",
        _BATCHES
        + "results = d.stream('results')\nfor p, q, r, t in parts:"
        + _STEP
        + "d.copy_out(loss, losses, results)\n"
        + _LOOK,
    ),
    function(
        _TRAIN,
        "copies and kernels on one stream",
        "failed",
        "cannot run beside the kernel of step 0",
        _BATCHES
        + "for p, q, r, t in parts:"
        + _STEP.replace("copies", "work")
        + "d.copy_out(loss, losses, work)\n"
        + _LOOK,
    ),
    function(
        _TRAIN,
        "one batch on the device",
        "failed",
        "overwrites",
        """
        batch = d.buffer("batch", max(p.size for p in x.split(steps)))
        loss = d.buffer("loss", 4 * steps)
        copies, work = d.stream("copies"), d.stream("work")
        for p, r in zip(x.split(steps), loss.split(steps)):
            if p.size == batch.size:
                d.copy_in(p, batch, copies)
            e = d.event()
            e.record(copies)
            e.wait(work)
            d.kernel("step", reads=batch, writes=r, takes=step_s, stream=work)
        d.copy_out(loss, losses, work)
        d.host_work("look", "10us", reads=losses)
        """,
    ),
)
