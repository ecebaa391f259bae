"""The manifest of the Kubernetes Job for a job of a fleet: made from the settings for pods,
and an order to the pod.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import (
    FLEET_ENVIRONMENT,
    FLEET_POD_END,
    FLEET_POD_START,
    FLEET_POD_TIME,
)
from codeloop_automation.fleet.jobs import FleetJob

# The environment variable of the pod that holds its order.
ORDER_VARIABLE = "CODELOOP_FLEET_JOB"
FLEET_LABEL = "codeloop/fleet"


class PodOrder(Struct, frozen=True):
    """The order for a pod. `base`: the commit to start from. `flags`: of `codeloop run`.
    `push`: push the branch.
    """

    job: FleetJob
    flags: Sequence[str]
    base: str
    push: bool


class PodSettings(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The settings for all pods of a fleet, as users write them.
    `secret`: the name of the Secret with API keys.

    `context`, `namespace`: those of the cluster; "": as in the kubeconfig.
    """

    image: str
    command: tuple[str, ...] = ("codeloop", "fleet", "work")
    secret: str = ""
    service_account: str = ""
    cpu: str = ""
    memory: str = ""
    push: bool = False
    context: str = ""
    namespace: str = ""


def read_pod_settings(file: Path) -> PodSettings:
    """Read settings in YAML or JSON. Raises UsageProblem."""
    import yaml

    try:
        return msgspec.convert(yaml.safe_load(file.read_text()), PodSettings)
    except OSError as error:
        raise UsageProblem(
            f"The settings of pods can't be read from {file}: {error.strerror}."
        ) from error
    except (ValueError, yaml.YAMLError) as error:
        raise UsageProblem(
            f"{file} does not describe pods: {error}. docs/fleet.md shows one that does."
        ) from error


def make_job_name(fleet: str, job_id: str) -> str:
    """Return the name of the Job for a job."""
    # The same job has the same name, so the API refuses a second Job for it. Names have up to 63
    # characters: a-z, 0-9 and hyphens.
    stem = re.sub(r"[^a-z0-9]+", "-", job_id.lower()).strip("-")[:30].strip("-")
    digest = hashlib.sha256(f"{fleet}/{job_id}".encode()).hexdigest()[:12]
    return f"codeloop-{stem}-{digest}" if stem else f"codeloop-{digest}"


def make_manifest(
    fleet: str, order: PodOrder, settings: PodSettings, seconds: float | None
) -> JSON:
    """Return the manifest for a job of the fleet with the identity `fleet`.

    `seconds`: the time limit of the agent, to which the pod's start is added; None: there is none.
    Raises CodeloopError for a job that no pod can do,
    such as one with a repository on this machine.
    """
    job = order.job
    if "://" not in job.repository and "@" not in job.repository:
        raise CodeloopError(
            f"A pod can't clone {job.repository}, a path of this machine. Give the repository's address."
        )
    # Linux refuses an environment variable of 128 KiB or more.
    order_text = msgspec.json.encode(order).decode()
    if len(order_text.encode()) > FLEET_ENVIRONMENT.value:
        raise CodeloopError(
            f"The job is longer than {FLEET_ENVIRONMENT.value:,} bytes. Put the text into the repository."
        )
    labels = {"app.kubernetes.io/managed-by": "codeloop", FLEET_LABEL: fleet}
    requests = {
        name: amount
        for name, amount in (("cpu", settings.cpu), ("memory", settings.memory))
        if amount
    }
    # A CPU limit would only slow the pod down; without a memory limit it could use
    # up the memory of its node.
    limits = {"memory": settings.memory} if settings.memory else {}
    container: JSON = {
        "name": "codeloop",
        "image": settings.image,
        "command": list(settings.command),
        "env": [{"name": ORDER_VARIABLE, "value": order_text}],
        "resources": {"requests": requests, "limits": limits} if requests else {},
    }
    if settings.secret:
        container["envFrom"] = [{"secretRef": {"name": settings.secret}}]
    pod: JSON = {
        # The fleet decides about another attempt, not the cluster: see also backoffLimit.
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(FLEET_POD_END.seconds),
        # Without an account of its own, the agent gets no token of the cluster.
        "automountServiceAccountToken": bool(settings.service_account),
        "containers": [container],
    }
    if settings.service_account:
        pod["serviceAccountName"] = settings.service_account
    deadline_seconds = seconds + FLEET_POD_START.seconds if seconds else FLEET_POD_TIME.seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": make_job_name(fleet, job.id),
            "labels": labels,
            "annotations": {"codeloop/job": job.id, "codeloop/repository": job.repository},
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": int(deadline_seconds),
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
