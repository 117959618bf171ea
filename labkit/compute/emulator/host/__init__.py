"""The host's side of ``numba.cuda``: streams, events, memory and devices of an emulated card.

Work on the emulator has ended when the call that submits it returns. Streams therefore order nothing that a program
could see; what they would do on a card is *modelled*, in clock.py, and only events show it.
"""
