"""Sessions of Claude Code: `projects/FOLDER/ID.jsonl` in its home, a line for each block."""

from pathlib import Path
from typing import Any

from codeloop.app.switch.sessions.foreign_session import (
    ForeignCall,
    ForeignImage,
    ForeignSession,
    ForeignText,
    join_texts,
    parse_time,
    read_lines,
)
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

_TITLE_KEYS = ("customTitle", "aiTitle", "summary", "title")


def list_files(home: Path) -> list[Path]:
    """Return the files of sessions in a home; those of subagents are none."""
    files = (home / "projects").glob("*/*.jsonl")
    return sorted(file for file in files if not file.name.startswith("agent-"))


def read_session(file: Path) -> ForeignSession:
    """Return the session in a file. Raises OSError."""
    session = ForeignSession(id=f"claude {file.stem}", source=file)
    for line in read_lines(file):
        if str(line.get("type", "")).endswith(("summary", "title")):
            session.title = next(
                (str(line[key]) for key in _TITLE_KEYS if line.get(key)), session.title
            )
        session.directory = session.directory or str(line.get("cwd") or "")
        message: Any = line.get("message")
        is_told = line.get("isSidechain") is not True and line.get("isMeta") is not True
        if is_told and line.get("type") in ("user", "assistant") and is_object(message):
            _add_message(session, message, parse_time(line.get("timestamp")))
    return session


def _add_message(session: ForeignSession, message: JSON, time: int) -> None:
    is_user = message.get("role") == "user"
    content = message.get("content")
    for block in content if is_list(content) else [{"type": "text", "text": content}]:
        match block:
            case {"type": "text", "text": str(text)}:
                session.add_text(text, is_user=is_user, time=time)
            case {"type": "thinking", "thinking": str(text)} if text.strip():
                message_of_model = session.add(is_user=False, time=time)
                message_of_model.pieces.append(ForeignText(text, is_thinking=True))
            case {"type": "image", "source": {"media_type": str(mime), "data": str(data)}}:
                session.add(is_user=is_user, time=time).pieces.append(ForeignImage(mime, data))
            case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
                given = block.get("input")
                session.add(is_user=False, time=time).pieces.append(
                    ForeignCall(call_id, name, given if is_object(given) else {})
                )
            case {"type": "tool_result", "tool_use_id": call_id}:
                output = join_texts(block.get("content"))
                session.add_result(call_id, output, is_error=block.get("is_error") is True)
            case _:
                pass
    model = message.get("model")
    if not is_user and isinstance(model, str) and session.messages and model[:1] != "<":
        session.messages[-1].model = f"anthropic/{model}"
