"""What the model has been shown of files already, so that `read` and `grep` do not repeat it.

It is derived from the stored results that the next request contains, so it is right after a
restart, after an undo and in a fork, and a subagent begins without any. Results that were cut,
compacted or superseded, and those that only refer to an earlier one, do not count.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from codeloop.schema.part import ToolStateCompleted
from codeloop.schema.wire import JSON
from codeloop.tool.superseded_outputs import UNCHANGED_KEY

INSTRUCTIONS_TEMPLATE = (
    "<system-reminder>\nInstructions for this folder, from {name}:\n{words}\n</system-reminder>"
)
"""The text by which a folder's instructions are added to the result of `read`."""

ShownResults = Iterable[tuple[str, ToolStateCompleted]]
"""The results of `CallSession.list_results_in_next_request`,
oldest first: the tool's name and the call's state.
"""


def find_lines_read(results: ShownResults, *paths: str) -> dict[str, dict[int, str]]:
    """Return the lines of files, by path and number, that calls of `read` returned."""
    lines: dict[str, dict[int, str]] = {path: {} for path in paths}
    for tool, state in results:
        display: JSON = (state.metadata.get("display") or {}) if tool == "read" else {}
        if (path := display.get("path")) in lines:
            lines[path].update(_get_read_lines(state, path))
    return lines


def find_shown_instructions(results: ShownResults, name: str, file: Path) -> str | None:
    """Return the text of an instruction file as the model was last shown it; None: it was not.

    `name`: the path by which the model knows the file.
    """
    latest: str | None = None
    # A NUL character, which no text has, marks the place of the text in the template.
    start, end = INSTRUCTIONS_TEMPLATE.format(name=name, words="\0").split("\0")
    for tool, state in results:
        single_call = {"tool": tool, "metadata": state.metadata}
        calls: list[JSON] = state.metadata.get("details", []) if tool == "batch" else [single_call]
        texts = [
            _get_whole_text(each["metadata"], file) for each in calls if each["tool"] == "read"
        ]
        if "outputPath" not in state.metadata:
            latest = next((text for text in reversed(texts) if text is not None), latest)
        if start in state.output:
            latest = state.output.rpartition(start)[2].partition(end)[0]
    return latest


def _get_read_lines(state: ToolStateCompleted, path: str) -> dict[int, str]:
    """Return the lines of a file in the result of a `read`, by number;
    none if the result was cut.
    """
    display: JSON = state.metadata.get("display") or {}
    is_whole = "outputPath" not in state.metadata and UNCHANGED_KEY not in state.metadata
    if display.get("path") != path or not display.get("lineEnd") or not is_whole:
        return {}
    return dict(enumerate(str(display["text"]).split("\n"), int(display["lineStart"])))


def _get_whole_text(metadata: JSON, file: Path) -> str | None:
    """Return a file's text if the metadata is that of a `read` of all its lines, else None."""
    display: JSON = metadata.get("display") or {}
    is_whole = display.get("lineStart") == 1 and display.get("lineEnd") == display.get("totalLines")
    is_file = (
        is_whole
        and UNCHANGED_KEY not in metadata
        and Path(os.path.realpath(display["path"])) == file
    )
    return str(display["text"]).strip() if is_file else None
