"""Sessions of Codex: `sessions/YEAR/MONTH/DAY/rollout-*.jsonl` in its home, an item a line."""

from pathlib import Path
from typing import Any

from codeloop.app.switch.sessions.foreign_session import (
    ForeignCall,
    ForeignImage,
    ForeignSession,
    join_texts,
    parse_json,
    parse_time,
    read_lines,
)
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

# What Codex itself puts in front of prompts.
_OWN_TEXTS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "# AGENTS.md instructions",
)
# Tuples: a value that is no text is in no set.
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


def list_files(home: Path) -> list[Path]:
    """Return the files of sessions in a home, archived ones too."""
    folders = ("sessions", "archived_sessions")
    return sorted(file for name in folders for file in (home / name).rglob("rollout-*.jsonl"))


def read_session(file: Path) -> ForeignSession:
    """Return the session in a file. Raises OSError."""
    session = ForeignSession(id=f"codex {file.stem}", source=file)
    model = ""
    for line in read_lines(file):
        payload: Any = line.get("payload", line)
        if not is_object(payload):
            continue
        match line.get("type"):
            case "session_meta":
                session.directory = str(payload.get("cwd") or "")
            case "turn_context":
                session.directory = session.directory or str(payload.get("cwd") or "")
                model = f"openai/{payload['model']}" if payload.get("model") else model
            case "event_msg" | "compacted":
                pass
            case _:
                _add_item(session, payload, parse_time(line.get("timestamp")), model)
    return session


def _add_item(session: ForeignSession, item: JSON, time: int, model: str) -> None:
    kind = item.get("type")
    if kind == "message":
        if item.get("role") not in ("user", "assistant"):
            return
        is_user = item["role"] == "user"
        content = item.get("content")
        for block in content if is_list(content) else [{"text": content}]:
            if not is_object(block):
                continue
            text, image = block.get("text"), block.get("image_url")
            if isinstance(image, str) and image.startswith("data:") and ";base64," in image:
                mime, _, data = image.removeprefix("data:").partition(";base64,")
                session.add(is_user=is_user, time=time).pieces.append(ForeignImage(mime, data))
            elif not (is_user and str(text).lstrip().startswith(_OWN_TEXTS)):
                session.add_text(text, is_user=is_user, time=time)
        if not is_user and session.messages:
            session.messages[-1].model = model
    elif kind == "reasoning":
        thinking = join_texts(item.get("summary"))
        session.add_text(thinking, is_user=False, time=time, thinking=True)
    elif kind in _CALLS:
        call_id = str(item.get("call_id") or item.get("id") or "")
        given: Any = item.get("arguments", item.get("input", item.get("action")))
        value = parse_json(given) if isinstance(given, str) else given
        arguments = value if is_object(value) else {"input": given}
        name = str(item.get("name") or "local_shell")
        if name == "apply_patch" and "input" in arguments:
            arguments = {"patchText": arguments["input"]}
        session.add(is_user=False, time=time, model=model).pieces.append(
            ForeignCall(call_id, name, arguments)
        )
    elif kind in _RESULTS:
        output: Any = item.get("output")
        value = parse_json(output) if isinstance(output, str) else output
        if is_object(value) and ("output" in value or "content" in value):
            has_failed = value.get("success") is False
            text = join_texts(value.get("output", value.get("content")))
        else:
            has_failed, text = False, join_texts(output)
        # What its commands print comes after a line that says so.
        if text.startswith(("Chunk ID:", "Wall time:", "Exit code:")):
            text = text.partition("\nOutput:\n")[2] or text
        session.add_result(item.get("call_id"), text, is_error=has_failed)
