"""Watches all Jobs of a fleet with one request, and makes the API requests of the fleet's threads on its event loop."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from codeloop.automation.fleet.driver import Stopped
from codeloop.automation.fleet.kubernetes.api import ApiProblem, KubernetesApi
from codeloop.automation.fleet.kubernetes.manifest import FLEET_LABEL
from codeloop.schema.bounds.automation import FLEET_API_RETRY_MOST, FLEET_POLL
from codeloop.schema.wire import JSON

Given = TypeVar("Given")
_STOP_GRACE_SECONDS = 1.0
"""How long a request may still take when the fleet is stopped: a Job that it creates has to be deleted."""


class JobWatcher:
    """The states of a fleet's Jobs, by uid: a Job of the same name that is created later has another uid."""

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
        """Return the last known state of a Job; None: it was not seen. Raises ApiProblem if Jobs can't be watched."""
        if self._problem is not None:
            raise self._problem
        return self._jobs.get(uid)

    def is_gone(self, uid: str) -> bool:
        """Return whether a Job was deleted."""
        return uid in self._gone

    def call(self, work: Coroutine[Any, Any, Given], is_stopping: Callable[[], bool]) -> Given:
        """Make a request on the event loop, and wait for its answer. Raises ApiProblem, Stopped."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        until = float("inf")
        while True:
            try:
                return future.result(FLEET_POLL.seconds)
            except TimeoutError:
                if until == float("inf") and is_stopping():
                    until = time.monotonic() + _STOP_GRACE_SECONDS
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
        version, wait = "", FLEET_POLL.seconds
        while True:
            try:
                if not version:
                    version = await self._list()
                    self._problem = None
                async for event in self._api.watch_jobs(self._selector, version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._note(event)
                    wait = FLEET_POLL.seconds
            except ApiProblem as problem:
                if problem.status == 410:  # the API no longer has the changes since this version
                    version = ""
                elif problem.status in {400, 401, 403, 404, 422}:
                    self._problem = problem  # a wrong setup, so jobs fail; the next list may clear it
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
