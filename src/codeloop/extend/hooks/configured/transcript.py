"""Writes a session's messages as JSON lines, in the transcript format of Claude Code's scripts."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from codeloop.extend.hooks.configured.script_names import (
    convert_to_script_inputs,
    list_script_names,
)
from codeloop.kit.small_files import create_private_folder, write_atomically
from codeloop.schema.bounds.extension import HOOK_TRANSCRIPT, HOOK_TRANSCRIPTS
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import JSON
from codeloop.store.conversation import Conversation, Entry
from codeloop.store.store import Store

TRANSCRIPTS_FOLDER = "transcripts"
# Of so many sessions the written conversation is kept in memory, to see whether a file is current.
_MAX_CACHED_SESSIONS = 16


class Transcripts:
    """The transcript files of a project, each updated when a hook is called.

    `home`: the folder of the project's data.
    """

    def __init__(self, store: Store, home: Path, directory: Path) -> None:
        self._store = store
        self._folder = home / TRANSCRIPTS_FOLDER
        self._directory = directory
        self._written: dict[str, Conversation] = {}
        """By session: the conversation as its file holds it."""

    async def update_file(self, session_id: str) -> Path | None:
        """Return the updated file of a session; None: no such session,
        or the file can't be written.
        """
        if self._store.find_session(session_id) is None:
            return None
        conversation = self._store.read_context(session_id)
        file = get_transcript_path(self._folder.parent, session_id)
        if self._written.get(session_id) is not conversation or not file.exists():
            entries = self._store.read_conversation(session_id).entries
            try:
                # In a thread, since a long session takes a while to write.
                await asyncio.to_thread(self._write, file, session_id, entries)
            except OSError:
                return None
            # Popped first, so that the session moves to the end: the first one is
            # the one used longest ago.
            self._written.pop(session_id, None)
            self._written[session_id] = conversation
            if len(self._written) > _MAX_CACHED_SESSIONS:
                del self._written[next(iter(self._written))]
        return file

    def _write(self, file: Path, session_id: str, entries: tuple[Entry, ...]) -> None:
        lines: list[bytes] = []
        bytes_left = HOOK_TRANSCRIPT.value
        # From the newest: when the file would be too large, the oldest messages are left out.
        for entry in reversed(entries):
            encoded_lines = [
                msgspec.json.encode(line)
                for line in _format_entry(entry, session_id, self._directory)
            ]
            bytes_left -= sum(len(line) + 1 for line in encoded_lines)
            if bytes_left < 0:
                break
            lines += reversed(encoded_lines)
        create_private_folder(self._folder)
        write_atomically(file, b"".join(line + b"\n" for line in reversed(lines)))
        for old in sorted(self._folder.glob("*.jsonl"), key=_read_mtime)[: -HOOK_TRANSCRIPTS.value]:
            old.unlink(missing_ok=True)


def get_transcript_path(home: Path, session_id: str) -> Path:
    """Return the transcript file of a session."""
    return home / TRANSCRIPTS_FOLDER / f"{session_id}.jsonl"


def remove_transcripts(home: Path, sessions: list[str]) -> None:
    """Remove the files of sessions."""
    for session_id in sessions:
        with suppress(OSError):
            get_transcript_path(home, session_id).unlink(missing_ok=True)


def _read_mtime(file: Path) -> float:
    with suppress(OSError):
        return file.stat().st_mtime
    return 0.0


def _format_entry(entry: Entry, session_id: str, directory: Path) -> Iterator[JSON]:
    """Yield the lines of a message: a second one for the results of an answer's calls,
    which are the user's there.
    """
    info = entry.info
    stamp = datetime.fromtimestamp(info.time.created / 1000, UTC).isoformat().replace("+00:00", "Z")
    line: JSON = {
        "uuid": info.id,
        "sessionId": session_id,
        "timestamp": stamp,
        "cwd": str(directory),
    }
    if not isinstance(info, AssistantMessage):
        texts = [
            {"type": "text", "text": part.text}
            for part in entry.parts
            if isinstance(part, TextPart)
        ]
        yield {**line, "type": "user", "message": {"role": "user", "content": texts}}
        return
    tokens = info.tokens
    usage = {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_read_input_tokens": tokens.cache.read,
        "cache_creation_input_tokens": tokens.cache.write,
    }
    content = [block for part in entry.parts for block in _format_part(part, directory)]
    message = {
        "id": info.id,
        "role": "assistant",
        "model": info.model_id,
        "content": content,
        "usage": usage,
    }
    yield {**line, "type": "assistant", "parentUuid": info.parent_id, "message": message}
    results = [
        block
        for part in entry.parts
        if isinstance(part, ToolPart)
        for block in _format_result(part)
    ]
    if results:
        results_line = {**line, "uuid": f"{info.id}-results", "parentUuid": info.id}
        yield {**results_line, "type": "user", "message": {"role": "user", "content": results}}


def _format_part(part: Part, directory: Path) -> Iterator[JSON]:
    match part:
        case TextPart(text=text):
            yield {"type": "text", "text": text}
        case ReasoningPart(text=text):
            yield {"type": "thinking", "thinking": text}
        case ToolPart(tool=tool, call_id=call_id, state=state):
            shown_input = convert_to_script_inputs(tool, state.input, directory)[0]
            yield {
                "type": "tool_use",
                "id": call_id,
                "name": list_script_names(tool)[0],
                "input": shown_input,
            }
        case _:
            pass


def _format_result(part: ToolPart) -> Iterator[JSON]:
    match part.state:
        case ToolStateCompleted(output=output):
            yield {"type": "tool_result", "tool_use_id": part.call_id, "content": output}
        case ToolStateError(error=error):
            yield {
                "type": "tool_result",
                "tool_use_id": part.call_id,
                "content": error,
                "is_error": True,
            }
        case _:
            pass
