"""Asking about a subagent that runs in the background."""

import msgspec

from codeloop.schema.message import AssistantMessage
from codeloop.store.conversation import Entry, last_text
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool


class TaskOutputParams(msgspec.Struct, frozen=True):
    """Which task."""

    task_id: str


@tool("task_output", params=TaskOutputParams, traits=Traits(concurrent=True, permission="task"))
async def task_output(params: TaskOutputParams, ctx: ToolContext) -> ToolResult:
    """Give a task's state and what it said last, from what is stored of it."""
    session = ctx.store.find_session(params.task_id)
    if session is None or session.parent_id != ctx.session_id:
        raise ToolFailure(f"There is no task {params.task_id} of this session.")
    entries = ctx.store.recent(session.id).entries
    state = _state(entries)
    text = last_text(entries) or "(nothing said yet)"
    output = f'<task id="{session.id}" state="{state}">\n<task_result>\n{text}\n</task_result>\n</task>'
    return ToolResult(session.title, output, {"sessionId": session.id, "state": state})


def _state(entries: tuple[Entry, ...]) -> str:
    last = entries[-1].info if entries else None
    if not isinstance(last, AssistantMessage) or last.time.completed is None or last.finish in {"tool-calls", "cut"}:
        return "running"
    return "failed" if last.error is not None else "completed"
