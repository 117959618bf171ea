"""Run as a file: enter namespaces that are open as descriptors, then become another program.

``python -I -S enter.py '{"user": 3, "mnt": 4, "net": 5, "uts": 6}' PROGRAM ARGUMENT...``: what is not named stays as
it is. The standard library only, and few modules of it: this starts in a hundredth of a second.
"""

import ctypes
import json
import os
import sys

ORDER = ("user", "mnt", "net", "uts")  # the user namespace first: it gives the right to enter the others


def main() -> None:
    spaces, program = json.loads(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    folder = os.getcwd()
    for kind in ORDER:
        if kind in spaces and libc.setns(spaces[kind], 0):
            sys.exit(f"labkit: this node cannot be entered ({kind}): {os.strerror(ctypes.get_errno())}.")
    os.chdir(folder)  # another mount table begins at its root
    for file in spaces.values():
        os.close(file)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.exit(f"labkit: {program[0]} cannot be started: {error.strerror}.")


main()
