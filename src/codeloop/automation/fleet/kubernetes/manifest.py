"""One job of a fleet as a Job of `batch/v1`, and what its pod is told."""

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
_STOP = 5  # seconds that a pod gets to end by itself


class PodOrder(Struct, frozen=True):
    """What a pod is to do: a job from the commit `base` on. `flags`: of `codeloop run`; `push`: its branch, too."""

    job: FleetJob
    flags: Sequence[str]
    base: str
    push: bool


class PodSettings(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What all pods of a fleet have, as a user writes it. `secret`: the name of the Secret with keys of models.

    `context`, `namespace`: where they run; "": those of the kubeconfig.
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
    """Return the name of a job's Job: the same each time, so that a second one of it can't be created."""
    stem = re.sub(r"[^a-z0-9]+", "-", job_id.lower()).strip("-")[:30].strip("-")
    mark = hashlib.sha256(f"{fleet}/{job_id}".encode()).hexdigest()[:12]
    return f"codeloop-{stem}-{mark}" if stem else f"codeloop-{mark}"


def make_manifest(fleet: str, order: PodOrder, settings: PodSettings, seconds: float | None) -> JSON:
    """Return the Job for a job of the fleet with the identity `fleet`. Raises CodeloopError: it can't be one.

    `seconds`: what the agent may take; the pod may take longer.
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
    limits = {name: amount for name, amount in amounts.items() if name == "memory"}  # a share of CPU needs no end
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
        "terminationGracePeriodSeconds": _STOP,
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
