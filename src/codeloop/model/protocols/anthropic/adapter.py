"""Models behind Anthropic's messages protocol: at Anthropic and services like it,
and Claude on Vertex AI.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import (
    Finished,
    FinishReason,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    RetryScheduled,
    UsageUpdate,
)
from codeloop.model.protocols.anthropic.request import METADATA_KEY, AnthropicRequestEncoder
from codeloop.model.protocols.anthropic.thinking import (
    has_thinking,
    is_thinking_refused,
    remove_thinking,
)
from codeloop.model.quirks import ANTHROPIC_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel, RequestEncoder
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.model.wire.tool_calls import format_arguments
from codeloop.schema.ids import now_ms
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import JSON, bound_depth

FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    # The service wants to be asked again for the rest.
    "pause_turn": "length",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "refusal": "content-filter",
}


class AnthropicDelta(msgspec.Struct, gc=False):
    """An addition to a block, or to the message."""

    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    signature: Any = None
    stop_reason: Any = None


class AnthropicEvent(msgspec.Struct, gc=False):
    """One event of the stream, of any type, or a whole message that did not stream."""

    type: str = ""
    index: int = 0
    delta: AnthropicDelta | None = None
    content_block: Any = None
    content: Any = None
    message: Any = None
    usage: Any = None
    error: Any = None
    stop_reason: Any = None


class AnthropicReader(ResponseReader):
    """Reads one answer. Blocks keep the numbers that the service sends."""

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(AnthropicEvent).decode)
        self._usage: JSON = {}

    def _read_document(self, body: bytes) -> None:
        """Take an answer that did not stream: the message itself."""
        message = self._decode(body)
        if message.type == "error" or message.error is not None:
            self._set_error({"error": message.error})
            return
        self._add_usage(message.usage)
        for index, block in enumerate(list_objects(message.content)):
            self._begin_block(index, block)
            self._blocks.end_block(index)
        if reason := read_text(message.stop_reason):
            self._set_reason(reason)

    def _read_event(self, payload: bytes) -> None:
        event = self._decode(payload)
        # Nearly all events are of this type, so it is tested first.
        if event.type == "content_block_delta" and event.delta is not None:
            self._add_delta(event.index, event.delta)
        else:
            self._handle_event(event)

    def _add_delta(self, index: int, delta: AnthropicDelta) -> None:
        if delta.text:
            self._blocks.add_text("text", index, read_text(delta.text))
        elif delta.partial_json:
            self._blocks.add_arguments(index, read_text(delta.partial_json))
        elif delta.thinking:
            self._blocks.add_text("reasoning", index, read_text(delta.thinking))
        elif delta.signature:
            self._blocks.add_metadata(
                index, {METADATA_KEY: {"signature": read_text(delta.signature)}}
            )

    def _handle_event(self, event: AnthropicEvent) -> None:
        match event.type:
            case "content_block_start":
                self._begin_block(event.index, event.content_block)
            case "content_block_stop":
                self._blocks.end_block(event.index)
            case "message_start":
                if is_object(event.message):
                    self._add_usage(event.message.get("usage"))
                    self._blocks.events.append(UsageUpdate(self.tokens))
            case "message_delta":
                self._add_usage(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._set_reason(read_text(event.delta.stop_reason))
            case "message_stop":
                self.is_done = self.has_ended = True
            case _:
                if event.error is not None:
                    self._set_error({"error": event.error})

    def _begin_block(self, index: int, block: Any) -> None:
        if not is_object(block):
            return
        self._blocks.flush()
        match block.get("type"):
            case "text":
                self._blocks.add_text("text", index, read_text(block.get("text")))
            case "thinking":
                self._blocks.add_text("reasoning", index, read_text(block.get("thinking")))
                if signature := read_text(block.get("signature")):
                    self._blocks.add_metadata(index, {METADATA_KEY: {"signature": signature}})
            case "redacted_thinking":
                self._blocks.add_metadata(
                    index, {METADATA_KEY: {"redacted": read_text(block.get("data"))}}
                )
            case "tool_use":
                self._blocks.start_call(
                    index, read_text(block.get("id")), read_text(block.get("name"))
                )
                if arguments := block.get("input"):
                    self._blocks.add_arguments(index, format_arguments(arguments))
            case _:
                return

    def _add_usage(self, usage: Any) -> None:
        """Take counts; those of later events are totals and replace earlier ones."""
        if is_object(usage):
            self._usage.update({name: value for name, value in usage.items() if value is not None})
            self.tokens = parse_usage(self._usage)


def parse_usage(usage: JSON) -> Tokens:
    """Return the counts of a `usage` object; what it lacks is 0.
    The service's input count excludes cached tokens.
    """
    fresh, output = read_count(usage, "input_tokens"), read_count(usage, "output_tokens")
    cache_read, cache_write = (
        read_count(usage, "cache_read_input_tokens"),
        read_count(usage, "cache_creation_input_tokens"),
    )
    if not any((fresh, output, cache_read, cache_write)):
        return NO_TOKENS
    reasoning = read_count(usage, "output_tokens_details", "thinking_tokens")
    total = fresh + output + cache_read + cache_write
    hour = min(read_count(usage, "cache_creation", "ephemeral_1h_input_tokens"), cache_write)
    cache = CacheTokens(read=cache_read, write=cache_write, hour_write=hour)
    # `priority` is paid for beforehand: its tokens cost the same.
    tier = "batch" if usage.get("service_tier") == "batch" else ""
    return Tokens(
        input=fresh, output=output, reasoning=reasoning, cache=cache, total=total, tier=tier
    )


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

    reader_type = AnthropicReader

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
        self._leading_fields = route.leading_fields
        super().__init__(info, endpoint, quirks, route.path, route.headers)
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
        async with aclosing(super().stream(request)) as events:
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
        async with aclosing(super().stream(plain)) as events:
            async for event in events:
                yield event

    def _create_encoder(self, quirks: Quirks) -> RequestEncoder:
        return AnthropicRequestEncoder(self._info, quirks, self._leading_fields)


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
