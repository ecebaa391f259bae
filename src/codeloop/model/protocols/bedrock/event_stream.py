"""A parser of Amazon's event stream encoding: takes binary messages with checksums, returns JSON events.

    length (4) | length of the headers (4) | checksum of both (4) | headers | payload | checksum of all (4)

Numbers are big-endian. A header is a name (1 byte of length), a type (1 byte) and a value.
"""

from zlib import crc32

import msgspec

from codeloop.net.http1 import NetworkError
from codeloop.net.sse import EventTooLong

PRELUDE_BYTES = 12
MIN_MESSAGE_BYTES = PRELUDE_BYTES + 4
_VALUE_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes in bytes of a header's value by its type; strings (7) and byte arrays (6) begin with their own length."""
_STRING_TYPE, _BYTES_TYPE = 7, 6


class EventStreamParser:
    """Splits a stream into messages. `max_bytes`: the most that a message may have.

    Each message becomes a JSON object of one member, named by its event: `{"contentBlockDelta": {...}}`; an exception
    becomes `{"exception": {"type": "throttlingException", "body": {...}}}`.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more bytes; return the messages they complete. Raises EventTooLong; NetworkError for a broken one."""
        data = self._buffer + chunk if self._buffer else chunk
        at, messages = 0, list[bytes]()
        while len(data) - at >= MIN_MESSAGE_BYTES:
            size = int.from_bytes(data[at : at + 4], "big")
            # Before the message is complete: a damaged length would make the parser wait for gigabytes.
            if size > self._max_bytes:
                raise EventTooLong
            if size < MIN_MESSAGE_BYTES:
                raise NetworkError("protocol", "a message of its event stream is too short")
            if len(data) - at < size:
                break
            messages.append(_parse_message(data[at : at + size]))
            at += size
        self._buffer = data[at:]
        if len(self._buffer) > self._max_bytes:
            raise EventTooLong
        return messages


def _parse_message(message: bytes) -> bytes:
    if crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
        raise NetworkError("protocol", "a message of its event stream is damaged")
    end = PRELUDE_BYTES + int.from_bytes(message[4:8], "big")
    headers, payload = _parse_headers(message[PRELUDE_BYTES:end]), message[end:-4] or b"{}"
    if headers.get(":message-type", "event") == "event":
        return b'{"%b":%b}' % (headers.get(":event-type", "unknown").encode(), payload)
    # Exceptions are modelled errors with a JSON payload; other errors come in headers alone.
    kind = headers.get(":exception-type") or headers.get(":error-code") or "unknown"
    body = {"message": headers[":error-message"]} if ":error-message" in headers else msgspec.Raw(payload)
    return msgspec.json.encode({"exception": {"type": kind, "body": body}})


def _parse_headers(data: bytes) -> dict[str, str]:
    """Return the headers whose values are strings."""
    headers, at = dict[str, str](), 0
    while at < len(data):
        length = data[at]
        name = data[at + 1 : at + 1 + length].decode("utf-8", "replace")
        at += 1 + length
        kind, at = data[at] if at < len(data) else -1, at + 1
        if kind in {_STRING_TYPE, _BYTES_TYPE}:
            size = int.from_bytes(data[at : at + 2], "big")
            if kind == _STRING_TYPE:
                headers[name] = data[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
        elif kind in _VALUE_SIZES:
            at += _VALUE_SIZES[kind]
        else:
            raise NetworkError("protocol", "a message of its event stream has a header of an unknown type")
    return headers
