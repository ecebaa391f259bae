"""`codeloop fleet work`: does the job of the pod in which it runs.
The result goes to the log of the pod.
"""

import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import FLEET_BUNDLE
from codeloop_automation.fleet.driver import FleetStopped, JobTask
from codeloop_automation.fleet.git import run_git
from codeloop_automation.fleet.job_attempt import INTERRUPTED_EXIT_CODE, JobAttempt
from codeloop_automation.fleet.kubernetes.manifest import ORDER_VARIABLE, PodOrder
from codeloop_automation.fleet.local_driver import LocalDriver


def run_pod_order(text: str, is_stopping: Callable[[], bool]) -> JSON:
    """Do the job of an order, given as JSON. Return the result,
    with the commits as a bundle unless they were pushed.

    Raises UsageProblem for an invalid order.
    """
    try:
        order = msgspec.json.decode(text, type=PodOrder)
    except msgspec.DecodeError as error:
        raise UsageProblem(
            f"{ORDER_VARIABLE} does not hold a job: {error}. `codeloop fleet run` sets it."
        ) from error
    with temporary_folder("codeloop-fleet-") as folder:
        task = JobTask(job=order.job, attempt=1, folder=folder / "attempt", flags=order.flags)
        attempt = JobAttempt(folder, LocalDriver(), task, start_commit=order.base)
        try:
            result = attempt.run(record_child=lambda _child: None, is_stopping=is_stopping)
            result["base"] = order.base
            if result.get("commit", order.base) != order.base:
                _transfer_commits(folder / "jobs" / order.job.id / "work", order, result)
        except FleetStopped:
            return {
                "reason": "error",
                "exitCode": INTERRUPTED_EXIT_CODE,
                "message": "It was told to end.",
            }
        except (CodeloopError, OSError) as error:
            return {"reason": "error", "exitCode": 1, "message": str(error)}
    # The coordinator makes the diff from the commits.
    result.pop("diff", None)
    return result


def _transfer_commits(tree: Path, order: PodOrder, result: JSON) -> None:
    """Push the branch with the commits, or put a bundle of them into the result."""
    branch, git = f"codeloop/{order.job.id}", partial(run_git, order.job.repository, tree=tree)
    if order.push:
        # --force: an earlier pod of the same job may have pushed.
        git("push", "--quiet", "--force", order.job.repository, f"HEAD:refs/heads/{branch}")
        return
    file = tree.parent / "bundle"
    git("bundle", "create", "--quiet", str(file), f"refs/heads/{branch}", f"^{order.base}")
    if file.stat().st_size > FLEET_BUNDLE.value:
        raise CodeloopError(
            f"The changes are larger than {FLEET_BUNDLE.value:,} bytes. Set `push` in the file of --pods."
        )
    result["bundle"] = base64.b64encode(file.read_bytes()).decode()
