"""Models behind Amazon Bedrock's Converse: Claude, Nova, Llama, Mistral and others in one form."""

from collections.abc import AsyncGenerator
from urllib.parse import quote
from zlib import crc32

import msgspec

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.protocols.bedrock.request import BedrockRequestEncoder
from codeloop.model.protocols.bedrock.response import BedrockReader
from codeloop.model.quirks import BEDROCK_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import EventParser, HttpModel
from codeloop.net.errors import NetworkError
from codeloop.net.sse import EventTooLong
from codeloop.schema.limits import MODEL_ANSWER

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

    def __init__(
        self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = BEDROCK_QUIRKS
    ) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        headers = {"accept": "application/vnd.amazon.eventstream", **key_headers}
        # The name may be an ARN, with slashes and colons.
        name = quote(info.api_id or info.id, safe="")
        super().__init__(info, endpoint, quirks, f"/model/{name}/converse-stream", headers)
        self._encoder = BedrockRequestEncoder(info, quirks)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and return its events until Finished.
        Closing the generator drops the connection.
        """
        return self._exchange(request.headers, self._encoder.encode(request), BedrockReader())

    def _make_parser(self) -> EventParser:
        return EventStreamParser(MODEL_ANSWER.value)
