"""The tool `task`: has a subagent do a task;
asks the user before one turn starts many subagents.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from codeloop.schema.bounds.session import FAN_OUT_SETTLE, FAN_OUT_WAIT
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.permission import Need
from codeloop.tool.services import FanOutLimit
from codeloop.tool.tool import Subtask, ToolContext, ToolFailure, ToolResult, Traits, tool

# Between two looks for further calls of the model.
_POLL_SECONDS = 0.1


async def _check_fan_out(ctx: ToolContext) -> None:
    """Ask the user if this turn has started as many subagents as it may without a question.

    The answer holds for the whole turn. Raises Denied or Rejected if the user refuses, and
    ToolFailure for the calls after that.
    """
    limit = ctx.services.fan_out
    if limit is None:
        return
    tasks = ctx.session.find_task_calls()
    turn = tasks.prompt_id
    own_index = next(
        (index for index, call in enumerate(tasks.calls) if call.call_id == ctx.call_id), 0
    )
    if own_index < limit.max_subagents or limit.allowed_turns.get(ctx.session_id) == turn:
        return
    async with limit.locks.setdefault(ctx.session_id, asyncio.Lock()):
        if limit.allowed_turns.get(ctx.session_id) == turn:
            return
        if limit.refused_turns.get(ctx.session_id) == turn:
            raise ToolFailure(
                f"Not started: this turn may start no more than {limit.max_subagents} subagents."
            )
        calls = await _wait_for_calls(ctx, len(tasks.calls))
        # Set before the question, so that the turn counts as refused when `ask` raises.
        limit.refused_turns[ctx.session_id] = turn
        await ctx.ask(_make_need(ctx, limit, calls))
        del limit.refused_turns[ctx.session_id]
        limit.allowed_turns[ctx.session_id] = turn


def _make_need(ctx: ToolContext, limit: FanOutLimit, calls: Sequence[ToolPart]) -> Need:
    """Return the permission for more subagents: how many have started and how many follow,
    their models and cost.

    Its pattern is the number of all of them.
    """
    agents = [
        str(call.state.input.get("subagent_type", "")) for call in calls[limit.max_subagents :]
    ]
    models = sorted({limit.find_model(agent) or ctx.session.model_name for agent in agents})
    mean_cost = ctx.session.compute_mean_subagent_cost()
    metadata = {
        "started": limit.max_subagents,
        "more": len(agents),
        "agents": sorted(set(agents)),
        "models": models,
        "cost": None if mean_cost is None else mean_cost * len(agents),
    }
    return Need(permission="subagents", patterns=(str(len(calls)),), metadata=metadata)


async def _wait_for_calls(ctx: ToolContext, count: int) -> list[ToolPart]:
    """Wait until the model makes no further calls, so that the question counts all of them;
    return all calls.
    """
    unchanged_seconds, seconds = 0.0, 0.0
    calls = ctx.session.find_task_calls().calls
    while unchanged_seconds < FAN_OUT_SETTLE.seconds and seconds < FAN_OUT_WAIT.seconds:
        await asyncio.sleep(_POLL_SECONDS)
        calls = ctx.session.find_task_calls().calls
        is_streaming = any(isinstance(call.state, ToolStatePending) for call in calls)
        unchanged_seconds = (
            0.0 if is_streaming or len(calls) != count else unchanged_seconds + _POLL_SECONDS
        )
        count, seconds = len(calls), seconds + _POLL_SECONDS
    return calls


class TaskParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `task`. `subagent_type`: the agent's name;
    `description`: the title that users see.
    """

    description: str
    prompt: str
    subagent_type: str
    task_id: str | None = None
    run_in_background: bool = False


@tool("task", params=TaskParams, traits=Traits(concurrent=True))
async def task(params: TaskParams, ctx: ToolContext) -> ToolResult:
    """Run the subagent and return its last text,
    or start it in the background and return its id.
    """
    metadata = {"description": params.description, "subagent_type": params.subagent_type}
    await ctx.ask(
        Need(permission="task", patterns=(params.subagent_type,), always=("*",), metadata=metadata)
    )
    if params.task_id is None:
        await _check_fan_out(ctx)
    result = await ctx.spawn(
        Subtask(
            agent=params.subagent_type,
            description=params.description,
            prompt=ctx.services.expand_prompt(params.prompt),
            session_id=params.task_id,
            background=params.run_in_background,
        )
    )
    text = (
        result.text.strip()
        or f"(It ended without a report. To ask for one, give task_id {result.session_id}.)"
    )
    output = f'<task id="{result.session_id}" state="{result.state}">\n<task_result>\n{text}\n</task_result>\n</task>'
    report = {"report": result.text.strip()} if result.state == "completed" else {}
    return ToolResult(params.description, output, result.metadata | report)
