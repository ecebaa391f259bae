"""Models behind Amazon Bedrock's Converse: Claude, Nova, Llama, Mistral and others in one form."""

from typing import Any
from urllib.parse import quote
from zlib import crc32

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import FinishReason, ModelInfo
from codeloop.model.protocols.bedrock.request import METADATA_KEY, BedrockRequestEncoder
from codeloop.model.quirks import BEDROCK_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import EventParser, HttpModel
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.model.wire.tool_calls import format_arguments
from codeloop.net.errors import NetworkError
from codeloop.net.sse import EventTooLong
from codeloop.schema.limits import MODEL_ANSWER
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import bound_depth, decode_json

FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
}
BLOCK_REASONS = {
    "guardrail_intervened": "a guardrail of the account stopped it",
    "content_filtered": "its content filter stopped it",
}
"""Reasons of an end for which the answer counts as blocked."""
RETRYABLE_REASONS = {
    "malformed_model_output": "the model's answer can't be read",
    "malformed_tool_use": "the model made a call that can't be read",
}
"""Reasons of an end after which another try may succeed."""
EXCEPTION_STATUSES = {
    "throttlingException": 429,
    "modelTimeoutException": 408,
    "validationException": 400,
    "serviceUnavailableException": 503,
    "internalServerException": 500,
    "modelStreamErrorException": 500,
}
"""The HTTP status that an exception inside the stream stands for."""


class BedrockDelta(msgspec.Struct, gc=False, rename="camel"):
    """An addition to a block."""

    text: Any = None
    tool_use: Any = None
    reasoning_content: Any = None


class BedrockBlockDelta(msgspec.Struct, gc=False, rename="camel"):
    """An addition to a block, and which block it is."""

    content_block_index: int = 0
    delta: BedrockDelta | None = None


class BedrockEvent(msgspec.Struct, gc=False, rename="camel"):
    """One event of the stream: one field is set."""

    content_block_delta: BedrockBlockDelta | None = None
    content_block_start: Any = None
    content_block_stop: Any = None
    message_stop: Any = None
    metadata: Any = None
    exception: Any = None


class BedrockReader(ResponseReader):
    """Reads one answer. Blocks keep the numbers that the service sends."""

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(BedrockEvent).decode)

    def _read_document(self, body: bytes) -> None:
        """Take an answer that did not stream: what Converse returns."""
        answer: Any = decode_json(body)
        if not is_object(answer) or not is_object(output := answer.get("output")):
            self._set_error(answer)
            return
        message = output.get("message")
        for index, block in enumerate(
            list_objects(message.get("content") if is_object(message) else None)
        ):
            self._read_block(index, block)
        self.tokens = parse_usage(answer.get("usage"))
        self._end_answer(read_text(answer.get("stopReason")))

    def _read_block(self, index: int, block: Any) -> None:
        if is_object(use := block.get("toolUse")):
            self._start_call(index, use)
            self._blocks.add_arguments(index, format_arguments(use.get("input")))
            self._blocks.end_block(index)
        elif is_object(reasoning := block.get("reasoningContent")):
            inner = reasoning.get("reasoningText")
            self._add_thinking(index, inner if is_object(inner) else reasoning)
        else:
            self._blocks.add_text("text", index, read_text(block.get("text")))

    def _read_event(self, payload: bytes) -> None:
        event = self._decode(payload)
        if event.content_block_delta is not None:
            self._add_delta(event.content_block_delta)
        elif is_object(start := event.content_block_start):
            inner = start.get("start")
            if is_object(inner) and is_object(use := inner.get("toolUse")):
                self._start_call(read_count(start, "contentBlockIndex"), use)
        elif is_object(event.content_block_stop):
            self._blocks.end_block(read_count(event.content_block_stop, "contentBlockIndex"))
        elif is_object(event.message_stop):
            self._end_answer(read_text(event.message_stop.get("stopReason")))
        elif is_object(event.metadata):
            self.tokens = parse_usage(event.metadata.get("usage"))
            # The token counts come last, after the end of the answer.
            self.is_done = self.has_ended
        elif is_object(exception := event.exception):
            body = exception.get("body")
            message = read_text(body.get("message")) if is_object(body) else ""
            kind = read_text(exception.get("type"))
            self._set_error(
                {
                    "error": {
                        "code": EXCEPTION_STATUSES.get(kind, 500),
                        "type": kind,
                        "message": message or kind,
                    }
                }
            )

    def _add_delta(self, block_delta: BedrockBlockDelta) -> None:
        index, delta = block_delta.content_block_index, block_delta.delta
        if delta is None:
            return
        if delta.text is not None:
            self._blocks.add_text("text", index, read_text(delta.text))
        elif is_object(delta.tool_use):
            self._blocks.add_arguments(index, read_text(delta.tool_use.get("input")))
        elif is_object(delta.reasoning_content):
            self._add_thinking(index, delta.reasoning_content)

    def _add_thinking(self, index: int, reasoning: dict[str, Any]) -> None:
        if words := read_text(reasoning.get("text")):
            self._blocks.add_text("reasoning", index, words)
        if signature := read_text(reasoning.get("signature")):
            self._blocks.add_metadata(index, {METADATA_KEY: {"signature": signature}})
        if redacted_content := read_text(reasoning.get("redactedContent")):
            self._blocks.add_metadata(index, {METADATA_KEY: {"redacted": redacted_content}})

    def _start_call(self, index: int, use: dict[str, Any]) -> None:
        self._blocks.start_call(index, read_text(use.get("toolUseId")), read_text(use.get("name")))

    def _end_answer(self, reason: str) -> None:
        if reason in BLOCK_REASONS:
            message = f"Bedrock stopped the answer: {BLOCK_REASONS[reason]} ({reason})"
            self._set_error({"error": {"code": "content_filter", "message": message}})
        # A call that is complete may run already, and must not be made twice.
        # 500: such an error is tried again.
        elif reason in RETRYABLE_REASONS and not self._blocks.calls.has_ready_call:
            self._set_error(
                {"error": {"code": 500, "message": f"{RETRYABLE_REASONS[reason]} ({reason})"}}
            )
        else:
            self._set_reason(reason)


def parse_usage(usage: Any) -> Tokens:
    """Return the counts of a `usage` object. The input count excludes cached tokens."""
    if not is_object(usage):
        return NO_TOKENS
    fresh, output = read_count(usage, "inputTokens"), read_count(usage, "outputTokens")
    cache_read, cache_write = (
        read_count(usage, "cacheReadInputTokens"),
        read_count(usage, "cacheWriteInputTokens"),
    )
    total = fresh + output + cache_read + cache_write
    return Tokens(
        input=fresh,
        output=output,
        reasoning=0,
        cache=CacheTokens(read=cache_read, write=cache_write),
        total=total,
    )


_PRELUDE_BYTES = 12
_MIN_MESSAGE_BYTES = _PRELUDE_BYTES + 4
_VALUE_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes in bytes of a header's value by its type, for types of a fixed size."""
_BYTES_TYPE, _STRING_TYPE = 6, 7
"""Types of values that begin with their own length (2 bytes)."""


class EventStreamParser:
    """Splits a stream into messages. `max_bytes`: the most that a message may have.

    Each message becomes a JSON object of one member, named by its event: `{"contentBlockDelta":
    {...}}`; an exception becomes `{"exception": {"type": "throttlingException", "body": {...}}}`.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more bytes; return the messages they complete. Raises EventTooLong;
        NetworkError for a broken one.
        """
        data = self._buffer + chunk if self._buffer else chunk
        position, messages = 0, list[bytes]()
        while len(data) - position >= _MIN_MESSAGE_BYTES:
            size = int.from_bytes(data[position : position + 4], "big")
            # Before the message is complete: a damaged length would make the parser
            # wait for gigabytes.
            if size > self._max_bytes:
                raise EventTooLong
            if size < _MIN_MESSAGE_BYTES:
                raise NetworkError("protocol", "a message of its event stream is too short")
            if len(data) - position < size:
                break
            messages.append(_parse_message(data[position : position + size]))
            position += size
        self._buffer = data[position:]
        if len(self._buffer) > self._max_bytes:
            raise EventTooLong
        return messages


def _parse_message(message: bytes) -> bytes:
    if crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
        raise NetworkError("protocol", "a message of its event stream is damaged")
    headers_end = _PRELUDE_BYTES + int.from_bytes(message[4:8], "big")
    headers, payload = (
        _parse_headers(message[_PRELUDE_BYTES:headers_end]),
        message[headers_end:-4] or b"{}",
    )
    if headers.get(":message-type", "event") == "event":
        return b'{"%b":%b}' % (headers.get(":event-type", "unknown").encode(), payload)
    # Exceptions are modelled errors with a JSON payload; other errors come in headers alone.
    kind = headers.get(":exception-type") or headers.get(":error-code") or "unknown"
    body = (
        {"message": headers[":error-message"]}
        if ":error-message" in headers
        else msgspec.Raw(payload)
    )
    return msgspec.json.encode({"exception": {"type": kind, "body": body}})


def _parse_headers(data: bytes) -> dict[str, str]:
    """Return the headers whose values are strings."""
    headers, position = dict[str, str](), 0
    while position < len(data):
        name_end = position + 1 + data[position]
        name = data[position + 1 : name_end].decode("utf-8", "replace")
        value_type = data[name_end] if name_end < len(data) else -1
        position = name_end + 1
        if value_type in {_STRING_TYPE, _BYTES_TYPE}:
            size = int.from_bytes(data[position : position + 2], "big")
            if value_type == _STRING_TYPE:
                headers[name] = data[position + 2 : position + 2 + size].decode("utf-8", "replace")
            position += 2 + size
        elif value_type in _VALUE_SIZES:
            position += _VALUE_SIZES[value_type]
        else:
            raise NetworkError(
                "protocol", "a message of its event stream has a header of an unknown type"
            )
    return headers


class BedrockConverse(HttpModel):
    """A model at an endpoint; `/model/NAME/converse-stream` is added to the base URL."""

    encoder_type = BedrockRequestEncoder
    reader_type = BedrockReader

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = BEDROCK_QUIRKS
    ) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        headers = {"accept": "application/vnd.amazon.eventstream", **key_headers}
        # The name may be an ARN, with slashes and colons.
        name = quote(info.api_id or info.id, safe="")
        super().__init__(info, endpoint, quirks, f"/model/{name}/converse-stream", headers)

    def _make_parser(self) -> EventParser:
        return EventStreamParser(MODEL_ANSWER.value)
