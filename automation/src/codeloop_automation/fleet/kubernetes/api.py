"""A client for the part of the Kubernetes API that a fleet needs: Jobs,
and the logs of their pods.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import msgspec

from codeloop.net.client import HttpResponse, OriginClient
from codeloop.net.errors import NetworkError
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json
from codeloop_automation.bounds import (
    FLEET_API_ANSWER,
    FLEET_API_RESPONSE,
    FLEET_API_RETRY,
    FLEET_API_RETRY_MOST,
    FLEET_API_TRIES,
    FLEET_API_WATCH,
)
from codeloop_automation.fleet.kubernetes.cluster_access import ClusterAccess

_JOBS_PER_PAGE = 500
# The API refuses too many requests at once, such as those of a thousand jobs that end together.
_MAX_PARALLEL_REQUESTS = 32
# The result is the last line that codeloop prints, but other output may follow.
_LOG_TAIL_LINES = 50
# With these, a pod keeps waiting until the deadline of its Job.
_START_FAILURE_REASONS = {
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
}
_ADVICE_BY_STATUS = {
    401: "The cluster does not know the token or certificate: renew it in the kubeconfig.",
    403: "The account needs the verbs get, list, watch, create and delete on jobs, list on pods, get on pods/log.",
}


class ApiProblem(CodeloopError):
    """The API refused a request, or can't be reached. `status`: the HTTP status;
    0 if there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class KubernetesApi:
    """The API of one cluster, for one namespace. All calls must be made on the same event loop."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._jobs = f"/apis/batch/v1/namespaces/{access.namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{access.namespace}/pods"
        self._request_slots = asyncio.Semaphore(_MAX_PARALLEL_REQUESTS)
        self._http = OriginClient(
            access.url, FLEET_API_ANSWER.seconds, FLEET_API_ANSWER.seconds, access.tls
        )

    async def create_job(self, manifest: JSON) -> JSON | None:
        """Create a Job and return it; None: a Job of this name exists. Raises ApiProblem."""
        try:
            return await self._send("POST", self._jobs, manifest)
        except ApiProblem as problem:
            # 409 Conflict: the name is taken.
            if problem.status == 409:
                return None
            raise

    async def read_job(self, name: str) -> JSON | None:
        """Return a Job; None: there is no such Job. Raises ApiProblem."""
        try:
            return await self._send("GET", f"{self._jobs}/{name}")
        except ApiProblem as problem:
            if problem.status == 404:
                return None
            raise

    async def delete_job(self, name: str) -> None:
        """Delete a Job with its pods, if it exists. Raises ApiProblem."""
        # Without a propagation policy, the API deletes only the Job and leaves its pods.
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        try:
            await self._send("DELETE", f"{self._jobs}/{name}", options)
        except ApiProblem as problem:
            if problem.status != 404:
                raise

    async def list_jobs(self, selector: str) -> tuple[list[JSON], str]:
        """Return the Jobs with these labels, and the resource version to watch changes from.
        Raises ApiProblem.
        """
        while True:
            try:
                return await self._list_pages(selector)
            except ApiProblem as problem:
                # 410: the list expired between two pages.
                if problem.status != 410:
                    raise

    async def watch_jobs(self, selector: str, version: str) -> AsyncGenerator[JSON]:
        """Yield the changes after a resource version, until the API ends the answer.
        Raises ApiProblem.
        """
        seconds = int(FLEET_API_WATCH.seconds)
        query = {"labelSelector": selector, "watch": "true", "resourceVersion": version}
        # Bookmarks keep the resource version young while no Job changes.
        query |= {"allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        response = await self._open("GET", self._jobs, query)
        remainder = b""
        try:
            while data := await response.read(seconds + FLEET_API_ANSWER.seconds):
                # One JSON object a line; a piece of the answer may end within a line.
                *lines, remainder = (remainder + data).split(b"\n")
                for line in lines:
                    event: JSON = decode_json(line)
                    if event["type"] == "ERROR":
                        raise _make_problem(
                            int(event["object"].get("code") or 500), event["object"]
                        )
                    yield event
        except NetworkError as error:
            raise ApiProblem(f"The watch was cut ({error.kind}).") from None
        except DECODE_ERRORS:
            raise ApiProblem("The API sent a change that is not JSON.") from None
        finally:
            response.close()

    async def read_log(self, job: str) -> list[str] | None:
        """Return the last lines of the log of a Job's pod; None: the pod is gone;
        []: there is no log yet, or no more.

        Raises ApiProblem.
        """
        if (pod := await self._find_pod(job)) is None:
            return None
        path = f"{self._pods}/{pod['metadata']['name']}/log"
        query = {"container": "codeloop", "tailLines": str(_LOG_TAIL_LINES)}
        try:
            data = await self._fetch("GET", path, None, query)
        except ApiProblem as problem:
            # 400: the container never started. 404: the pod has just been removed.
            if problem.status in {400, 404}:
                return []
            raise
        return data.decode("utf-8", "replace").splitlines()

    async def find_start_problem(self, job: str) -> str:
        """Return why a Job's pod can't start; "" when no reason is known. Raises ApiProblem."""
        pod = await self._find_pod(job) or {}
        for container in pod.get("status", {}).get("containerStatuses") or ():
            waiting: JSON = container.get("state", {}).get("waiting") or {}
            if waiting.get("reason") in _START_FAILURE_REASONS:
                return f"{waiting['reason']}: {waiting.get('message') or 'no reason given'}"
        return ""

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _find_pod(self, job: str) -> JSON | None:
        """Return the newest pod of a Job; None if it has none."""
        pods = await self._send("GET", self._pods, query={"labelSelector": f"job-name={job}"})
        return max(
            pods["items"],
            key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""),
            default=None,
        )

    async def _list_pages(self, selector: str) -> tuple[list[JSON], str]:
        """Return the Jobs of all pages and the resource version of the list."""
        query = {"labelSelector": selector, "limit": str(_JOBS_PER_PAGE)}
        jobs: list[JSON] = []
        while True:
            page = await self._send("GET", self._jobs, query=query)
            jobs += page["items"]
            if not page["metadata"].get("continue"):
                return jobs, page["metadata"]["resourceVersion"]
            query["continue"] = page["metadata"]["continue"]

    async def _send(
        self,
        method: str,
        path: str,
        body: JSON | None = None,
        query: Mapping[str, str] | None = None,
    ) -> JSON:
        try:
            return decode_json(await self._fetch(method, path, body, query), dict[str, Any])
        except DECODE_ERRORS:
            raise ApiProblem(
                f"{self._access.url} answered with something that is not an object. Is it a cluster?"
            ) from None

    async def _fetch(
        self, method: str, path: str, body: JSON | None, query: Mapping[str, str] | None
    ) -> bytes:
        """Return the body of the answer; repeat the request while the API is unreachable or busy.
        Raises ApiProblem.
        """
        # Every request can be repeated: also a creation, since the manifest names the Job.
        wait = FLEET_API_RETRY.seconds
        for attempt in range(FLEET_API_TRIES.value):
            try:
                async with self._request_slots:
                    return await _read_body(await self._open(method, path, query, body))
            except ApiProblem as problem:
                is_last = attempt + 1 == FLEET_API_TRIES.value
                if is_last or (problem.status not in {0, 429} and problem.status < 500):
                    raise
            await asyncio.sleep(wait)
            wait = min(wait * 2, FLEET_API_RETRY_MOST.seconds)
        raise AssertionError("the last try returns or raises")

    async def _open(
        self, method: str, path: str, query: Mapping[str, str] | None, body: JSON | None = None
    ) -> HttpResponse:
        """Send a request, and return the response with its unread body.
        Raises ApiProblem for a status from 300.
        """
        headers = {"accept": "application/json"}
        if token := self._access.read_token():
            headers["authorization"] = f"Bearer {token}"
        if body is not None:
            headers["content-type"] = "application/json"
        content = msgspec.json.encode(body) if body is not None else b""
        address = f"{path}?{urlencode(query)}" if query else path
        try:
            response = await self._http.request(method, address, headers, content)
        except NetworkError as error:
            raise ApiProblem(
                f"{self._access.url} can't be reached ({error.kind}). {error}".strip()
            ) from None
        if response.status < 300:
            return response
        try:
            # The message of an error is in a JSON object, but a proxy may answer with HTML.
            error_body = await response.read_some(
                FLEET_API_RESPONSE.value, FLEET_API_ANSWER.seconds
            )
        finally:
            response.close()
        answer: JSON = {}
        with suppress(*DECODE_ERRORS):
            answer = decode_json(error_body, dict[str, Any])
        raise _make_problem(response.status, answer)


async def _read_body(response: HttpResponse) -> bytes:
    body = bytearray()
    try:
        while data := await response.read(FLEET_API_ANSWER.seconds):
            body += data
            if len(body) > FLEET_API_RESPONSE.value:
                # With this status, the request is not repeated: the next answer would be as long.
                raise ApiProblem(
                    f"An answer is longer than {FLEET_API_RESPONSE.value:,} bytes.", 413
                )
    except NetworkError as error:
        raise ApiProblem(f"An answer was cut ({error.kind}).") from None
    finally:
        response.close()
    return bytes(body)


def _make_problem(status: int, answer: JSON) -> ApiProblem:
    message = f"The Kubernetes API answered {status}: {answer.get('message') or 'no reason given'}"
    if status in _ADVICE_BY_STATUS:
        message = f"{message}. {_ADVICE_BY_STATUS[status]}"
    return ApiProblem(message, status)
