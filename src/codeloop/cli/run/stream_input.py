"""Reads the messages of stdin for `codeloop run` in the format stream-json."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from codeloop.client.wire.stdio_lines import start_line_reader
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.bounds.automation import STREAM_WAITING
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json

_EXAMPLE_LINE = '{"type":"user","message":{"role":"user","content":"fix the failing test"}}'

_ControlHandler = Callable[[JSON], Coroutine[Any, Any, None]]


class StreamMessage(NamedTuple):
    """A line of stdin: the `parts` of its prompt and the decoded `line`,
    or the `problem` that makes it invalid.
    """

    parts: list[PartInput]
    line: JSON
    problem: str = ""


class StreamInput:
    """Reads lines of stdin. `queue`: the messages that wait for their turn;
    None in it is the end of stdin.

    `handle_control`: called with each control message. `on_end`: called at the end of stdin.
    """

    def __init__(self, handle_control: _ControlHandler, on_end: Callable[[], None]) -> None:
        self.queue: asyncio.Queue[StreamMessage | None] = asyncio.Queue(STREAM_WAITING.value)
        self._handle_control = handle_control
        self._on_end = on_end
        # The number of the current line, for errors about it.
        self._line_number = 0

    def start(self, descriptor: int) -> None:
        """Start to read from a descriptor. While STREAM_WAITING messages wait, it is not read."""
        start_line_reader(descriptor, self._handle_line)

    async def _handle_line(self, line: bytes | None) -> None:
        if line is None:
            # Called first: a turn that waits for a permission would never get to
            # the end of the queue.
            self._on_end()
            await self.queue.put(None)
            return
        self._line_number += 1
        try:
            document = _decode(line)
            if document.get("type") in {
                "control_request",
                "control_response",
                "control_cancel_request",
            }:
                await self._handle_control(document)
                return
            if document.get("type") == "keep_alive":
                return
            message = StreamMessage(_read_parts(document), document)
        except UsageProblem as error:
            message = StreamMessage(
                [], {}, f"Message {self._line_number} of stdin was not sent: {error}"
            )
        await self.queue.put(message)


def _decode(line: bytes) -> JSON:
    try:
        message = decode_json(line)
    except DECODE_ERRORS as error:
        raise UsageProblem(
            f"the line is not JSON ({error}). A message is one line, as {_EXAMPLE_LINE}"
        ) from None
    if not is_object(message):
        raise UsageProblem(f"the line is not an object. A message is one, as {_EXAMPLE_LINE}")
    return message


def _read_parts(line: JSON) -> list[PartInput]:
    """Return the parts of the prompt in a line of the type `user`.
    Raises UsageProblem for any other line.
    """
    if line.get("type") != "user":
        raise UsageProblem(
            f"its type is {line.get('type')!r}. It is `user` for a message, as {_EXAMPLE_LINE}"
        )
    message = line.get("message")
    content = message.get("content") if is_object(message) else None
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not is_list(content):
        raise UsageProblem(
            f"`message.content` is neither a text nor a list of blocks, as in {_EXAMPLE_LINE}"
        )
    parts = [_read_block(block, index) for index, block in enumerate(content)]
    if not any(not isinstance(part, TextPartInput) or part.text.strip() for part in parts):
        raise UsageProblem("`message.content` is empty. Give it a text.")
    return parts


def _read_block(block: Any, index: int) -> PartInput:
    """Convert a content block to a part of a prompt. Raises UsageProblem;
    `index` is for its message.
    """
    location = f"`message.content[{index}]`"
    kind = block.get("type") if is_object(block) else None
    if kind == "text" and isinstance(text := block.get("text"), str):
        return TextPartInput(text=text)
    if kind not in {"image", "document"}:
        raise UsageProblem(f"{location} is not a block of the type `text`, `image` or `document`.")
    match block.get("source"):
        case {"type": "base64", "media_type": str(mime), "data": str(data)}:
            return FilePartInput(
                mime=mime, url=f"data:{mime};base64,{data}", filename=block.get("title")
            )
        case {"type": "text", "data": str(data)}:
            return TextPartInput(text=data)
        case _:
            form = '{"type":"base64","media_type":"...","data":"..."}'
            raise UsageProblem(f"{location} has no source of the form {form}.")
