"""Reads the messages of stdin for `codeloop run` in the format stream-json,
and answers the control requests among them.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from codeloop.cli.option_values import Options
from codeloop.cli.output.stream_json.stream_json_view import StreamJsonView
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.host_answerer import HostAnswerer
from codeloop.cli.run.turn import RunTurn
from codeloop.cli.target.selection import parse_model, set_profile
from codeloop.client.client import Client
from codeloop.client.wire.stdio_lines import start_line_reader
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.bounds.program import STREAM_WAITING
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import Profile
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json, replace

# The permission modes of the format, with the permission profiles that they stand for.
PERMISSION_MODES: dict[str, Profile] = {
    "default": "ask",
    "acceptEdits": "auto",
    "plan": "read-only",
    "bypassPermissions": "yolo",
}
INTERRUPTED_BY_HOST = "The program that reads this has interrupted the turn."


class StreamControls:
    """Handles the control messages of one run. The run sets `client` and `session`
    before it reads the first line.

    `options`: the options of the next prompt. `turn`: the turn that runs, if any; `is_interrupted`:
    whether the host has asked to end it.
    """

    def __init__(self, view: StreamJsonView, answerer: Answerer, options: Options) -> None:
        self.options = options
        self.client: Client | None = None
        self.session: Session | None = None
        self.turn: RunTurn | None = None
        self.is_interrupted = False
        self._view = view
        self._host = answerer if isinstance(answerer, HostAnswerer) else None

    def require_session(self) -> tuple[Client, Session]:
        """Return the client and the session. Raises UsageProblem before the session is open."""
        if self.client is None or self.session is None:
            raise UsageProblem("The session is not open yet.")
        return self.client, self.session

    def refuse_questions(self) -> None:
        """Have open and later permission questions refused: the host has closed
        stdin and can't answer.
        """
        if self._host is not None:
            self._host.close()

    async def handle_message(self, message: JSON) -> None:
        """Carry out a request of the host and write the response,
        or pass on its answer to a permission question.

        Messages of other types are ignored.
        """
        if message.get("type") == "control_response" and self._host is not None:
            self._host.deliver_answer(message.get("response"))
        if message.get("type") != "control_request":
            return
        request_id = message.get("request_id")
        try:
            response: JSON = {
                "subtype": "success",
                "response": await self._carry_out(message.get("request")),
            }
        except CodeloopError as error:
            response = {"subtype": "error", "error": str(error)}
        self._view.write_line(
            {"type": "control_response", "response": {**response, "request_id": request_id}}
        )

    async def _carry_out(self, request: Any) -> JSON:
        """Carry out a request; return the response's data.
        Raises CodeloopError when the request is refused.
        """
        client, session = self.require_session()
        if not is_object(request):
            raise UsageProblem("`request` is an object with a `subtype`.")
        match request:
            # A host that relies on its hooks must not believe that they are called.
            case {"subtype": "initialize"} if request.get("hooks"):
                raise UsageProblem(
                    "Hooks of the program are not supported. Write them into the configuration."
                )
            case {"subtype": "initialize"}:
                commands = await client.call(COMMAND_LIST, NoArguments())
                rows = [
                    {"name": row.name, "description": row.description or "", "argumentHint": ""}
                    for row in commands
                ]
                styles: JSON = {"output_style": "default", "available_output_styles": ["default"]}
                return {"commands": rows, "models": [], **styles}
            case {"subtype": "interrupt"}:
                if self.turn is not None:
                    self.is_interrupted = True
                    self.turn.request_end("interrupted", INTERRUPTED_BY_HOST)
                return {}
            case {"subtype": "set_model", "model": str() | None as model}:
                # Raises for a name that is not of the form PROVIDER/MODEL.
                parse_model(model)
                self.options = replace(self.options, model=model)
                return {}
            case {"subtype": "set_permission_mode", "mode": str(mode)} if mode in PERMISSION_MODES:
                self.session = await set_profile(client, session, PERMISSION_MODES[mode])
                return {"mode": mode}
            case {"subtype": "set_permission_mode"}:
                raise UsageProblem(f"`mode` is one of {', '.join(PERMISSION_MODES)}.")
            case _:
                raise UsageProblem(f"There is no request {request.get('subtype')!r}.")


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
