"""Makes the manifest of a Kubernetes Job for a job of a fleet, with the order for its pod."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.automation.fleet.jobs import FleetJob
from codeloop.schema.bounds.automation import FLEET_ENVIRONMENT, FLEET_POD_START, FLEET_POD_TIME
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON

VARIABLE = "CODELOOP_FLEET_JOB"
FLEET_LABEL = "codeloop/fleet"
_STOP_SECONDS = 5
"""How long a pod that is to end may take, before it is killed."""


class PodOrder(Struct, frozen=True):
    """The order for a pod: a job, to start at the commit `base`. `flags`: of `codeloop run`; `push`: push it, too."""

    job: FleetJob
    flags: Sequence[str]
    base: str
    push: bool


class PodSettings(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The settings of all pods of a fleet, as users write them. `secret`: the name of the Secret with model keys.

    `context`, `namespace`: of the cluster; "": those of the kubeconfig.
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


def read_settings(file: Path) -> PodSettings:
    """Read settings in YAML or JSON. Raises UsageProblem."""
    import yaml

    try:
        return msgspec.convert(yaml.safe_load(file.read_text()), PodSettings)
    except OSError as error:
        raise UsageProblem(f"The settings of pods can't be read from {file}: {error.strerror}.") from error
    except (ValueError, yaml.YAMLError) as error:
        raise UsageProblem(f"{file} does not describe pods: {error}. docs/fleet.md shows one that does.") from error


def make_name(fleet: str, job_id: str) -> str:
    """Return the name of the Job for a job. It is always the same, so that no second Job can be created."""
    stem = re.sub(r"[^a-z0-9]+", "-", job_id.lower()).strip("-")[:30].strip("-")
    mark = hashlib.sha256(f"{fleet}/{job_id}".encode()).hexdigest()[:12]
    return f"codeloop-{stem}-{mark}" if stem else f"codeloop-{mark}"


def make_manifest(fleet: str, order: PodOrder, settings: PodSettings, seconds: float | None) -> JSON:
    """Return the manifest for a job of the fleet with the identity `fleet`. Raises CodeloopError for an unfit job.

    `seconds`: the time limit of the agent, to which the pod's start is added; None: there is none.
    """
    job = order.job
    if "://" not in job.repository and "@" not in job.repository:
        raise CodeloopError(
            f"A pod can't clone {job.repository}, a path of this machine. Give the repository's address."
        )
    text = msgspec.json.encode(order).decode()
    if len(text.encode()) > FLEET_ENVIRONMENT.value:
        raise CodeloopError(
            f"The job is longer than {FLEET_ENVIRONMENT.value:,} bytes. Put the text into the repository."
        )
    labels = {"app.kubernetes.io/managed-by": "codeloop", FLEET_LABEL: fleet}
    amounts = {name: amount for name, amount in (("cpu", settings.cpu), ("memory", settings.memory)) if amount}
    limits = {
        name: amount for name, amount in amounts.items() if name == "memory"
    }  # a CPU limit would only slow the pod down
    container: JSON = {
        "name": "codeloop",
        "image": settings.image,
        "command": list(settings.command),
        "env": [{"name": VARIABLE, "value": text}],
        "resources": {"requests": amounts, "limits": limits} if amounts else {},
    }
    if settings.secret:
        container["envFrom"] = [{"secretRef": {"name": settings.secret}}]
    pod: JSON = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _STOP_SECONDS,
        "automountServiceAccountToken": bool(settings.service_account),
        "containers": [container],
    }
    if settings.service_account:
        pod["serviceAccountName"] = settings.service_account
    most = seconds + FLEET_POD_START.seconds if seconds else FLEET_POD_TIME.seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": make_name(fleet, job.id),
            "labels": labels,
            "annotations": {"codeloop/job": job.id, "codeloop/repository": job.repository},
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": int(most),
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
