"""The driver for a Kubernetes cluster: creates a Job for each job, waits for its end,
and deletes it afterwards.
"""

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import (
    FLEET_API_RETRY_MOST,
    FLEET_API_STOP,
    FLEET_POD_CHECK,
    FLEET_POD_STOP,
    FLEET_POLL,
)
from codeloop_automation.fleet.driver import DriverLost, FleetStopped, JobTask, check_result
from codeloop_automation.fleet.git import run_git
from codeloop_automation.fleet.job_attempt import INTERRUPTED_EXIT_CODE
from codeloop_automation.fleet.kubernetes.api import ApiProblem, KubernetesApi
from codeloop_automation.fleet.kubernetes.cluster_access import ClusterAccess
from codeloop_automation.fleet.kubernetes.manifest import (
    FLEET_LABEL,
    PodOrder,
    PodSettings,
    make_job_name,
    make_manifest,
)

Response = TypeVar("Response")


class JobWatcher:
    """The states of a fleet's Jobs, kept up to date in a thread with an event loop.

    They are kept by uid: a Job that is created again has the same name but another uid.
    """

    def __init__(self, api: KubernetesApi, fleet: str) -> None:
        self._api = api
        self._selector = f"{FLEET_LABEL}={fleet}"
        self._loop = asyncio.new_event_loop()
        self._jobs: dict[str, JSON] = {}
        self._deleted_uids: set[str] = set()
        self._problem: ApiProblem | None = None
        self._task = self._loop.create_task(self._follow_jobs())
        self._thread = threading.Thread(target=self._run_loop, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch; the Jobs stay as they are."""
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def find_job(self, uid: str) -> JSON | None:
        """Return the last known state of a Job; None if it was not seen.
        Raises ApiProblem if Jobs can't be watched.
        """
        if self._problem is not None:
            raise self._problem
        return self._jobs.get(uid)

    def is_deleted(self, uid: str) -> bool:
        """Return whether a Job was deleted."""
        return uid in self._deleted_uids

    def run_request(
        self, request: Coroutine[Any, Any, Response], is_stopping: Callable[[], bool]
    ) -> Response:
        """Make a request on the event loop, and wait for its answer.
        Raises ApiProblem and FleetStopped.
        """
        future = asyncio.run_coroutine_threadsafe(request, self._loop)
        deadline: float | None = None
        while True:
            try:
                return future.result(FLEET_POLL.seconds)
            except TimeoutError:
                if deadline is None and is_stopping():
                    # A request that creates a Job may be under way.
                    # It gets this time, so that the driver deletes
                    # the Job after it was created.
                    deadline = time.monotonic() + FLEET_API_STOP.seconds
                if deadline is not None and time.monotonic() > deadline:
                    future.cancel()
                    raise FleetStopped("The fleet was stopped.") from None
            # `close` has ended the event loop.
            except CancelledError:
                raise FleetStopped("The fleet was stopped.") from None

    def _run_loop(self) -> None:
        """Run the event loop until the watch is cancelled. This is the body of the thread."""
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.run_until_complete(self._api.aclose())
            self._loop.close()

    async def _follow_jobs(self) -> None:
        """Keep the states up to date: list all Jobs, then watch changes,
        and list again when changes were missed.
        """
        version, wait = "", FLEET_POLL.seconds
        while True:
            try:
                if not version:
                    version = await self._list_jobs()
                    self._problem = None
                async for event in self._api.watch_jobs(self._selector, version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._apply_event(event)
                    wait = FLEET_POLL.seconds
            except ApiProblem as problem:
                # 410: the API no longer has the changes since this version.
                if problem.status == 410:
                    version = ""
                elif problem.status in {400, 401, 403, 404, 422}:
                    # A wrong setup, so jobs fail now; a list that succeeds later clears it.
                    self._problem, version = problem, ""
            await asyncio.sleep(wait)
            wait = min(wait * 2, FLEET_API_RETRY_MOST.seconds)

    async def _list_jobs(self) -> str:
        """Read the states of all Jobs, and return the resource version to watch changes from."""
        jobs, version = await self._api.list_jobs(self._selector)
        found = {job["metadata"]["uid"]: job for job in jobs}
        self._deleted_uids |= self._jobs.keys() - found.keys()
        self._jobs = found
        return version

    def _apply_event(self, event: JSON) -> None:
        uid = event["object"]["metadata"].get("uid")
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._jobs[uid] = event["object"]
            case "DELETED":
                self._jobs.pop(uid, None)
                self._deleted_uids.add(uid)
            # BOOKMARK: only the resource version is new.
            case _:
                return


_RETRY_ADVICE = "`codeloop fleet retry` lets it be done again."


class KubernetesDriver:
    """Runs agents in pods of a cluster. `fleet`: the identity of the fleet,
    unique in the cluster.
    """

    name = "kubernetes"

    def __init__(
        self, access: ClusterAccess, fleet: str, settings: PodSettings, seconds: float | None
    ) -> None:
        """Watch the fleet's Jobs. `seconds`: the time limit of each agent; None: there is none."""
        self._fleet = fleet
        self._seconds = seconds
        self._settings = settings
        self._api = KubernetesApi(access)
        self._watcher = JobWatcher(self._api, fleet)

    def run(
        self, task: JobTask, record_child: Callable[[int], None], is_stopping: Callable[[], bool]
    ) -> JSON:
        """See Driver. If an earlier coordinator has created the Job, follow that one."""
        # No process of this machine works on the job.
        del record_child
        base = run_git(task.job.repository, "rev-parse", "HEAD", tree=task.tree).strip()
        order = PodOrder(job=task.job, flags=task.flags, base=base, push=self._settings.push)
        manifest = make_manifest(self._fleet, order, self._settings, self._seconds)
        name = make_job_name(self._fleet, task.job.id)
        try:
            result = self._follow_job(name, manifest, is_stopping)
        except FleetStopped:
            deadline = time.monotonic() + FLEET_POD_STOP.seconds
            with suppress(ApiProblem, FleetStopped):
                self._watcher.run_request(
                    self._api.delete_job(name), lambda: time.monotonic() > deadline
                )
            raise
        except ApiProblem as problem:
            raise _make_error(problem) from None
        try:
            _fetch_commits(task, result)
        except CodeloopError:
            # Otherwise the next attempt would follow the same Job, and fail again.
            self.remove_remains(task.job.id)
            raise
        return check_result(result)

    def remove_remains(self, job_id: str) -> None:
        """See Driver."""
        # A Job that stays would be followed, and its old result taken,
        # when the job is to be done again.
        try:
            self._watcher.run_request(
                self._api.delete_job(make_job_name(self._fleet, job_id)), lambda: False
            )
        except ApiProblem as problem:
            raise DriverLost(str(problem)) from None

    def end_remote_processes(self, job_id: str, attempt: int) -> None:
        """Do nothing: the Job continues, and the next attempt follows it."""

    def close(self) -> None:
        """End the watch and drop the connections; the Jobs stay as they are."""
        self._watcher.close()

    def _follow_job(self, name: str, manifest: JSON, is_stopping: Callable[[], bool]) -> JSON:
        """Create the Job, wait for its end, and return the result from its pod's log."""
        uid = self._create_job(name, manifest, is_stopping)
        # The watch may miss a change, and does not say why a pod does not start.
        # So the API is asked from time to time.
        next_check = time.monotonic() + FLEET_POD_CHECK.seconds
        while not is_stopping():
            job, is_deleted = self._watcher.find_job(uid), self._watcher.is_deleted(uid)
            if time.monotonic() > next_check:
                next_check = time.monotonic() + FLEET_POD_CHECK.seconds
                job = self._watcher.run_request(self._api.read_job(name), is_stopping)
                is_deleted = job is None or job["metadata"]["uid"] != uid
                if problem := self._watcher.run_request(
                    self._api.find_start_problem(name), is_stopping
                ):
                    return _make_failed_result(f"The pod can't start ({problem}).")
            if is_deleted:
                return _make_failed_result("Somebody deleted the job in the cluster.")
            end_condition = _find_end_condition(job) if job is not None else None
            if end_condition is not None:
                log = self._watcher.run_request(self._api.read_log(name), is_stopping)
                return _read_result(log, end_condition)
            time.sleep(FLEET_POLL.seconds)
        raise FleetStopped("The fleet was stopped.")

    def _create_job(self, name: str, manifest: JSON, is_stopping: Callable[[], bool]) -> str:
        """Create the Job unless it exists, and return its uid."""
        while not is_stopping():
            job = self._watcher.run_request(self._api.create_job(manifest), is_stopping)
            job = job or self._watcher.run_request(self._api.read_job(name), is_stopping)
            if job is not None and not job["metadata"].get("deletionTimestamp"):
                return job["metadata"]["uid"]
            # The existing Job is being deleted, which takes until its pod has ended.
            time.sleep(FLEET_POLL.seconds)
        raise FleetStopped("The fleet was stopped.")


def _find_end_condition(job: JSON) -> Mapping[str, str] | None:
    """Return the condition that says how a Job has ended; None: the Job has not ended."""
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in {"Complete", "Failed"} and condition["status"] == "True":
            return condition
    return None


def _read_result(log: Sequence[str] | None, end_condition: Mapping[str, str]) -> JSON:
    """Return the result that a pod wrote as JSON into its log;
    without one, an error that says how the Job ended.
    """
    for line in reversed(log or ()):
        with suppress(msgspec.DecodeError):
            result: JSON = msgspec.json.decode(line, type=dict[str, Any])
            if isinstance(result.get("exitCode"), int) and "reason" in result:
                if result["exitCode"] == INTERRUPTED_EXIT_CODE:
                    return _make_failed_result("The pod was told to end too early.")
                return result
    short_reason = end_condition.get("reason") or end_condition["type"]
    reason = f"{short_reason}: {end_condition.get('message') or 'no reason given'}"
    if end_condition.get("reason") == "DeadlineExceeded":
        return _make_failed_result(f"The job took too long ({reason}).")
    last_line = f" It last wrote: {log[-1]}" if log else ""
    return _make_failed_result(f"The pod ended without a result ({reason}).{last_line}")


def _make_failed_result(message: str) -> JSON:
    """Return the result of a job that failed, with the advice to retry it."""
    return {"reason": "error", "exitCode": 1, "message": f"{message} {_RETRY_ADVICE}"}


def _make_error(problem: ApiProblem) -> CodeloopError:
    """Return the error to raise for a problem of the API."""
    # A refused request would be refused again, so the job has failed.
    # Without an answer, the job waits for the API.
    return problem if 400 <= problem.status < 500 else DriverLost(str(problem))


def _fetch_commits(task: JobTask, result: JSON) -> None:
    """Fetch the commits of the pod into the clone: from the branch that it pushed,
    or from the bundle in its result.
    """
    if result.get("commit") in {None, result.get("base")}:
        return
    branch = f"codeloop/{task.job.id}"
    source = task.job.repository
    if bundle := result.get("bundle"):
        file = task.folder / "bundle"
        try:
            file.write_bytes(base64.b64decode(str(bundle)))
        except ValueError:
            raise CodeloopError("The pod sent commits that can't be read.") from None
        source = str(file)
    git = partial(run_git, task.job.repository, tree=task.tree)
    git("fetch", "--quiet", "--no-tags", source, f"refs/heads/{branch}")
    git("reset", "--quiet", "--hard", "FETCH_HEAD")
    # Somebody may have pushed to the branch between the pod and this fetch.
    if git("rev-parse", "HEAD").strip() != result["commit"]:
        raise CodeloopError(
            f"The branch {branch} of {task.job.repository} was moved since the job pushed it."
        )
