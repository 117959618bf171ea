"""Makes the simulator ready in a process that is about to run an answer: its compiled code is read from disk once."""

from __future__ import annotations

from labkit.network.fabric import fabric

fabric("dgx-a100").all_reduce("1MiB")
