"""One description in three forms; stopwatches inside ranks; things that happen to a cluster meanwhile."""

from __future__ import annotations

import threading

import pytest
import yaml
from support import needs

import labkit
from labkit.errors import LabkitError
from labkit.network.cluster import waiting
from labkit.network.submit import kubernetes
from labkit.network.submit.cli import main as submit
from labkit.network.submit.job import Job
from labkit.network.timing import ping_pong


def test_kubernetes_gets_a_pod_a_node_and_a_name_for_the_first():
    job = Job(
        "train.py", ("--lr", "0.1"), nodes=3, ranks_per_node=8, gpus_per_node=8, cpus_per_rank=4, time=90
    )
    service, run = yaml.safe_load_all(kubernetes.manifest(job, "registry/train:1"))
    pods = run["spec"]["template"]["spec"]
    (container,) = pods["containers"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["metadata"]["name"] == pods["subdomain"] == run["metadata"]["name"] == "labkit"
    assert service["spec"]["selector"] == {"job-name": "labkit"}
    assert (run["spec"]["completions"], run["spec"]["parallelism"]) == (3, 3)
    assert run["spec"]["completionMode"] == "Indexed"
    assert run["spec"]["activeDeadlineSeconds"] == 90
    assert container["resources"]["limits"] == {"cpu": 32, "nvidia.com/gpu": 8}
    words = container["command"]
    assert words[0] == "python"
    assert words[1:] == job.torchrun("labkit-0.labkit:29400")[1:]
    assert words[-3:] == ["train.py", "--lr", "0.1"]


def test_one_pod_alone_needs_no_meeting_point_and_names_are_made_to_fit():
    _, run = yaml.safe_load_all(kubernetes.manifest(Job("t.py", name="My_Train.v2", memory=2**30), "image"))
    (container,) = run["spec"]["template"]["spec"]["containers"]
    assert run["metadata"]["name"] == "my-train-v2"
    assert "--standalone" in container["command"]
    assert container["resources"]["limits"] == {"cpu": 1, "memory": "1024Mi"}
    with pytest.raises(LabkitError, match="makes no name for Kubernetes"):
        kubernetes.manifest(Job("t.py", name="1st"), "image")


def test_submit_shows_the_manifest_and_says_when_there_is_no_kubectl(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
):
    submit(["--via", "kubernetes", "--nodes", "2", "--image", "mine:3", "--dry-run", "train.py"])
    _, run = yaml.safe_load_all(capsys.readouterr().out)
    assert run["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:3"
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "train.py").touch()
    with pytest.raises(LabkitError, match="no kubectl here"):
        submit(["--via", "kubernetes", "--image", "mine:3", str(tmp_path / "train.py")])
    with pytest.raises(LabkitError, match="name it with --image"):
        submit(["--via", "kubernetes", str(tmp_path / "train.py")])


def test_ping_pong_times_every_size_between_two_of_the_ranks():
    needs.require("torch")
    results = labkit.ranks(3).run(ping_pong, [4, 1 << 16], 2, 0, 2)
    assert [size for size, _ in results[0]] == [4, 1 << 16]
    assert all(seconds > 0 for _, seconds in results[0])
    # one warm-up and two repeats of each size, and the barriers of torch are not labkit's messages
    assert [one.bytes_sent for one in results.traffic] == [3 * (4 + (1 << 16)), 0, 3 * (4 + (1 << 16))]
    with pytest.raises(LabkitError, match="no multiple of four"):
        labkit.ranks(2).run(ping_pong, [6])


def test_what_waits_happens_once_it_is_time_and_not_after_it_was_called_off():
    flag, done = threading.Event(), threading.Event()
    waiting.when(flag.is_set, done.set, ())
    called_off = threading.Event()
    waiting.after(0.2, called_off.set, ()).cancel()
    assert not done.wait(0.05)
    flag.set()
    assert done.wait(10)
    assert not called_off.wait(0.4)
