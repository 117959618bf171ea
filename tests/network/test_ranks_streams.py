"""What ranks print: prefixed, in order, in the right stream, bounded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import labkit
from labkit.network.launch.streams import HEAD, LINE, TAIL, Stream
from labkit.network.ranks import Ranks

World = Callable[..., Ranks]


def test_lines_carry_their_rank_also_those_of_children_and_of_c(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def speak() -> None:
        print("printed")
        os.write(1, b"written\n")
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        print("unfinished", end="")

    world(2).run(speak)
    out = capsys.readouterr().out.splitlines()
    for rank in (0, 1):
        mine = [line for line in out if line.startswith(f"[rank {rank}] ")]
        assert mine == [f"[rank {rank}] {word}" for word in ("printed", "written", "child", "unfinished")]


def test_both_streams_of_a_rank_stay_in_order(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Sink:
        def __init__(self, name: str):
            self.name = name

        def write(self, text: str) -> None:
            seen.append(f"{self.name} {text.split()[-1]}")

        def flush(self) -> None:
            pass

    def alternate() -> None:
        for number in range(20):
            print(number, file=sys.stderr if number % 2 else sys.stdout)

    group = world(1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Sink("out"))
        patch.setattr(sys, "stderr", Sink("err"))
        group.run(alternate)
    assert seen == [f"{'err' if number % 2 else 'out'} {number}" for number in range(20)]


def test_two_hundred_kilobytes_on_descriptor_2_are_bounded_and_told(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def spew() -> int:
        if labkit.rank_context().rank == 1:
            os.write(2, b"start" + b"x" * 199_990 + b"end!\n")
        return 1

    assert world(2).run(spew) == [1, 1]
    err = capsys.readouterr().err
    assert HEAD < len(err) < HEAD + TAIL + 2000
    assert err.startswith("[rank 1] start")
    assert err.endswith("end!\n")
    left_out = 200_000 - HEAD - TAIL
    assert f"[rank 1] [... {left_out:,} of 200,000 bytes that it wrote to stderr left out ...]\n" in err


def _shown(written: bytes, capsys: pytest.CaptureFixture[str]) -> str:
    reader, writer = os.pipe()
    os.write(writer, written)
    os.close(writer)
    stream = Stream(reader, 3, "stdout")
    while stream.pump():
        pass
    stream.close()
    return capsys.readouterr().out


def test_a_progress_bar_shows_its_last_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(b"10 %\r50 %\r100 %\nwindows\r\n", capsys) == "[rank 3] 100 %\n[rank 3] windows\n"


def test_a_very_long_line_comes_in_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _shown(b"y" * (2 * LINE + 5), capsys).splitlines()
    assert [len(line.removeprefix("[rank 3] ")) for line in lines] == [LINE, LINE, 5]


def test_bytes_that_are_no_text_do_not_stop_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(b"\xff\xfe ok\n", capsys) == "[rank 3] \ufffd\ufffd ok\n"
