"""Bounded reading and writing of a host's messages, and their errors."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.protocol import (
    VERSION,
    AnswerError,
    ExtensionOffer,
    FromHost,
    HostMessage,
    HostReady,
    decode_from_host,
    encode_line,
)
from codeloop.kit.program import MessageTooLong, Program
from codeloop.schema.bounds.extension import HOST_MESSAGE_BYTES
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.wire import DECODE_ERRORS, JSON


class InvalidCall(HookFailed):
    """An extension got invalid input; the text is for the caller."""


class BrokenStream(Exception):
    """A program's output can't be parsed; the message says why."""


async def read_messages(program: Program) -> AsyncGenerator[FromHost]:
    """Yield the messages of a program until its end. Raises BrokenStream."""
    try:
        async for line in program.read_lines(HOST_MESSAGE_BYTES.value):
            yield _decode_message(line)
    except MessageTooLong as error:
        raise BrokenStream(str(error)) from error


def _decode_message(line: bytes) -> FromHost:
    try:
        message = decode_from_host(line)
    except DECODE_ERRORS as error:
        # A program that writes anything but messages can't be resynchronised: the stream ends here.
        raise BrokenStream(f"it sent an invalid message ({error}): {line[:200]!r}") from error
    # Another version may have other messages, so nothing more is read from such a program.
    if isinstance(message, HostReady) and message.version != VERSION:
        raise BrokenStream(f"it speaks version {message.version} of the protocol, not {VERSION}")
    return message


def encode_request(message: HostMessage) -> bytes:
    """Encode a request. Raises HookFailed when it can't be encoded."""
    try:
        line = encode_line(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise HookFailed(f"its input can't be written as JSON: {error}") from error
    if len(line) > HOST_MESSAGE_BYTES.value:
        raise HookFailed(f"its input is longer than {HOST_MESSAGE_BYTES.value:,} bytes")
    return line


def make_error_answer(number: int, what: str, error: BaseException) -> AnswerError:
    """Return the answer to a program whose request failed."""
    if not isinstance(error, CodeloopError):
        return AnswerError(number, "raised", f"{what} failed: {type(error).__name__}: {error}")
    data: JSON | None = None
    if isinstance(error, OperationError):
        data = {"name": error.kind, "data": {"message": str(error)}}
    return AnswerError(number, "raised", str(error), data=data)


def convert_error(error: AnswerError) -> Exception:
    """Convert a program's error to an exception."""
    if error.kind == "raised":
        return ExtensionRaised(error.message, error.name, error.trace)
    return InvalidCall(error.message) if error.kind == "invalid" else HookFailed(error.message)


def parse_offer(answer: Any) -> ExtensionOffer:
    """Parse the answer to a load request. Raises HookFailed."""
    try:
        return msgspec.convert(answer, ExtensionOffer)
    except msgspec.ValidationError as error:
        raise HookFailed(f"its offer is invalid: {error}") from error
