"""Models behind Anthropic's messages protocol: at Anthropic and services like it,
and Claude on Vertex AI.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple
from urllib.parse import quote

from codeloop.model.chat import Finished, ModelEvent, ModelInfo, ModelRequest, RetryScheduled
from codeloop.model.protocols.anthropic.request import AnthropicRequestEncoder
from codeloop.model.protocols.anthropic.response import AnthropicReader
from codeloop.model.protocols.anthropic.thinking import (
    has_thinking,
    is_thinking_refused,
    remove_thinking,
)
from codeloop.model.quirks import ANTHROPIC_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import JSON

# The first is a header and the second a field of the body; both are the newest versions that exist.
ANTHROPIC_VERSION = "2023-06-01"
VERTEX_VERSION = "vertex-2023-10-16"
THINKING_DROPPED_MESSAGE = (
    "The service refused the thinking of earlier answers, which is left out from here on."
)


class AnthropicRoute(NamedTuple):
    """The path and headers of requests, and the first fields of their bodies."""

    path: str
    headers: dict[str, str]
    leading_fields: JSON


class AnthropicMessages(HttpModel):
    """A model at an endpoint; `/messages` is added to the base URL,
    which ends in /v1 for Anthropic itself.
    """

    def __init__(
        self,
        info: ModelInfo,
        endpoint: Endpoint,
        quirks: Quirks = ANTHROPIC_QUIRKS,
        route: AnthropicRoute | None = None,
    ) -> None:
        if route is None:
            key_headers = {"x-api-key": endpoint.key} if endpoint.key else {}
            route = AnthropicRoute(
                path="/messages",
                headers={"anthropic-version": ANTHROPIC_VERSION, **key_headers},
                leading_fields={"model": info.api_id or info.id},
            )
        super().__init__(info, endpoint, quirks, route.path, route.headers)
        self._encoder = AnthropicRequestEncoder(info, quirks, route.leading_fields)
        self._refused_counts: dict[str, int] = {}
        """By session: the number of messages at its start whose thinking is dropped,
        since the service refused it.
        """

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and yield its events until Finished.
        Closing the generator drops the connection.

        When the service refuses the thinking of earlier answers,
        the request is sent again without it, once.
        """
        request = remove_thinking(request, self._refused_counts.get(request.session_id, 0))
        async with aclosing(
            self._exchange(request.headers, self._encoder.encode(request), AnthropicReader())
        ) as events:
            async for event in events:
                if (
                    isinstance(event, Finished)
                    and is_thinking_refused(event.error)
                    and has_thinking(request)
                ):
                    break
                yield event
            else:
                return
        # Remembered, since every further request of the session would be refused first.
        self._refused_counts[request.session_id] = len(request.messages)
        plain = remove_thinking(request, len(request.messages))
        yield RetryScheduled(attempt=0, message=THINKING_DROPPED_MESSAGE, at=now_ms())
        async with aclosing(
            self._exchange(plain.headers, self._encoder.encode(plain), AnthropicReader())
        ) as events:
            async for event in events:
                yield event


class VertexMessages(AnthropicMessages):
    """Claude on Vertex AI: the model is part of the path, the version a field of the body,
    and the key a token.
    """

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = ANTHROPIC_QUIRKS
    ) -> None:
        headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        # A version follows the name after `@`, which Vertex wants as it is.
        path = f"/models/{quote(info.api_id or info.id, safe='@')}:streamRawPredict"
        super().__init__(
            info,
            endpoint,
            quirks,
            AnthropicRoute(path, headers, {"anthropic_version": VERTEX_VERSION}),
        )
