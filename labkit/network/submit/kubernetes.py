"""A job for Kubernetes: one pod a node with a torchrun agent in it, and a name under which the first one is found."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import yaml

from labkit.errors import LabkitError
from labkit.network.submit.job import PORT, Job


def manifest(job: Job, image: str) -> str:
    """What kubectl is given: an indexed Job, whose pods have stable names, and the headless Service of these names.

    Parameters
    ----------
    image : str
        The container image with Python, PyTorch and the script in it.
    """
    name = _name(job.name)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": {"job-name": name}, "publishNotReadyAddresses": True},
    }
    pod = {
        "restartPolicy": "Never",
        "subdomain": name,
        "containers": [_container(job, name, image)],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    told = {
        "completionMode": "Indexed",
        "completions": job.nodes,
        "parallelism": job.nodes,
        "backoffLimit": job.restarts * job.nodes,
        **({} if job.time is None else {"activeDeadlineSeconds": int(job.time)}),
        "template": {"spec": pod},
    }
    run = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": told}
    return "---\n".join(yaml.safe_dump(one, sort_keys=False) for one in (service, run))


def _container(job: Job, name: str, image: str) -> dict[str, Any]:
    limits: dict[str, Any] = {"cpu": job.cpus_per_rank * job.ranks_per_node}
    if job.megabytes:
        limits["memory"] = f"{job.megabytes}Mi"
    if job.gpus_per_node:
        limits["nvidia.com/gpu"] = job.gpus_per_node
    endpoint = None if job.nodes == 1 else f"{name}-0.{name}:{PORT}"
    return {
        "name": "torchrun",
        "image": image,
        "command": ["python", *job.torchrun(endpoint)[1:]],  # the image's own interpreter
        "resources": {"limits": limits},
        # processes of one node exchange data in shared memory, of which containers have 64 MiB by default
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }


def _name(name: str) -> str:
    """Kubernetes takes lower case letters, digits and hyphens, 63 at most; the pod's number comes on top."""
    found = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:52].strip("-")
    if not found or not found[0].isalpha():
        raise LabkitError(
            f"{name!r} makes no name for Kubernetes: it begins with a letter, such as --name train."
        )
    return found


def submit(job: Job, image: str) -> int:
    """Hand the manifest to kubectl, and return its status.

    Raises
    ------
    LabkitError
        Without kubectl here.
    """
    if shutil.which("kubectl") is None:
        raise LabkitError(
            "There is no kubectl here, so no cluster to submit to: --dry-run shows the manifest for one."
        )
    return subprocess.run(
        ["kubectl", "apply", "-f", "-"], input=manifest(job, image), text=True, check=False
    ).returncode
