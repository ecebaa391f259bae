"""Watches all Jobs of a fleet with one request. Its event loop also makes the other
requests of the fleet's threads.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from codeloop.automation.fleet.driver import FleetStopped
from codeloop.automation.fleet.kubernetes.api import ApiProblem, KubernetesApi
from codeloop.automation.fleet.kubernetes.manifest import FLEET_LABEL
from codeloop.schema.bounds.automation import FLEET_API_RETRY_MOST, FLEET_API_STOP, FLEET_POLL
from codeloop.schema.wire import JSON

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
