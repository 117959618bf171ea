"""The signal that makes a rank write down its Python stack, without a hand of its interpreter."""

from __future__ import annotations

import signal

STACK: int = signal.SIGRTMAX - 2 if hasattr(signal, "SIGRTMAX") else signal.SIGUSR2
