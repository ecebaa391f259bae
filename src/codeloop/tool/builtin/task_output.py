"""Asking about a subagent that runs in the background."""

import msgspec

from codeloop.store.conversation import last_text
from codeloop.store.standing import standing_of
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
    standing = standing_of(ctx.store, session)
    state = standing.state if standing else "done"
    text = last_text(ctx.store.recent(session.id).entries) or "(nothing said yet)"
    why = f"\n{standing.reason}" if standing and standing.reason else ""
    output = f'<task id="{session.id}" state="{state}">{why}\n<task_result>\n{text}\n</task_result>\n</task>'
    return ToolResult(session.title, output, {"sessionId": session.id, "state": state})
