"""Models behind Anthropic's messages protocol."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from codeloop.model.chat import Finished, ModelEvent, ModelInfo, ModelRequest, RetryScheduled
from codeloop.model.protocols.anthropic.request import AnthropicBody
from codeloop.model.protocols.anthropic.response import AnthropicReader
from codeloop.model.protocols.anthropic.thinking import has_thinking, is_refused, without_thinking
from codeloop.model.quirks import ANTHROPIC, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import JSON

VERSION = "2023-06-01"
THINKING_DROPPED = "The service refused the thinking of earlier answers, which is left out from here on."


class Route(NamedTuple):
    """Path and headers of the requests, and the first fields of their bodies."""

    path: str
    headers: dict[str, str]
    start: JSON


class AnthropicMessages(HttpModel):
    """One model at one endpoint; `/messages` is added to its base URL, which ends in /v1 for the official one."""

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = ANTHROPIC, route: Route | None = None
    ) -> None:
        if route is None:
            key = {"x-api-key": endpoint.key} if endpoint.key else {}
            route = Route("/messages", {"anthropic-version": VERSION, **key}, {"model": info.api_id or info.id})
        super().__init__(info, endpoint, quirks, route.path, route.headers)
        self._body = AnthropicBody(info, quirks, route.start)
        self._refusals: dict[str, int] = {}
        """By session: from how many messages at the start the thinking is dropped, since the service refused it."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and yield its events until Finished. Closing the generator drops the connection.

        When the service refuses the thinking of earlier answers, it is sent again without it, once.
        """
        request = without_thinking(request, self._refusals.get(request.session_id, 0))
        async with aclosing(self._exchange(request.headers, self._body.encode(request), AnthropicReader())) as events:
            async for event in events:
                if isinstance(event, Finished) and is_refused(event.error) and has_thinking(request):
                    break
                yield event
            else:
                return
        self._refusals[request.session_id] = len(request.messages)
        plain = without_thinking(request, len(request.messages))
        yield RetryScheduled(0, THINKING_DROPPED, now_ms())
        async with aclosing(self._exchange(plain.headers, self._body.encode(plain), AnthropicReader())) as events:
            async for event in events:
                yield event
