"""The tool `task_output`: returns the state and the last text of a subagent,
such as one in the background.
"""

import msgspec

from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool

# Tasks that the error for an unknown id names.
_MAX_NAMED_TASKS = 10


class TaskOutputParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `task_output`: the id of the task."""

    task_id: str


@tool("task_output", params=TaskOutputParams, traits=Traits(concurrent=True, permission="task"))
async def task_output(params: TaskOutputParams, ctx: ToolContext) -> ToolResult:
    """Return the stored state and last text of a task, without waiting."""
    report = ctx.session.report_on_subagent(params.task_id)
    if report is None:
        names = (
            ", ".join(
                f"{one.id} ({one.title})" for one in ctx.session.list_subagents()[:_MAX_NAMED_TASKS]
            )
            or "none"
        )
        hint = (
            " Ask bash_output about a background command."
            if params.task_id.startswith("bash_")
            else ""
        )
        raise ToolFailure(
            f"There is no task {params.task_id} in this session.{hint} Known: {names}."
        )
    text = report.text or "(nothing said yet)"
    why = f"\n{report.reason}" if report.reason else ""
    output = (
        f'<task id="{report.session_id}" '
        f'state="{report.state}">{why}\n<task_result>\n{text}\n</task_result>\n</task>'
    )
    metadata = {"sessionId": report.session_id, "state": report.state, "report": report.text}
    return ToolResult(report.title, output, metadata)
