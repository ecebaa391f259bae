"""The client for REST APIs of hosts: repeats requests when that is safe, follows pages,
and explains failures.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from codeloop.kit.text.terminal_text import one_line
from codeloop.net.client import OriginClient
from codeloop.net.errors import NetworkError
from codeloop.net.wait_hints import read_wait
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json
from codeloop_automation.bounds import (
    CI_ANSWER,
    CI_PAGES,
    CI_RESPONSE,
    CI_RETRY,
    CI_RETRY_MOST,
    CI_TRIES,
)
from codeloop_automation.ci.hosts.host import HostProblem
from codeloop_automation.ci.json_fields import get_list, get_text, to_list, to_object

Resource = TypeVar("Resource")

# In the header `link`: `<https://api.github.com/user/repos?page=2>; rel="next", <...>; rel="last"`.
_NEXT_LINK = r'<([^>]*)>\s*;\s*rel="next"'
# After a refusal for too many requests that does not say how long to wait: the shortest
# period over which hosts count.
_RATE_LIMIT_PERIOD_SECONDS = 60.0
# An error shows this much of a host's error text.
_MAX_DETAIL_CHARACTERS = 300
# These requests can be sent twice without harm. That holds for PATCH because codeloop
# only sets whole fields with it.
_IDEMPOTENT_METHODS = frozenset({"GET", "PUT", "PATCH", "DELETE"})


class UncertainRequest(HostProblem):
    """A request that must not be sent twice may or may not have been carried out."""


class HostAnswer(NamedTuple):
    """An answer of the host: status, headers with lower-case names,
    and the JSON of the body (None if it is empty).
    """

    status: int
    headers: Mapping[str, str]
    body: Any


class RestApi:
    """The REST API below `base_url`. `advice`: for a status such as 401,
    a sentence that says what to do about it.
    """

    def __init__(
        self, name: str, base_url: str, headers: dict[str, str], advice: Mapping[int, str]
    ) -> None:
        self._name = name
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._advice = advice
        self._http = OriginClient(self._base_url, CI_ANSWER.seconds, CI_ANSWER.seconds)

    async def get(self, path: str, **query: Any) -> Any:
        """Return the JSON at a path. Raises HostProblem."""
        return (await self._send("GET", _append_query(path, query), None)).body

    async def list_all(self, path: str, **query: Any) -> list[JSON]:
        """Return the rows of a list, of at most CI_PAGES pages, in the order of the host.
        Raises HostProblem.
        """
        rows: list[JSON] = []
        next_path: str | None = _append_query(path, {**query, "per_page": 100})
        for _ in range(CI_PAGES.value):
            answer = await self._send("GET", next_path, None)
            body: object = answer.body
            if not isinstance(body, list):
                raise HostProblem(
                    f"{self._name} answered {path} with something that is not a list.",
                    answer.status,
                )
            rows += to_list(body)
            next_path = self._read_next_page(answer)
            if next_path is None:
                break
        return rows

    async def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Send JSON, and return the JSON of the answer. Raises HostProblem;
        for POST also UncertainRequest.
        """
        return (await self._send(method, path, body)).body

    async def delete(self, path: str) -> None:
        """Delete the resource at a path, if it exists. Raises HostProblem."""
        try:
            await self._send("DELETE", path, None)
        except HostProblem as problem:
            if problem.status != 404:
                raise

    async def create_once(
        self,
        find: Callable[[], Awaitable[Resource | None]],
        create: Callable[[], Awaitable[Resource]],
    ) -> Resource:
        """Return the object that `find` finds, else create it. Raises HostProblem.

        When the answer to the creation is lost, `find` looks again before the next try,
        so nothing is created twice.
        """
        for attempt in range(CI_TRIES.value):
            if (existing := await find()) is not None:
                return existing
            try:
                return await create()
            except UncertainRequest:
                if attempt + 1 == CI_TRIES.value:
                    raise
                await asyncio.sleep(_compute_retry_delay(attempt))
        raise HostProblem(f"{self._name} could not be reached.")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> HostAnswer:
        for attempt in range(CI_TRIES.value):
            is_last = attempt + 1 == CI_TRIES.value
            try:
                answer = await self._exchange(method, path, body)
            except NetworkError as error:
                # With these errors, no byte of the request has reached the host.
                is_unsent = error.kind in {
                    "connect",
                    "refused",
                    "connect-timeout",
                    "proxy",
                    "offline",
                    "certificate",
                }
                problem = f"{self._name} can't be reached ({error.kind}{f': {error}' if str(error) else ''})."
                if method not in _IDEMPOTENT_METHODS and not is_unsent:
                    raise UncertainRequest(problem) from None
                if is_last or error.kind in {"offline", "certificate"}:
                    raise HostProblem(f"{problem} Start the job again when it is back.") from None
                await asyncio.sleep(_compute_retry_delay(attempt))
                continue
            if answer.status < 300:
                return answer
            # Redirects are not followed: the token would go to an address that
            # the user did not name.
            if answer.status < 400:
                response = (
                    f"{self._name} answered {method} {path.partition('?')[0]} with {answer.status}"
                )
                raise HostProblem(
                    f"{response}: it has moved. Check the repository's name and address.",
                    answer.status,
                )
            wait = _read_rate_limit_delay(answer)
            if wait is None and answer.status >= 500:
                if method not in _IDEMPOTENT_METHODS:
                    raise UncertainRequest(
                        self._describe_failure(method, path, answer), answer.status
                    )
                wait = _compute_retry_delay(attempt)
            if wait is None or is_last or wait > CI_RETRY_MOST.seconds:
                raise HostProblem(self._describe_failure(method, path, answer), answer.status)
            await asyncio.sleep(wait)
        raise HostProblem(f"{self._name} could not be reached.")

    async def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None) -> HostAnswer:
        headers, content = dict(self._headers), b""
        if body is not None:
            content = msgspec.json.encode(body)
            headers["content-type"] = "application/json"
        if method not in _IDEMPOTENT_METHODS:
            # If a kept connection turns out to be closed,
            # nobody can tell whether the request was carried out.
            await self._http.aclose()
        response = await self._http.request(method, path, headers, content)
        try:
            text = bytearray()
            while data := await response.read(CI_ANSWER.seconds):
                text += data
                if len(text) > CI_RESPONSE.value:
                    raise HostProblem(
                        f"{self._name} answered with more than {CI_RESPONSE.value:,} bytes."
                    )
        finally:
            response.close()
        try:
            return HostAnswer(
                response.status,
                response.headers,
                decode_json(bytes(text)) if text.strip() else None,
            )
        except DECODE_ERRORS:
            if response.status < 400:
                raise HostProblem(
                    f"{self._name} answered {path} with something that is not JSON."
                ) from None
            # A proxy in front of the host may explain an error in HTML.
            return HostAnswer(response.status, response.headers, None)

    def _read_next_page(self, answer: HostAnswer) -> str | None:
        """Return the path of the next page; None after the last.
        Raises HostProblem for a page on another server.
        """
        match = re.search(_NEXT_LINK, answer.headers.get("link", ""))
        if match is None:
            return None
        # Another server would get the token.
        if not match[1].startswith(f"{self._base_url}/"):
            raise HostProblem(
                f"{self._name} names a next page on another server: {one_line(match[1], _MAX_DETAIL_CHARACTERS)}"
            )
        return match[1].removeprefix(self._base_url)

    def _describe_failure(self, method: str, path: str, answer: HostAnswer) -> str:
        message = _read_error(answer.body)
        advice = self._advice.get(
            answer.status, "Start the job again later." if answer.status >= 500 else ""
        )
        response = f"{self._name} answered {method} {path.partition('?')[0]} with {answer.status}"
        # A host's message may itself end with a full stop.
        return f"{response}{f': {message}' if message else ''}. {advice}".rstrip().replace(
            "..", "."
        )


def _append_query(path: str, query: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _compute_retry_delay(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt (from 0), which double each time."""
    return min(CI_RETRY.seconds * 2**attempt, CI_RETRY_MOST.seconds)


def _read_rate_limit_delay(answer: HostAnswer) -> float | None:
    """Return how many seconds the host asks to wait because of a rate limit;
    None for another answer.
    """
    # GitHub answers 403 for its rate limits, too, and names the end of the wait by one of two
    # headers. GitLab's header has no `x-`.
    if answer.status not in {403, 429}:
        return None
    wait = read_wait(answer.headers, time.time(), is_limited=answer.status == 429)
    if wait is not None:
        # Moments are in whole seconds of the host's clock, hence one more.
        return wait + 1.0 if wait else 0.0
    return _RATE_LIMIT_PERIOD_SECONDS if answer.status == 429 else None


def _read_error(answer_body: Any) -> str:
    """Return the host's error message as one line."""
    # GitHub: {"message": TEXT, "errors": [{"message": TEXT} or {"field": NAME, "code": WORD} or
    # TEXT]}. GitLab: {"message": TEXT or an object} or {"error": TEXT}.
    body = to_object(answer_body)
    texts = [str(body.get("message") or body.get("error") or "")]
    for each in get_list(body, "errors"):
        if isinstance(each, str):
            texts.append(each)
            continue
        error = to_object(each)
        field_problem = f"{get_text(error, 'field')} {get_text(error, 'code')}".strip()
        texts.append(get_text(error, "message") or field_problem)
    return one_line("; ".join(text for text in texts if text), _MAX_DETAIL_CHARACTERS)
