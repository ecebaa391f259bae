"""A session of another agent, in a form that all of them share,
and the document that `codeloop import` takes.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.wire import JSON

_TITLE_CHARS = 80
_TIME_END = 253_402_300_800_000
"""The end of the year 9999, in ms since 1970."""
_MAX_LINE_BYTES = 64 * 1024 * 1024
# Names of tools that do what ours do, in small letters.
_TOOLS = {
    "bash": "bash",
    "shell": "bash",
    "exec_command": "bash",
    "local_shell": "bash",
    "shell_command": "bash",
    "run_shell_command": "bash",
    "container.exec": "bash",
    "read": "read",
    "read_file": "read",
    "edit": "edit",
    "replace": "edit",
    "multiedit": "multiedit",
    "write": "write",
    "write_file": "write",
    "apply_patch": "apply_patch",
    "glob": "glob",
    "grep": "grep",
    "search_file_content": "grep",
    "grep_search": "grep",
    "ls": "list",
    "list_directory": "list",
    "webfetch": "webfetch",
    "web_fetch": "webfetch",
    "websearch": "websearch",
    "google_web_search": "websearch",
    "task": "task",
    "agent": "task",
    "todowrite": "todowrite",
}
_ARGUMENTS = {
    "file_path": "filePath",
    "absolute_path": "filePath",
    "old_string": "oldString",
    "new_string": "newString",
    "oldText": "oldString",
    "newText": "newString",
    "replace_all": "replaceAll",
    "dir_path": "path",
    "cmd": "command",
}


class ForeignCall(Struct):
    """A tool call. `output`: None: it has none, since the session ended before."""

    id: str
    tool: str
    input: JSON
    output: str | None = None
    is_error: bool = False


class ForeignText(Struct):
    """Text of either side, or thinking of the model."""

    text: str
    is_thinking: bool = False


class ForeignImage(Struct):
    """A picture that the user attached; `data` in base64."""

    mime: str
    data: str


class ForeignMessage(Struct):
    """A prompt, or an answer by `provider/model`. `time`: ms since 1970, 0 if unknown."""

    is_user: bool
    time: int = 0
    pieces: list[ForeignText | ForeignImage | ForeignCall] = field(default_factory=list[Any])
    model: str = ""


class ForeignSession(Struct):
    """A session. `directory`: where it worked; "": unknown."""

    id: str
    source: Path
    directory: str = ""
    title: str = ""
    messages: list[ForeignMessage] = field(default_factory=list[ForeignMessage])

    def add(self, *, is_user: bool, time: int, model: str = "") -> ForeignMessage:
        """Return the message to add to: the last one, if it is of the same side,
        and none of its calls is answered.
        """
        last = self.messages[-1] if self.messages else None
        has_results = last is not None and any(
            isinstance(piece, ForeignCall) and piece.output is not None for piece in last.pieces
        )
        if last is None or last.is_user != is_user or has_results:
            last = ForeignMessage(is_user, time)
            self.messages.append(last)
        last.model = model or last.model
        return last

    def add_text(self, text: Any, *, is_user: bool, time: int, thinking: bool = False) -> None:
        """Add a text; empty ones are left out."""
        if isinstance(text, str) and text.strip():
            message = self.add(is_user=is_user, time=time)
            message.pieces.append(ForeignText(text, thinking))

    def add_result(self, call_id: Any, output: str, *, is_error: bool) -> None:
        """Add the output of a call."""
        for message in reversed(self.messages):
            for piece in message.pieces:
                if isinstance(piece, ForeignCall) and piece.id == call_id:
                    piece.output, piece.is_error = output, is_error
                    return

    @property
    def store_id(self) -> str:
        """The id of the session here: the same whenever it is taken over."""
        return f"ses_{_hash(self.id)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def make_document(session: ForeignSession, now: int) -> JSON:
    """Return a session as a document of `codeloop export`. `now`: ms since 1970."""
    stem = _hash(session.id)
    messages: list[JSON] = []
    time, user_id, model = 0, "", {"providerID": "unknown", "modelID": "unknown"}
    for number, message in enumerate(session.messages):
        # The order of messages is that of their times.
        time = max(message.time, time + 1)
        message_id = f"msg_{stem}{number:06}"
        info: JSON = {"id": message_id, "time": {"created": time}, "agent": "build"}
        if message.model:
            provider, _, name = message.model.partition("/")
            model = {"providerID": provider, "modelID": name}
        if message.is_user:
            user_id = message_id
            following = session.messages[number + 1 :]
            named = next((each.model for each in following if each.model), "")
            if named:
                provider, _, name = named.partition("/")
                model = {"providerID": provider, "modelID": name}
            info |= {"role": "user", "model": model}
        else:
            info |= {
                "role": "assistant",
                "parentID": user_id,
                **model,
                "mode": "build",
                "path": {"cwd": session.directory, "root": session.directory},
                "cost": 0.0,
                "tokens": {
                    "input": 0,
                    "output": 0,
                    "reasoning": 0,
                    "cache": {"read": 0, "write": 0},
                },
                "time": {"created": time, "completed": time},
                "finish": "stop",
            }
        parts = [
            {"id": f"prt_{stem}{number:06}{index:06}", **_make_part(piece, time)}
            for index, piece in enumerate(message.pieces)
        ]
        messages.append({"info": info, "parts": parts})
    first = (session.messages[0].time if session.messages else 0) or now
    title = session.title or next(
        (
            piece.text
            for message in session.messages
            for piece in message.pieces
            if message.is_user and isinstance(piece, ForeignText)
        ),
        session.id,
    )
    info = {
        "id": session.store_id,
        "title": one_line(title, _TITLE_CHARS),
        "directory": session.directory,
        "time": {"created": first, "updated": max(time, first)},
    }
    return {"info": info, "messages": messages}


def _make_part(piece: ForeignText | ForeignImage | ForeignCall, time: int) -> JSON:
    match piece:
        case ForeignText(text=text, is_thinking=True):
            return {"type": "reasoning", "text": text, "time": {"start": time, "end": time}}
        case ForeignText(text=text):
            return {"type": "text", "text": text}
        case ForeignImage(mime=mime, data=data):
            return {"type": "file", "mime": mime, "url": f"data:{mime};base64,{data}"}
        case ForeignCall():
            return _make_call(piece, time)


def _make_call(call: ForeignCall, time: int) -> JSON:
    tool = _TOOLS.get(call.tool.casefold(), call.tool)
    arguments = {_ARGUMENTS.get(key, key): value for key, value in call.input.items()}
    if tool == "bash" and is_list(arguments.get("command")):
        # `["bash", "-lc", "ls"]` is what Codex sends.
        words = [str(each) for each in arguments["command"]]
        arguments["command"] = words[-1] if words[1:2] in (["-lc"], ["-c"]) else " ".join(words)
    state: JSON = {"input": arguments, "time": {"start": time, "end": time}}
    if call.output is None:
        state |= {"status": "error", "error": "The session ended before the call did."}
    elif call.is_error:
        state |= {"status": "error", "error": call.output or "The call failed."}
    else:
        state |= {"status": "completed", "output": call.output, "title": "", "metadata": {}}
    return {"type": "tool", "callID": call.id, "tool": tool, "state": state}


def read_lines(file: Path) -> Iterator[JSON]:
    """Yield the JSON objects of a file with one a line; others are passed over.
    Raises OSError.
    """
    with file.open("rb") as stream:
        while line := stream.readline(_MAX_LINE_BYTES):
            value = parse_json(line)
            if is_object(value):
                yield value


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; None for what is none."""
    try:
        text = text if isinstance(text, str) else text.decode("utf-8", "replace")
        value = json.loads(text)
        if "\\ud" in text.casefold():
            # A text that was cut inside an emoji has half of it, which can't be stored.
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def parse_time(value: Any) -> int:
    """Return a time as ms since 1970: of ISO's form, or a number of seconds or ms; 0: unknown."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        time = value if value > 1e11 else value * 1_000
    elif isinstance(value, str):
        try:
            time = datetime.fromisoformat(value).timestamp() * 1_000
        except (ValueError, OverflowError):
            return 0
    else:
        return 0
    # Also False for NaN.
    return int(time) if 0 < time < _TIME_END else 0


def join_texts(content: Any) -> str:
    """Return the text in a message's content: a text itself, or those of its blocks."""
    if isinstance(content, str):
        return content
    if is_object(content):
        content = [content]
    if not is_list(content):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    texts = [
        each if isinstance(each, str) else str(each.get("text", ""))
        for each in content
        if isinstance(each, str) or is_object(each)
    ]
    return "\n".join(text for text in texts if text)
