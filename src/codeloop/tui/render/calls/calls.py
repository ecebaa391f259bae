"""The renderer of each tool's calls."""

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style

from codeloop.schema.part import STRUCTURED_OUTPUT, ToolStateCompleted
from codeloop.tui.render.calls.call import MARGIN, CallBody, ToolCall, failure, heading, note_rows
from codeloop.tui.render.calls.files import change, language, read
from codeloop.tui.render.calls.generic import data_answer, generic
from codeloop.tui.render.calls.search import files, grep, web_page, web_search
from codeloop.tui.render.calls.session import batch, invalid, plan_exit, question, skill, task, task_output, todos
from codeloop.tui.render.calls.shell import bash, bash_kill, bash_output
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut, prefix_rows
from codeloop.tui.render.pictures import PictureRow, is_picture, picture_rows
from codeloop.tui.state.items import ToolItem
from codeloop.tui.terminal.images import placeholder

_TOOLS: dict[str, Callable[[ToolCall], CallBody]] = {
    "bash": bash,
    "bash_output": bash_output,
    "bash_kill": bash_kill,
    "read": read,
    "write": change,
    "edit": change,
    "multiedit": change,
    "apply_patch": change,
    "lsp": language,
    "grep": grep,
    "glob": files,
    "list": files,
    "webfetch": web_page,
    "websearch": web_search,
    "codesearch": web_search,
    "todowrite": todos,
    "todoread": todos,
    "task": task,
    "task_output": task_output,
    "question": question,
    "skill": skill,
    "plan_exit": plan_exit,
    "batch": batch,
    "invalid": invalid,
    STRUCTURED_OUTPUT: data_answer,
}


def call_rows(item: ToolItem, canvas: Canvas, now: int) -> list[Row]:
    """Return a call as rows; `now`: ms since the epoch, for how long it has been running."""
    call = ToolCall(item, canvas, now)
    body = _TOOLS.get(call.tool, generic)(call)
    first = heading(call, body)
    if not canvas.details and not call.is_open:
        return [first]
    rows = [*body.rows, *failure(call), *note_rows(call)]
    return [first, *prefix_rows(rows, Segment(" " * MARGIN)), *_attachment_rows(call)]


def _attachment_rows(call: ToolCall) -> list[Row]:
    """Draw the attachments of a result: for each picture or document a row of words, then the picture."""
    state = call.part.state
    files = state.attachments if isinstance(state, ToolStateCompleted) else None
    margin, look = Segment(" " * MARGIN), call.style("text_muted")
    rows: list[Row] = []
    for file in files or ():
        words = Segment(placeholder(file), look + Style(meta={"image": file.id}))
        row = [margin, *cut([words], call.room)]
        rows.append(PictureRow(row) if is_picture(file) else row)
        rows += picture_rows(file, call.canvas.pictures, call.room + MARGIN, [margin], Style())
    return rows
