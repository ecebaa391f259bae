"""Formats tool calls for editors: title, kind, status, diffs, output, files. Pure."""

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, cast

from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError, ToolStatePending, ToolStateRunning
from codeloop.schema.wire import JSON

_KINDS = {
    **dict.fromkeys(("read", "list", "lsp", "skill", "bash_output"), "read"),
    **dict.fromkeys(("glob", "grep"), "search"),
    **dict.fromkeys(("edit", "multiedit", "write", "apply_patch"), "edit"),
    **dict.fromkeys(("bash", "bash_kill"), "execute"),
    **dict.fromkeys(("webfetch", "websearch"), "fetch"),
    **dict.fromkeys(("task", "todowrite", "todoread"), "think"),
    "plan_exit": "switch_mode",
}
"""The protocol's kind of each tool, by which editors choose an icon; every other tool is of the kind `other`."""
_TITLE = 200
_SUBJECTS = ("command", "filePath", "path", "pattern", "url", "query", "description", "name")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,\d+)? @@.*$", re.MULTILINE)
_FILE = re.compile(r"^Index: (.*)$", re.MULTILINE)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


def describe_call(
    part: ToolPart, directory: str, diffs: Callable[[JSON, str], list[JSON]], *, terminal: str | None
) -> JSON:
    """Describe a call in its present state.

    `directory`: what relative paths are relative to, absolute. `diffs` returns what changes as content. `terminal`: the
    id of the terminal that shows the output; None: it is text.
    """
    state = part.state
    metadata: JSON = {}
    output, error = "", ""
    match state:
        case ToolStatePending():
            status = "pending"
        case ToolStateRunning():
            status, metadata = "in_progress", state.metadata or {}
            output = str(metadata.get("output") or "")
        case ToolStateCompleted():
            status, metadata, output = "completed", state.metadata, state.for_user
        case ToolStateError():
            status, metadata, error = "failed", state.metadata or {}, state.error
    title = getattr(state, "title", None) or ""
    call: JSON = {
        "toolCallId": part.id,
        "name": part.tool,
        "title": title_of(part.tool, state.input, title),
        "kind": kind_of(part.tool),
        "status": status,
        "rawInput": state.input,
        "content": [*diffs(metadata, directory), *_output_of(part.tool, metadata, output, error)],
    }
    if terminal is not None:
        call["content"] = [{"type": "terminal", "terminalId": terminal}, *_texts_of(metadata, error)]
    elif isinstance(state, ToolStateCompleted) and not any(each["type"] == "content" for each in call["content"]):
        call["rawOutput"] = {"output": state.for_user}  # some clients show both
    if locations := _locations_of(state.input, metadata, directory):
        call["locations"] = locations
    if part.tool == "task" and isinstance(child := metadata.get("sessionId"), str):
        call["_meta"] = {"codeloop": {"sessionId": child}}
    return call


def find_terminal(part: ToolPart, terminal_ids: AbstractSet[str]) -> str | None:
    """Return the terminal of the editor that a command runs in; None: it has none that the editor can show."""
    metadata: JSON = getattr(part.state, "metadata", None) or {}
    terminal_id = metadata.get("terminal")
    return terminal_id if isinstance(terminal_id, str) and terminal_id in terminal_ids else None


def kind_of(tool: str) -> str:
    """Return the protocol's kind of a tool."""
    return _KINDS.get(tool, "other")


def title_of(tool: str, arguments: JSON, title: str) -> str:
    """Return one line that says what a call does: a command as it is, else the tool and what it is about."""
    command = arguments.get("command")
    if tool == "bash" and isinstance(command, str) and command:
        return one_line(command.replace("\n", "⏎"), _TITLE)
    subject = title or next((str(arguments[key]) for key in _SUBJECTS if arguments.get(key)), "")
    return one_line(f"{tool} {subject}".strip(), _TITLE)


def patches_of(metadata: JSON, directory: str) -> Iterator[tuple[str, str]]:
    """Yield each file that a call changes, or wants to change: its absolute path and the patch of it."""
    patch = metadata.get("diff")
    if isinstance(patch, str) and patch:
        pieces = _FILE.split(patch)
        for path, text in zip(pieces[1::2], pieces[2::2], strict=True):
            yield _absolute(path.strip(), directory), text


def as_code(text: str, language: str = "") -> JSON:
    """Return a text as content that is shown as it is."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return as_text(f"{fence}{language}\n{text.rstrip()}\n{fence}")


def as_text(text: str) -> JSON:
    """Return a text as content."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def hunks_of(text: str) -> Iterator[JSON]:
    """Yield each hunk of a patch as the text before and after it."""
    heads = list(_HUNK.finditer(text))
    for at, head in enumerate(heads):
        end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        old, new = list[str](), list[str]()
        for line in text[head.end() : end].lstrip("\n").splitlines():
            sign, text_of_line = line[:1], line[1:]
            if sign in {" ", "-", ""}:
                old.append(text_of_line)
            if sign in {" ", "+", ""}:
                new.append(text_of_line)
        is_new = head[1] == "0" and head[2] == "0"
        yield {"oldText": None if is_new else "\n".join(old), "newText": "\n".join(new)}


def _output_of(tool: str, metadata: JSON, output: str, error: str) -> Iterator[JSON]:
    if error:
        yield as_text(escape_controls(error))
    elif kind_of(tool) == "edit" or tool in {"read", "todowrite"} or not output.strip():
        return  # the diff, the plan and the location say it
    elif tool == "task":
        yield as_text(escape_controls(output))
    else:
        yield as_code(escape_controls(_ANSI.sub("", output)), "console" if tool == "bash" else "")
    yield from _texts_of(metadata, "")


def _texts_of(metadata: JSON, error: str) -> Iterator[JSON]:
    """Yield an error, and the notes on a call, which are not part of its output."""
    if error:
        yield as_text(escape_controls(error))
    if isinstance(notes := metadata.get("notes"), list):
        yield from (as_text(escape_controls(str(note))) for note in cast("list[object]", notes))


def _locations_of(arguments: JSON, metadata: JSON, directory: str) -> list[JSON]:
    files: Any = metadata.get("files")
    if isinstance(files, list):
        rows = [cast("JSON", each) for each in cast("list[Any]", files) if isinstance(each, dict)]
        return [{"path": _absolute(str(row["file"]), directory)} for row in rows if row.get("file")]
    path = arguments.get("filePath") or arguments.get("path")
    if not isinstance(path, str) or not path:
        return []
    location: JSON = {"path": _absolute(path, directory)}
    patch = metadata.get("diff")
    offset = arguments.get("offset")
    if isinstance(patch, str) and (hunk := _HUNK.search(patch)) is not None:
        before = takewhile(lambda line: line.startswith(" "), patch[hunk.end() :].lstrip("\n").splitlines())
        location["line"] = max(int(hunk[3]) + sum(1 for _ in before), 1)
    elif isinstance(offset, int) and offset > 0:
        location["line"] = offset
    return [location]


def _absolute(path: str, directory: str) -> str:
    return str(PurePosixPath(directory) / path)
