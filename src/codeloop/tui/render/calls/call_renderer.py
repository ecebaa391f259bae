"""`draw_call` draws a tool call: which function renders the calls of which tool, and what all calls have in common."""

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style

from codeloop.schema.part import STRUCTURED_OUTPUT_TOOL, ToolStateCompleted
from codeloop.tui.render.attachments import describe_attachment
from codeloop.tui.render.calls.file_calls import (
    render_change,
    render_language_server,
    render_read,
)
from codeloop.tui.render.calls.generic_calls import (
    render_data_answer,
    render_generic,
)
from codeloop.tui.render.calls.search_calls import (
    render_files,
    render_grep,
    render_web_page,
    render_web_search,
)
from codeloop.tui.render.calls.session_calls import (
    render_batch,
    render_invalid,
    render_plan_exit,
    render_question,
    render_skill,
    render_task,
    render_task_output,
    render_todos,
)
from codeloop.tui.render.calls.shell_calls import (
    render_bash,
    render_bash_kill,
    render_bash_output,
)
from codeloop.tui.render.calls.tool_call import CALL_MARGIN, CallBody, ToolCall, draw_failure, draw_heading, draw_notes
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line, prefix_rows
from codeloop.tui.render.picture_rows import PictureRow, is_picture, reserve_rows
from codeloop.tui.state.conversation_items import ToolItem

_RENDERERS: dict[str, Callable[[ToolCall], CallBody]] = {
    "bash": render_bash,
    "bash_output": render_bash_output,
    "bash_kill": render_bash_kill,
    "read": render_read,
    "write": render_change,
    "edit": render_change,
    "multiedit": render_change,
    "apply_patch": render_change,
    "lsp": render_language_server,
    "grep": render_grep,
    "glob": render_files,
    "list": render_files,
    "webfetch": render_web_page,
    "websearch": render_web_search,
    "codesearch": render_web_search,
    "todowrite": render_todos,
    "todoread": render_todos,
    "task": render_task,
    "task_output": render_task_output,
    "question": render_question,
    "skill": render_skill,
    "plan_exit": render_plan_exit,
    "batch": render_batch,
    "invalid": render_invalid,
    STRUCTURED_OUTPUT_TOOL: render_data_answer,
}


def draw_call(item: ToolItem, canvas: Canvas, now: int) -> list[Row]:
    """Return a call as rows; `now`: ms since the epoch, for how long it has been running."""
    call = ToolCall(item, canvas, now)
    body = _RENDERERS.get(call.tool, render_generic)(call)
    heading = draw_heading(call, body)
    if not canvas.details and not call.is_open:
        return [heading]
    rows = [*body.rows, *draw_failure(call), *draw_notes(call)]
    return [heading, *prefix_rows(rows, Segment(" " * CALL_MARGIN)), *_draw_attachments(call)]


def _draw_attachments(call: ToolCall) -> list[Row]:
    """Return the rows of a result's attachments: for each a row that describes it, and below that a picture's rows."""
    state = call.part.state
    files = state.attachments if isinstance(state, ToolStateCompleted) else None
    margin = Segment(" " * CALL_MARGIN)
    rows: list[Row] = []
    for file in files or ():
        caption = Segment(describe_attachment(file), call.style("text_muted") + Style(meta={"image": file.id}))
        row = [margin, *cut_line([caption], call.room)]
        rows.append(PictureRow(row) if is_picture(file) else row)
        rows += reserve_rows(file, call.canvas.pictures, call.room + CALL_MARGIN, [margin], Style())
    return rows
