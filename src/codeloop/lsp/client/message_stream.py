"""The messages of JSON-RPC in a stream of bytes: each is JSON after a header with its length.

A server may be broken or hostile, so the size of a message, and of all that is skipped between messages, are bounded.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.schema.bounds.language_tools import LSP_GARBAGE, LSP_MESSAGE
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON, bound_depth

# `Content-Length: 52` before or after `Content-Type: ...`, then at most four further fields, and an empty line.
_HEADER_PATTERN = (
    rb"(?i)(?:Content-Type:[^\r\n]{1,200}\r\n)?"
    rb"Content-Length:[ \t]*([0-9]{1,12})[ \t]*\r\n(?:[^\r\n]{1,200}\r\n){0,4}\r\n"
)
_decode = bound_depth(msgspec.json.Decoder().decode)


class InvalidStream(CodeloopError):
    """The output of a server is not the protocol, or too large."""


def encode_message(message: JSON) -> bytes:
    """Encode a message with its header."""
    body = msgspec.json.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageReader:
    """Splits a stream into messages. Text between them (such as a wrapper's greeting) is skipped."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._position = 0
        """Where the next header or message begins in the buffer."""
        self._length = -1
        """The bytes of the message whose header was read; -1: a header comes next."""
        self._skipped_bytes = 0
        """Of the whole stream."""

    def feed(self, data: bytes) -> Iterator[JSON]:
        """Add bytes and yield the messages that are complete. Raises InvalidStream."""
        self._buffer += data
        while True:
            if self._length < 0 and not self._read_header():
                break
            if len(self._buffer) - self._position < self._length:
                break
            end = self._position + self._length
            body = bytes(self._buffer[self._position : end])
            self._position, self._length = end, -1
            yield _decode_message(body)
        if self._position:
            del self._buffer[: self._position]
            self._position = 0

    def _read_header(self) -> bool:
        """Read the next header; return whether all of it is there. Raises InvalidStream."""
        match = re.compile(_HEADER_PATTERN).search(self._buffer, self._position)
        skipped_bytes = (match.start() if match else len(self._buffer)) - self._position
        if self._skipped_bytes + skipped_bytes > LSP_GARBAGE.value:
            raise InvalidStream("it writes something other than the language server protocol")
        if match is None:
            return False
        self._skipped_bytes += skipped_bytes
        self._position, self._length = match.end(), int(match[1])
        if self._length > LSP_MESSAGE.value:
            raise InvalidStream(f"it sent a message of more than {LSP_MESSAGE.value:,} bytes")
        return True


def _decode_message(body: bytes) -> JSON:
    try:
        value: Any = _decode(body)
    except DECODE_ERRORS as error:
        raise InvalidStream(f"it sent something that is not JSON: {error}") from error
    if not is_object(value):
        raise InvalidStream("it sent a message that is not an object")
    return value
