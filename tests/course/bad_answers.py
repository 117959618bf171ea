"""Answers that misbehave. Each stands for something a learner's function may do, on purpose or not."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import labkit
from labkit.course.sandbox import wire

GIGABYTE = np.broadcast_to(np.zeros(1, np.uint8), (2**30,))  # as large as it says, without taking the memory
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)  # labkit-test-sleeper"]


def right(workers, seconds):
    n, t = np.asarray(workers, float), np.asarray(seconds, float) / seconds[0]
    u, y = 1 - 1 / n, t - 1 / n
    return (u @ u) / (u @ y)


def loops_forever(workers, seconds):
    while True:
        pass


def holds_the_lock_forever(workers, seconds):
    return sum(range(10**15))  # one long step inside C, where no Python thread or signal handler gets a turn


def ignores_signals(workers, seconds):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def prints_a_gigabyte(workers, seconds):
    print("first words")
    line = "x" * 2**20
    for _ in range(2**10):
        print(line)
    print("last words")
    return right(workers, seconds)


def leaves(workers, seconds):
    os._exit(0)


def crashes(workers, seconds):
    os.kill(os.getpid(), signal.SIGSEGV)


def eats_memory(workers, seconds):
    hoard = []
    while True:
        hoard.append(np.ones(2**21))


def eats_memory_in_a_child(workers, seconds):
    subprocess.run(
        [sys.executable, "-c", "import time; b = bytearray(b'1') * 2**30; time.sleep(600)"], check=False
    )


def captures_a_gigabyte(workers, seconds):
    return GIGABYTE[0]


def patches_numpy(workers, seconds):
    np.isclose = np.allclose = lambda *_, **__: True
    return 1.0


def patches_labkit(workers, seconds):
    from labkit.course import compare, result, run_check

    compare.difference = lambda *_: None
    run_check.run_check = None
    result.CheckResult.passed = True
    labkit.KernelError = None
    return 1.0


def exits(workers, seconds):
    sys.exit("enough")


def interrupts(workers, seconds):
    raise KeyboardInterrupt


def forks_sleepers(workers, seconds):
    for _ in range(3):
        subprocess.Popen(SLEEP)
    subprocess.Popen(SLEEP, start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(SLEEP[0], SLEEP)
        os._exit(0)
    return right(workers, seconds)


def closes_descriptors(workers, seconds):
    os.closerange(0, 1000)
    return right(workers, seconds)


def prints_a_verdict(workers, seconds):
    print('{"end": "exited", "status": 0, "outcome": "passed", "returned": 5}')
    sys.stdout.flush()
    os._exit(0)


def folder_of_the_check():
    """Where results go; an answer that looks for it on the stack can find it."""
    for frame in sys._current_frames().values():
        while frame is not None:
            if isinstance(folder := frame.f_locals.get("folder"), pathlib.Path):
                return folder
            frame = frame.f_back
    raise LookupError


def writes_garbage(workers, seconds):
    (folder_of_the_check() / "case-0").write_bytes(b"LABKIT1\n" + b"\xff" * 7 + b"\x7f garbage")
    os._exit(0)


def forges_a_document(workers, seconds):
    for number in range(10):
        wire.write(folder_of_the_check() / f"case-{number}", {"returned": {"array": "none"}}, {})
    os._exit(0)


def leaves_a_pipe(workers, seconds):
    os.mkfifo(folder_of_the_check() / "case-0")
    os._exit(0)


def leaves_a_link(workers, seconds):
    os.symlink("/etc/passwd", folder_of_the_check() / "case-0")
    os._exit(0)


def returns_nan(workers, seconds):
    return float("nan")


def returns_a_text(workers, seconds):
    return "7.5"


def returns_a_list(workers, seconds):
    return [1.0, 2.0]


def returns_a_generator(workers, seconds):
    yield 1.0


def returns_a_huge_array(workers, seconds):
    return np.broadcast_to(np.float64(1), (2**20, 2**10))


def returns_a_huge_integer(workers, seconds):
    return 1 << 100_000


def returns_a_nest(workers, seconds):
    nest = []
    for _ in range(5000):
        nest = [nest]
    return nest


class Hostile:
    def __repr__(self):
        raise ValueError("no")

    __float__ = __len__ = __iter__ = __bool__ = __eq__ = __repr__


def returns_a_hostile_object(workers, seconds):
    return Hostile()


def raises_with_a_hostile_message(workers, seconds):
    class Loud(Exception):
        def __str__(self):
            raise Loud

    raise Loud


def raises_half_a_character(workers, seconds):
    raise ValueError("half \udc80 of one")


def raises_something_that_escapes(workers, seconds):
    class Meta(type):
        __name__ = property(lambda _: 1 / 0)

    class Escapes(BaseException, metaclass=Meta):
        def __str__(self):
            raise KeyboardInterrupt

    raise Escapes


def returns_a_number_that_equals_everything(workers, seconds):
    class Equal(float):
        __eq__ = lambda *_: True  # noqa: E731
        __sub__ = __rsub__ = lambda *_: 0.0
        __hash__ = None

    return Equal(1.0)


def returns_a_subclass(workers, seconds):
    class Speed(float):
        pass

    return Speed(right(workers, seconds))


def returns_an_anonymous_object(workers, seconds):
    return object()


def hops_from_process_to_process(workers, seconds):
    end = time.monotonic() + 20
    if os.fork() == 0:
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
            os.setsid()
        os._exit(0)
    return right(workers, seconds)


def starts_hundreds(workers, seconds):
    for _ in range(300):
        if os.fork() == 0:
            os.setsid()
            time.sleep(20)
            os._exit(0)
    time.sleep(20)


def leaves_a_sleeper_and_ends_its_keeper(workers, seconds):
    subprocess.Popen(SLEEP, start_new_session=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(20)


def fills_the_disk(workers, seconds):
    with tempfile.TemporaryFile() as file:
        file.truncate(2**40)


def recurses(workers, seconds):
    return recurses(workers, seconds)


def reads_input(workers, seconds):
    return float(input())
