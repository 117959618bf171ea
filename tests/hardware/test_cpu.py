"""Cores and memory as a process may use them, read from the files a kernel shows, here in our own folder."""

from __future__ import annotations

import os

import pytest

from labkit.hardware import cpu


def write(root, **files):
    for path, text in files.items():
        target = root / path.replace("__", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


@pytest.fixture
def root(tmp_path):
    write(tmp_path, proc__cpuinfo="processor\t: 0\nmodel name\t: Test CPU 9000\n")
    write(tmp_path, proc__meminfo="MemTotal:       16384 kB\nMemFree: 1 kB\n")
    return tmp_path


def group(root, path, **files):
    folder = root / "sys/fs/cgroup" / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_name_and_memory(root):
    assert cpu.name(str(root)) == "Test CPU 9000"
    assert cpu.memory(str(root)) == 16 << 20


def test_no_limits_means_the_whole_machine(root):
    group(root, "", cpu__max="max 100000\n", memory__max="max\n")
    assert cpu.usable(str(root)) == cpu.logical()
    assert cpu.memory(str(root)) == 16 << 20


def test_limits_of_version_2_count_up_the_tree(root):
    write(root, proc__self__cgroup="0::/user/lab\n")
    group(root, "user", cpu__max="50000 100000\n", memory__max="4194304\n")
    group(root, "user/lab", cpu__max="max 100000\n", memory__max="8388608\n")
    assert cpu.usable(str(root)) == 0.5
    assert cpu.memory(str(root)) == 4 << 20


def test_limits_of_version_1(root):
    write(root, proc__self__cgroup="4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n")
    group(root, "cpu", cpu__cfs_quota_us="25000", cpu__cfs_period_us="100000")
    group(root, "memory/docker/abc", memory__limit_in_bytes="2097152\n")
    group(root, "memory", memory__limit_in_bytes="9223372036854771712\n")
    assert cpu.usable(str(root)) == 0.25
    assert cpu.memory(str(root)) == 2 << 20


def test_a_path_of_the_host_falls_back_to_the_mount(root):
    write(root, proc__self__cgroup="0::/kubepods/not-visible-here\n")
    group(root, "", cpu__max="20000 100000", memory__max="1048576")
    assert cpu.usable(str(root)) == 0.2
    assert cpu.memory(str(root)) == 1 << 20


def test_threads_that_share_a_core_count_once(root):
    for number in os.sched_getaffinity(0):
        write(root, **{f"sys__devices__system__cpu__cpu{number}__topology__thread_siblings_list": "0-1\n"})
    assert cpu.physical_cores(str(root)) == 1


def test_what_the_system_does_not_tell_is_none(tmp_path):
    assert cpu.physical_cores(str(tmp_path)) is None


def test_affinity_is_honoured():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert cpu.logical() == 1
        assert cpu.usable() <= 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_this_machine_has_something():
    assert cpu.name()
    assert cpu.memory() > 1 << 28
