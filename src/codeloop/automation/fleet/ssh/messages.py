"""What a coordinator and its worker on another machine say to each other: a line of JSON, then bytes of git bundles.

The coordinator sends one Order and its bundle on the worker's stdin, then a byte every FLEET_BEAT. The worker answers
with one Reply and its bundle on stdout; lines before it are those of the other machine's shell.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.automation.fleet.attempt import INTERRUPTED
from codeloop.automation.fleet.driver import DriverLost, JobTask
from codeloop.automation.fleet.git import run_git
from codeloop.automation.fleet.jobs import FleetJob
from codeloop.schema.wire import JSON


class Order(Struct, frozen=True):
    """A job to do from `commit` on. `flags`: of `codeloop run`; `size`: bytes of the bundle that is to be cloned.

    0: the job's repository is an address to clone. `environment`: what the user wants the agent to have of theirs.
    """

    job: FleetJob
    commit: str
    flags: Sequence[str]
    environment: dict[str, str]
    size: int


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """What came of it. `size`: bytes of the bundle with its commits; 0: there are none."""

    result: JSON
    size: int


def pack_order(task: JobTask, environment: Mapping[str, str]) -> tuple[bytes, Path]:
    """Return the line of a job's order, and the file of its bundle, which is made for a repository on this machine."""
    bundle = task.folder / "sent"
    repository, base = task.job.repository, _git(task, "rev-parse", "HEAD").strip()
    if Path(repository).is_absolute() or repository.startswith("file:"):
        _git(task, "bundle", "create", "--quiet", str(bundle), f"refs/heads/codeloop/{task.job.id}")
    size = bundle.stat().st_size if bundle.exists() else 0
    return msgspec.json.encode(Order(task.job, base, task.flags, dict(environment), size)) + b"\n", bundle


def take_reply(task: JobTask, answer: Path, driver_name: str) -> JSON | None:
    """Return the result that a worker's output has, and bring its commits into the clone; None: it has none.

    `driver_name`: where the worker ran. Raises DriverLost: it was interrupted.
    """
    with answer.open("rb") as read:
        for line in read:
            with suppress(msgspec.DecodeError):
                reply = msgspec.json.decode(line, type=Reply)
                break
        else:
            return None
        data = read.read()
    if len(data) != reply.size or reply.result.get("exitCode") == INTERRUPTED:
        raise DriverLost(f"{driver_name} was interrupted.")
    if data:
        bundle = task.folder / "received"
        bundle.write_bytes(data)
        _git(task, "fetch", "--quiet", "--no-tags", str(bundle), f"refs/heads/codeloop/{task.job.id}")
        _git(task, "reset", "--quiet", "--hard", "FETCH_HEAD")
        bundle.unlink()
    return reply.result


def _git(task: JobTask, *arguments: str) -> str:
    return run_git(task.job.repository, "-C", str(task.tree), *arguments)
