"""The messages between a driver and its worker on another machine: a line of JSON,
followed by a git bundle.

The driver writes one Order with its bundle to the worker's stdin, and then a byte every
FLEET_HEARTBEAT. The worker writes one Reply with its bundle to stdout. Lines before the reply come
from the shell of the other machine.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.schema.wire import JSON
from codeloop_automation.fleet.driver import DriverLost, JobTask
from codeloop_automation.fleet.git import run_git
from codeloop_automation.fleet.job_attempt import INTERRUPTED_EXIT_CODE
from codeloop_automation.fleet.jobs import FleetJob


class Order(Struct, frozen=True):
    """A job that starts at `commit`. `flags`: flags of `codeloop run`.
    `environment`: variables for the agent.

    `size`: the bytes of the bundle to clone; 0: the worker clones the job's repository,
    which is a URL.
    """

    job: FleetJob
    commit: str
    flags: Sequence[str]
    environment: dict[str, str]
    size: int


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a job. `size`: the bytes of the bundle with its commits; 0: there are none."""

    result: JSON
    size: int


def pack_order(task: JobTask, environment: Mapping[str, str]) -> tuple[bytes, Path]:
    """Return the line of a job's order, and the path of its bundle,
    made only for a repository on this machine.
    """
    bundle = task.folder / "sent"
    repository, commit = task.job.repository, _run_git(task, "rev-parse", "HEAD").strip()
    if Path(repository).is_absolute() or repository.startswith("file:"):
        _run_git(
            task, "bundle", "create", "--quiet", str(bundle), f"refs/heads/codeloop/{task.job.id}"
        )
    size = bundle.stat().st_size if bundle.exists() else 0
    order = Order(
        job=task.job, commit=commit, flags=task.flags, environment=dict(environment), size=size
    )
    return msgspec.json.encode(order) + b"\n", bundle


def apply_reply(task: JobTask, output_file: Path, driver_name: str) -> JSON | None:
    """Return the result in a worker's output, and fetch its commits into the clone;
    None: the output has no result.

    `driver_name`: the driver's name for errors. Raises DriverLost if the worker was interrupted.
    """
    with output_file.open("rb") as stream:
        # `forbid_unknown_fields` keeps a line of JSON that the shell printed from
        # being taken for the reply.
        for line in stream:
            with suppress(msgspec.DecodeError):
                reply = msgspec.json.decode(line, type=Reply)
                break
        else:
            return None
        data = stream.read()
    # A cut bundle means that the connection broke;
    # an interrupted agent, that somebody stopped the worker.
    if len(data) != reply.size or reply.result.get("exitCode") == INTERRUPTED_EXIT_CODE:
        raise DriverLost(f"{driver_name} was interrupted.")
    if data:
        bundle = task.folder / "received"
        bundle.write_bytes(data)
        _run_git(
            task, "fetch", "--quiet", "--no-tags", str(bundle), f"refs/heads/codeloop/{task.job.id}"
        )
        _run_git(task, "reset", "--quiet", "--hard", "FETCH_HEAD")
        bundle.unlink()
    return reply.result


def _run_git(task: JobTask, *arguments: str) -> str:
    return run_git(task.job.repository, *arguments, tree=task.tree)
