"""Sessions of pi: `sessions/FOLDER/TIME_ID.jsonl` in its home, a tree of entries."""

from pathlib import Path
from typing import Any

from codeloop.app.switch.sessions.foreign_session import (
    ForeignCall,
    ForeignImage,
    ForeignSession,
    join_texts,
    parse_time,
    read_lines,
)
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON


def list_files(home: Path) -> list[Path]:
    """Return the files of sessions in a home."""
    return sorted((home / "sessions").glob("*/*.jsonl"))


def read_session(file: Path) -> ForeignSession:
    """Return the session in a file. Raises OSError."""
    session = ForeignSession(id=f"pi {file.stem}", source=file)
    entries: list[JSON] = []
    for line in read_lines(file):
        if line.get("type") == "session":
            session.directory = str(line.get("cwd") or "")
        elif line.get("type") == "session_info":
            session.title = str(line.get("name") or session.title)
        entries.append(line)
    for entry in _list_branch(entries):
        message: Any = entry.get("message")
        if entry.get("type") == "message" and is_object(message):
            _add_message(session, message, parse_time(entry.get("timestamp")))
    return session


def _list_branch(entries: list[JSON]) -> list[JSON]:
    """Return the entries from the first to the latest one, without those of other branches."""
    by_id = {each["id"]: each for each in entries if isinstance(each.get("id"), str)}
    if not any("parentId" in each for each in entries):
        return entries
    branch: list[JSON] = []
    entry: JSON | None = entries[-1]
    while entry is not None and len(branch) <= len(entries):
        branch.append(entry)
        parent = entry.get("parentId")
        entry = by_id.get(parent) if isinstance(parent, str) else None
    return branch[::-1]


def _add_message(session: ForeignSession, message: JSON, time: int) -> None:
    role, content = message.get("role"), message.get("content")
    if role == "toolResult":
        session.add_result(
            message.get("toolCallId"), join_texts(content), is_error=message.get("isError") is True
        )
        return
    if role == "bashExecution":
        text = f"$ {message.get('command')}\n{message.get('output', '')}"
        session.add_text(text, is_user=True, time=time)
        return
    if role not in ("user", "assistant"):
        return
    is_user = role == "user"
    for block in content if is_list(content) else [{"type": "text", "text": content}]:
        match block:
            case {"type": "text", "text": str(text)}:
                session.add_text(text, is_user=is_user, time=time)
            case {"type": "thinking", "thinking": str(text)}:
                session.add_text(text, is_user=False, time=time, thinking=True)
            case {"type": "image", "data": str(data), "mimeType": str(mime)}:
                session.add(is_user=is_user, time=time).pieces.append(ForeignImage(mime, data))
            case {"type": "toolCall", "id": str(call_id), "name": str(name)}:
                given = block.get("arguments")
                session.add(is_user=False, time=time).pieces.append(
                    ForeignCall(call_id, name, given if is_object(given) else {})
                )
            case _:
                pass
    if not is_user and message.get("model") and session.messages:
        session.messages[-1].model = f"{message.get('provider', 'unknown')}/{message['model']}"
