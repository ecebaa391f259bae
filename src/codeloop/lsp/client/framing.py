"""Message framing: a header with the length, then that many bytes of JSON."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.schema.bounds.language import LSP_GARBAGE, LSP_MESSAGE
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_HEADER = re.compile(rb"Content-Length:[ \t]*([0-9]{1,12})[ \t]*\r\n(?:[^\r\n]{1,200}\r\n){0,4}\r\n", re.IGNORECASE)
_decode = msgspec.json.Decoder().decode


class BadStream(CodeloopError):
    """A server's output is not the protocol, or too large."""


def encode_message(message: JSON) -> bytes:
    """Return a message as it is written."""
    body = msgspec.json.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageReader:
    """Splits a stream into messages. Text between them (such as a wrapper's greeting) is skipped."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._begin = 0
        self._length = -1
        self._garbage = 0

    def feed(self, data: bytes) -> Iterator[JSON]:
        """Take bytes and yield the messages that are complete. Raises BadStream."""
        self._rest += data
        while True:
            if self._length < 0 and not self._header():
                break
            if len(self._rest) - self._begin < self._length:
                break
            end = self._begin + self._length
            body = bytes(self._rest[self._begin : end])
            self._begin, self._length = end, -1
            yield _message(body)
        if self._begin:
            del self._rest[: self._begin]
            self._begin = 0

    def _header(self) -> bool:
        """Take the next header, if all of it is there."""
        match = _HEADER.search(self._rest, self._begin)
        waiting = (match.start() if match else len(self._rest)) - self._begin
        if self._garbage + waiting > LSP_GARBAGE.value:
            raise BadStream("it writes something else than the language server protocol")
        if match is None:
            return False
        self._garbage += waiting
        self._begin, self._length = match.end(), int(match[1])
        if self._length > LSP_MESSAGE.value:
            raise BadStream(f"it sent a message of more than {LSP_MESSAGE.value:,} bytes")
        return True


def _message(body: bytes) -> JSON:
    try:
        value: Any = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadStream(f"it sent what is no JSON: {error}") from error
    if not is_object(value):
        raise BadStream("it sent a message that is no object")
    return value
