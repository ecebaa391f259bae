"""Knows how each Job of a fleet stands, by one list and one watch for all; and runs the requests of its threads."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from codeloop.automation.fleet.driver import Stopped
from codeloop.automation.fleet.kubernetes.api import ApiProblem, KubernetesApi
from codeloop.automation.fleet.kubernetes.manifest import FLEET_LABEL
from codeloop.schema.bounds.automation import FLEET_API_RETRY_MOST, FLEET_LOOK
from codeloop.schema.wire import JSON

Given = TypeVar("Given")
_LAST = 1.0  # seconds that a request may take on when the fleet is stopped: what it creates has to be deleted


class JobWatcher:
    """See the module. Jobs are known by their uid: one of the same name that is created later is another one."""

    def __init__(self, api: KubernetesApi, fleet: str) -> None:
        self._api = api
        self._selector = f"{FLEET_LABEL}={fleet}"
        self._loop = asyncio.new_event_loop()
        self._jobs: dict[str, JSON] = {}
        self._gone: set[str] = set()
        self._problem: ApiProblem | None = None
        self._task = self._loop.create_task(self._follow())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch; the Jobs stay as they are."""
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def find(self, uid: str) -> JSON | None:
        """Return a Job as it was last seen; None: not yet. Raises ApiProblem: Jobs can't be watched."""
        if self._problem is not None:
            raise self._problem
        return self._jobs.get(uid)

    def is_gone(self, uid: str) -> bool:
        """Return whether a Job that was there is there no more."""
        return uid in self._gone

    def call(self, work: Coroutine[Any, Any, Given], is_stopping: Callable[[], bool]) -> Given:
        """Carry out a request for a thread and return its answer. Raises ApiProblem, Stopped."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        until = float("inf")
        while True:
            try:
                return future.result(FLEET_LOOK.seconds)
            except TimeoutError:
                if until == float("inf") and is_stopping():
                    until = time.monotonic() + _LAST
                if time.monotonic() > until:
                    future.cancel()
                    raise Stopped("The fleet was stopped.") from None
            except CancelledError:
                raise Stopped("The fleet was stopped.") from None

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.run_until_complete(self._api.aclose())
            self._loop.close()

    async def _follow(self) -> None:
        version, wait = "", FLEET_LOOK.seconds
        while True:
            try:
                if not version:
                    version = await self._list()
                    self._problem = None
                async for event in self._api.watch_jobs(self._selector, version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._note(event)
                    wait = FLEET_LOOK.seconds
            except ApiProblem as problem:
                if problem.status == 410:  # the changes since then are forgotten
                    version = ""
                elif problem.status in {400, 401, 403, 404, 422}:
                    self._problem = problem  # of the user's making, so jobs fail; the next one looks again
            await asyncio.sleep(wait)
            wait = min(wait * 2, FLEET_API_RETRY_MOST.seconds)

    async def _list(self) -> str:
        jobs, version = await self._api.list_jobs(self._selector)
        found = {job["metadata"]["uid"]: job for job in jobs}
        self._gone |= self._jobs.keys() - found.keys()
        self._jobs = found
        return version

    def _note(self, event: JSON) -> None:
        uid = event["object"]["metadata"].get("uid")
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._jobs[uid] = event["object"]
            case "DELETED":
                self._jobs.pop(uid, None)
                self._gone.add(uid)
            case _:  # BOOKMARK: only the version is new
                return
