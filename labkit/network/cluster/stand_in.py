"""Run as a file by torchrun, once for each rank, in its place: has the rank forked where torch is imported already.

Its standard input is the agent's: a socket on which it hands over what torchrun tells a rank, and one end of a
line. It lives as long as the rank: what comes over the line is how that ended, and when this process is ended
the line closes, whereupon the rank is ended too. The standard library only, so that it starts in no time.
"""

import json
import os
import signal
import socket

NAMES = {
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"),
}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    told = {
        name: word for name, word in os.environ.items() if name in NAMES or name.startswith("TORCHELASTIC_")
    }
    ours, theirs = socket.socketpair()
    socket.send_fds(socket.socket(fileno=0), [json.dumps(told).encode()], [theirs.fileno()])
    theirs.close()
    status = int(ours.recv(16) or b"1")
    if status < 0:  # a signal: torchrun is to see the same
        os.kill(os.getpid(), -status)
        signal.pause()
    os._exit(status)


main()
