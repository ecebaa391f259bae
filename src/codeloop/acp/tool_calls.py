"""Converts tool calls to the protocol's form: title, kind, status, diffs, output and files."""

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, cast

from codeloop.client.formatting import find_subject
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.part import (
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
)
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
"""The protocol's kind of each tool, by which editors choose an icon;
every other tool is of the kind `other`.
"""
_TITLE_CHARS = 200
# Such as `@@ -12,7 +12,8 @@ def main():`. Groups: the first old line, the number of old lines,
# the first new line.
_HUNK_HEADER = r"(?m)^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,\d+)? @@.*$"
# Such as `Index: src/main.py`: begins the patch of a file.
_FILE_HEADER = r"(?m)^Index: (.*)$"
# Sequences that control a terminal, such as `ESC [1;31m` and `ESC ]0;title BEL`.
_ESCAPE_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])"


def describe_call(
    part: ToolPart,
    directory: str,
    make_diff_content: Callable[[JSON, str], list[JSON]],
    *,
    terminal_id: str | None,
) -> JSON:
    """Convert a call in its present state to the form of version 1, but for its diffs.

    `directory`: the base of relative paths. `make_diff_content`: makes the diffs,
    in the form of the editor's version.
    `terminal_id`: the terminal that shows the output; None: the output is sent as text.
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
        "title": make_title(part.tool, state.input, title),
        "kind": find_kind(part.tool),
        "status": status,
        "rawInput": state.input,
        "content": [
            *make_diff_content(metadata, directory),
            *_build_output(part.tool, metadata, output, error),
        ],
    }
    if terminal_id is not None:
        call["content"] = [
            {"type": "terminal", "terminalId": terminal_id},
            *_build_notes(metadata, error),
        ]
    elif isinstance(state, ToolStateCompleted) and not any(
        each["type"] == "content" for each in call["content"]
    ):
        # Only where no content was sent: some editors show both.
        call["rawOutput"] = {"output": state.for_user}
    if locations := _build_locations(state.input, metadata, directory):
        call["locations"] = locations
    if part.tool == "task" and isinstance(child := metadata.get("sessionId"), str):
        call["_meta"] = {"codeloop": {"sessionId": child}}
    return call


def find_terminal(part: ToolPart, terminal_ids: AbstractSet[str]) -> str | None:
    """Return the id of the editor's terminal that a command runs in;
    None: it runs in none of this editor.
    """
    metadata: JSON = getattr(part.state, "metadata", None) or {}
    terminal_id = metadata.get("terminal")
    return terminal_id if isinstance(terminal_id, str) and terminal_id in terminal_ids else None


def find_kind(tool: str) -> str:
    """Return the protocol's kind of a tool."""
    return _KINDS.get(tool, "other")


def make_title(tool: str, arguments: JSON, title: str) -> str:
    """Make a title of one line: the command of a shell call, else the tool and its subject."""
    command = arguments.get("command")
    if tool == "bash" and isinstance(command, str) and command:
        return one_line(command.replace("\n", "⏎"), _TITLE_CHARS)
    return one_line(f"{tool} {title or find_subject(arguments)}".strip(), _TITLE_CHARS)


def list_patches(metadata: JSON, directory: str) -> Iterator[tuple[str, str]]:
    """Yield the absolute path and the patch of each file that a call changes, or asks to change."""
    patch = metadata.get("diff")
    if isinstance(patch, str) and patch:
        # What is before the first header, then by turns a path and its patch.
        pieces = re.split(_FILE_HEADER, patch)
        for path, text in zip(pieces[1::2], pieces[2::2], strict=True):
            yield _make_absolute(path.strip(), directory), text


def make_code_content(text: str, language: str = "") -> JSON:
    """Make content that is shown verbatim: editors render text as Markdown."""
    # A fence must be longer than every run of backticks in the text.
    max_run = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (max_run + 1)
    return make_text_content(f"{fence}{language}\n{text.rstrip()}\n{fence}")


def make_text_content(text: str) -> JSON:
    """Make content of a text, which editors render as Markdown."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def list_hunks(patch: str) -> Iterator[JSON]:
    """Yield each hunk of a file's patch as `oldText` (None: the file is new) and `newText`."""
    headers = list(re.finditer(_HUNK_HEADER, patch))
    ends = [*(header.start() for header in headers[1:]), len(patch)]
    for header, end in zip(headers, ends, strict=False):
        old_lines, new_lines = list[str](), list[str]()
        for line in patch[header.end() : end].lstrip("\n").splitlines():
            sign, text = line[:1], line[1:]
            # Some programs write an empty context line without its leading space.
            if sign in {" ", "-", ""}:
                old_lines.append(text)
            if sign in {" ", "+", ""}:
                new_lines.append(text)
        # `@@ -0,0 +1,5 @@`: there were no lines before.
        is_new_file = header[1] == "0" and header[2] == "0"
        yield {
            "oldText": None if is_new_file else "\n".join(old_lines),
            "newText": "\n".join(new_lines),
        }


def _build_output(tool: str, metadata: JSON, output: str, error: str) -> Iterator[JSON]:
    """Yield the error or the output as content, then the notes of the call;
    nothing for what is shown otherwise.
    """
    if error:
        yield make_text_content(escape_controls(error))
    elif find_kind(tool) == "edit" or tool in {"read", "todowrite"} or not output.strip():
        # The diff, the plan and the location show it already.
        return
    elif tool == "task":
        yield make_text_content(escape_controls(output))
    else:
        yield make_code_content(
            escape_controls(re.sub(_ESCAPE_SEQUENCE, "", output)),
            "console" if tool == "bash" else "",
        )
    yield from _build_notes(metadata, "")


def _build_notes(metadata: JSON, error: str) -> Iterator[JSON]:
    """Yield the error and the notes of a call as content; they are not part of its output."""
    if error:
        yield make_text_content(escape_controls(error))
    if isinstance(notes := metadata.get("notes"), list):
        yield from (
            make_text_content(escape_controls(str(note))) for note in cast("list[object]", notes)
        )


def _build_locations(arguments: JSON, metadata: JSON, directory: str) -> list[JSON]:
    """Return the files that a call works on, with the line to show where one is known."""
    files: Any = metadata.get("files")
    if isinstance(files, list):
        rows = [cast("JSON", each) for each in cast("list[Any]", files) if isinstance(each, dict)]
        return [
            {"path": _make_absolute(str(row["file"]), directory)} for row in rows if row.get("file")
        ]
    path = arguments.get("filePath") or arguments.get("path")
    if not isinstance(path, str) or not path:
        return []
    location: JSON = {"path": _make_absolute(path, directory)}
    patch = metadata.get("diff")
    offset = arguments.get("offset")
    if isinstance(patch, str) and (hunk := re.search(_HUNK_HEADER, patch)) is not None:
        # The editor jumps to the first changed line, not to the context above it.
        context = takewhile(
            lambda line: line.startswith(" "), patch[hunk.end() :].lstrip("\n").splitlines()
        )
        location["line"] = max(int(hunk[3]) + sum(1 for _ in context), 1)
    elif isinstance(offset, int) and offset > 0:
        location["line"] = offset
    return [location]


def _make_absolute(path: str, directory: str) -> str:
    return str(PurePosixPath(directory) / path)
