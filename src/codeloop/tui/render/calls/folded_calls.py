"""Draws the line that stands for calls in a row which only read or search."""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.tui.render.calls.tool_call import count_things, make_relative_path
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line
from codeloop.tui.state.conversation_items import FoldItem

_MAX_SUBJECT_LENGTH = 200
"""Characters of a path or a pattern."""


def draw_fold(item: FoldItem, canvas: Canvas) -> list[Row]:
    """Return the line as its row: how many files were read and searches made, and which."""
    click = Style(meta={"toggle": item.key})
    is_running = not all(isinstance(call.state, ToolStateCompleted) for call in item.calls)
    mark, colour = ("●", "primary") if is_running else ("✓", "text_muted")
    reads = [call for call in item.calls if call.tool == "read"]
    paths = [*dict.fromkeys(_list_paths(reads, canvas.directory))]
    counts = [f"read {count_things(len(paths) or len(reads), 'file')}"] if reads else []
    if searches := [call for call in item.calls if call.tool != "read"]:
        counts.append(f"searched {count_things(len(searches), 'time')}")
    subjects = ", ".join(
        one_line(each, _MAX_SUBJECT_LENGTH) for each in [*paths, *_list_patterns(searches)]
    )
    row = [
        Segment(f"{mark} ", canvas.styles.of(colour) + click),
        Segment(", ".join(counts), canvas.styles.of("text_muted", "bold") + click),
        Segment(
            f"  {subjects}" if subjects and not item.is_open else "",
            canvas.styles.of("text_muted") + click,
        ),
    ]
    return [cut_line(row, canvas.width)]


def _list_paths(calls: Iterable[ToolPart], directory: str) -> Iterable[str]:
    """Yield the path of each call that names one."""
    for call in calls:
        path = call.state.input.get("filePath") or call.state.input.get("path")
        if isinstance(path, str) and path:
            yield make_relative_path(path, directory)


def _list_patterns(calls: Iterable[ToolPart]) -> Iterable[str]:
    """Yield what each search looked for, or the folder that was listed."""
    for call in calls:
        subject = call.state.input.get("pattern") or call.state.input.get("path") or "."
        yield str(subject)
