"""Without root in a user namespace; and where nothing is allowed, what is said and what goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import needs

import labkit
from labkit.errors import LabkitError
from labkit.network.cluster import factory, handle, members, probe
from labkit.network.cluster.emulated import EmulatedCluster
from labkit.network.cluster.machine import Cluster

_ROOT = Path(labkit.__file__).parents[1]
_USER = 65534  # nobody
_SCRIPT = """
import json, os
from labkit.network.cluster import handle, probe, topologies
from labkit.network.cluster.plan import Shape
import subprocess
able = probe.ability()
plan = topologies.plan(3, "ring", Shape(125e6))
one = handle.start(plan, name="mine", mode=able.mode, netem=able.netem, owned=True)
command, files = one.command("n0", ["sh", "-c", "id -u; hostname; cat /etc/hosts | wc -l; tc qdisc show dev eth0"])
done = subprocess.run(command, pass_fds=files, capture_output=True, text=True, env=one.environment())
print(json.dumps([os.getuid(), able.mode, done.stdout.split(), done.stderr]))
one.close()
print(os.listdir(one.place.path.parent))
"""


def test_an_ordinary_user_has_clusters_in_a_user_namespace(tmp_path: Path) -> None:
    needs.require("netns")
    python = shutil.which("python3", path="/usr/bin")
    if os.geteuid() != 0 or python is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become an ordinary user, and the system's Python")
    open_to_all = Path("/tmp") / f"lk-user-{os.getpid()}"
    open_to_all.mkdir(mode=0o777)
    open_to_all.chmod(0o777)
    try:
        shutil.copytree(
            _ROOT / "labkit", open_to_all / "labkit", ignore=shutil.ignore_patterns("__pycache__")
        )
        done = subprocess.run(
            [
                "setpriv",
                f"--reuid={_USER}",
                f"--regid={_USER}",
                "--clear-groups",
                "--",
                python,
                "-c",
                _SCRIPT,
            ],
            cwd=open_to_all,
            env={
                "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
                "TMPDIR": str(open_to_all),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        shutil.rmtree(open_to_all, ignore_errors=True)
    if "numpy" in done.stderr or "yaml" in done.stderr:
        pytest.skip(f"the system's Python lacks what labkit needs: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    (user, mode, said, error), left = json.loads(done.stdout.splitlines()[0]), done.stdout.splitlines()[1]
    assert (user, mode, error, left) == (_USER, "user namespace", "", "[]")
    assert said[:3] == ["0", "n0", "8"]  # root inside; the hosts file is the cluster's own
    assert "tbf" in said


def test_ranks_run_in_a_user_namespace(private_folder: Path) -> None:
    needs.require("netns")
    needs.require("torch")
    plan, _ = factory.described(2, "switch", "1Gbit/s", None, 0)

    def who() -> tuple[str, int]:
        import torch
        import torch.distributed as dist

        total = torch.ones(1)
        dist.all_reduce(total)
        with open("/proc/self/uid_map") as file:
            return labkit.rank_context().node + file.read().split()[2], int(total)

    with Cluster(handle.start(plan, name="user", mode="user namespace", netem=False, owned=True)) as cluster:
        networks = {members.identity(one) for one in cluster.handle.networks.values()}
        assert cluster.run(who) == [("n01", 2), ("n11", 2)]  # one user, this one, is mapped
    assert not members.in_networks(networks)


# In a user namespace that allows no further ones, and without any capability: nothing is left to try.
_LOCKED = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all -- "


@pytest.mark.parametrize(
    ("prefix", "words"),
    [("", ("user.max_user_namespaces above 0",)), ("PATH=/nowhere ", ("'ip' is not installed", "iproute2"))],
)
def test_where_namespaces_are_forbidden_it_says_what_is_missing(prefix: str, words: tuple[str, ...]) -> None:
    needs.require("netns")
    script = (
        "from labkit.network.cluster import probe, build\n"
        + ("build.search_path = probe.search_path = lambda: '/nowhere'\n" if prefix else "")
        + "print(probe.ability().mode, probe.ability().missing)"
    )
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            _LOCKED + '"$0" -c "$1"',
            sys.executable,
            script,
        ],
        capture_output=True,
        text=True,
        cwd=_ROOT,
        check=False,
    )
    assert done.stdout.startswith("None "), done.stderr
    assert all(word in done.stdout for word in words)


def test_the_missing_capability_is_named_for_root() -> None:
    said = probe._why("root", PermissionError(1, "unshare: Operation not permitted"))
    assert "CAP_SYS_ADMIN or CAP_NET_ADMIN" in said
    assert "seccomp" in probe._why("user namespace", PermissionError(1, "no"))


def test_emulated_ranks_stand_in_and_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], private_folder: Path
) -> None:
    needs.require("torch")
    monkeypatch.setattr(
        probe, "ability", lambda: probe.Ability(None, missing="Namespaces are forbidden here.")
    )

    def send() -> float:
        import time

        import torch

        from labkit.network import recv, send

        began = time.monotonic()
        place, data = labkit.rank_context(), torch.ones(2**18)
        send(data, 1) if place.rank == 0 else recv(data, 0)
        return time.monotonic() - began

    with labkit.cluster(2, bandwidth="20MB/s", latency="1ms") as cluster:
        assert isinstance(cluster, EmulatedCluster)
        assert "emulated: Namespaces are forbidden here. Ranks on one machine" in capsys.readouterr().out
        results = cluster.run(send, ranks_per_node=1)
        assert results[1] > 2**20 / 20e6
        assert "Emulated link" in results.link
        assert "emulated" in repr(cluster)
        for refused in (
            lambda: cluster.kill("n0"),
            lambda: cluster.link("n0").cut(),
            lambda: cluster.run(int, restarts=1),
        ):
            with pytest.raises(
                LabkitError, match=r"needs real nodes, and this cluster is emulated: Namespaces"
            ):
                refused()
    with pytest.raises(LabkitError, match="from 1 to 64"):
        labkit.cluster(0)
