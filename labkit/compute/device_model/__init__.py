"""A model of one GPU as the host sees it: engines that copy and compute, streams, events, and what must wait for what.

``labkit.device_timeline("A100")`` records a program; its :meth:`~recorder.Device.timeline` says when each operation
would run, and which operations nothing keeps in order.
"""
