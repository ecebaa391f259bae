"""Sessions of Gemini CLI: `tmp/PROJECT/chats/session-*.json` or `.jsonl` in its home."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codeloop.app.switch.sessions.foreign_session import (
    ForeignCall,
    ForeignSession,
    join_texts,
    parse_json,
    parse_time,
    read_lines,
)
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON


def list_files(home: Path) -> list[Path]:
    """Return the files of sessions in a home."""
    chats = (home / "tmp").glob("*/chats/*")
    return sorted(file for file in chats if file.suffix in {".json", ".jsonl"})


def read_session(file: Path, directories: Iterable[Path] = ()) -> ForeignSession:
    """Return the session in a file. `directories`: where it may have worked, if only a hash of
    that is known. Raises OSError.
    """
    session = ForeignSession(id=f"gemini {file.stem}", source=file)
    messages = _read_messages(file, session)
    folder = file.parents[1]
    root = folder / ".project_root"
    session.directory = root.read_text(errors="replace").strip() if root.is_file() else ""
    if not session.directory:
        projects = _find_projects(file.parents[3], directories)
        session.directory = projects.get(folder.name, "")
    for message in messages:
        _add_message(session, message)
    return session


def _find_projects(home: Path, directories: Iterable[Path]) -> dict[str, str]:
    """Return the directories of projects by the names of their folders."""
    file = home / "projects.json"
    data: Any = parse_json(file.read_bytes()) if file.is_file() else None
    table: Any = data.get("projects") if is_object(data) else None
    by_path: JSON = table if is_object(table) else {}
    names = {str(name): path for path, name in by_path.items()}
    paths = [*by_path, *map(str, directories)]
    return {
        hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest(): path for path in paths
    } | names


def _read_messages(file: Path, session: ForeignSession) -> list[JSON]:
    messages: list[JSON] = []
    if file.suffix == ".json":
        data: Any = parse_json(file.read_bytes())
        found: Any = data.get("messages") if is_object(data) else None
        session.title = str(data.get("summary") or "") if is_object(data) else ""
        return [each for each in found if is_object(each)] if is_list(found) else []
    for line in read_lines(file):
        changes: Any = line.get("$set")
        if is_object(changes):
            session.title = str(changes.get("summary") or session.title)
            if is_list(changes.get("messages")):
                messages = [each for each in changes["messages"] if is_object(each)]
        elif "$rewindTo" in line:
            ids = [each.get("id") for each in messages]
            if line["$rewindTo"] in ids:
                del messages[ids.index(line["$rewindTo"]) :]
        elif "type" in line and "id" in line:
            # A message is written again when more of it is known.
            messages = [each for each in messages if each.get("id") != line["id"]] + [line]
    return messages


def _add_message(session: ForeignSession, message: JSON) -> None:
    time = parse_time(message.get("timestamp"))
    kind = message.get("type")
    if kind not in ("user", "gemini"):
        return
    is_user = kind == "user"
    thoughts: Any = message.get("thoughts")
    for thought in thoughts if is_list(thoughts) else []:
        if is_object(thought):
            lines = (thought.get("subject"), thought.get("description"))
            text = "\n".join(str(each) for each in lines if each)
            session.add_text(text, is_user=False, time=time, thinking=True)
    text = join_texts(message.get("content"))
    if not (is_user and text.startswith("<session_context>")):
        session.add_text(text, is_user=is_user, time=time)
    calls: Any = message.get("toolCalls")
    for call in calls if is_list(calls) else []:
        if is_object(call):
            given = call.get("args")
            session.add(is_user=False, time=time).pieces.append(
                ForeignCall(
                    str(call.get("id")),
                    str(call.get("name")),
                    given if is_object(given) else {},
                    _read_output(call),
                    is_error=call.get("status") != "success",
                )
            )
    if not is_user and message.get("model") and session.messages:
        session.messages[-1].model = f"google/{message['model']}"


def _read_output(call: JSON) -> str:
    results: Any = call.get("result")
    texts: list[str] = []
    for each in results if is_list(results) else [results]:
        match each:
            case {"functionResponse": {"response": {"output": output}}}:
                texts.append(join_texts(output))
            case {"functionResponse": {"response": response}}:
                texts.append(join_texts(response.get("error") if is_object(response) else response))
            case {"text": str(text)} | str(text):
                texts.append(text)
            case _:
                pass
    return "\n".join(texts) or join_texts(call.get("resultDisplay"))
