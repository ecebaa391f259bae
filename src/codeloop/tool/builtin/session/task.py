"""Handing work to a subagent."""

from typing import Annotated

import msgspec

from codeloop.schema.permission import Need
from codeloop.tool.builtin.session.fan_out import check_fan_out
from codeloop.tool.tool import Subtask, ToolContext, ToolResult, Traits, tool


class TaskParams(msgspec.Struct, frozen=True):
    """What to hand over, and to whom."""

    description: Annotated[str, msgspec.Meta(description="3 to 5 words")]
    prompt: str
    subagent_type: str
    task_id: Annotated[str, msgspec.Meta(description="continue this earlier task")] | None = None
    run_in_background: bool = False


@tool("task", params=TaskParams, traits=Traits(concurrent=True))
async def task(params: TaskParams, ctx: ToolContext) -> ToolResult:
    """Run the subagent and return its last text, or start it and return its id."""
    metadata = {"description": params.description, "subagent_type": params.subagent_type}
    await ctx.ask(Need(permission="task", patterns=(params.subagent_type,), always=("*",), metadata=metadata))
    if params.task_id is None:
        await check_fan_out(ctx)
    result = await ctx.spawn(
        Subtask(
            agent=params.subagent_type,
            description=params.description,
            prompt=params.prompt,
            session_id=params.task_id,
            background=params.run_in_background,
        )
    )
    text = result.text.strip() or f"(It ended without a report. To ask for one, give task_id {result.session_id}.)"
    output = f'<task id="{result.session_id}" state="{result.state}">\n<task_result>\n{text}\n</task_result>\n</task>'
    report = {"report": result.text.strip()} if result.state == "completed" else {}
    return ToolResult(params.description, output, result.metadata | report)
