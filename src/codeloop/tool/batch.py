"""The tool `batch`: runs several independent tool calls at the same time,
and returns their results together.
"""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, NamedTuple

import msgspec

from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.errors import HookRefused
from codeloop.schema.limits import BATCH_CALLS
from codeloop.schema.wire import JSON
from codeloop.tool.tool import (
    TURN_ENDED_KEY,
    Tool,
    ToolContext,
    ToolFailure,
    ToolResult,
    format_for_model,
    tool,
)
from codeloop.tool.toolbox import InvalidToolCall, Toolbox


class CallOutcome(NamedTuple):
    """The outcome of one call of a batch: whether it succeeded,
    and its result or its error as a result.
    """

    is_success: bool
    result: ToolResult


class BatchCall(msgspec.Struct, frozen=True):
    """One call of a batch: the tool's name and its arguments."""

    tool: str
    parameters: JSON


class BatchParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `batch`."""

    tool_calls: Annotated[list[BatchCall], msgspec.Meta(min_length=1, max_length=BATCH_CALLS.value)]


def make_batch_tool(toolbox: Toolbox) -> Tool:
    """Return the tool `batch` for the tools of `toolbox`,
    to which it does not belong: no batch runs in a batch.
    """

    @tool("batch", params=BatchParams)
    async def batch(params: BatchParams, ctx: ToolContext) -> ToolResult:
        """Run the calls, each with its own permission check and result;
        the others go on when one fails.
        """
        outcomes = await _run_all([_run_one(toolbox, call, ctx) for call in params.tool_calls])
        texts: list[str] = []
        details: list[JSON] = []
        end_reasons: list[str] = []
        for number, (call, (is_success, result)) in enumerate(
            zip(params.tool_calls, outcomes, strict=True), 1
        ):
            ok = "true" if is_success else "false"
            texts.append(
                f'<result call="{number}" tool="{call.tool}" ok="{ok}">\n{result.output}\n</result>'
            )
            details.append(
                {
                    "tool": call.tool,
                    "ok": is_success,
                    "title": result.title,
                    "metadata": result.metadata,
                }
            )
            if TURN_ENDED_KEY in result.metadata:
                end_reasons.append(result.metadata[TURN_ENDED_KEY])
        succeeded = sum(outcome.is_success for outcome in outcomes)
        metadata: JSON = {
            "totalCalls": len(outcomes),
            "successful": succeeded,
            "failed": len(outcomes) - succeeded,
        }
        if end_reasons:
            metadata[TURN_ENDED_KEY] = end_reasons[0]
        attachments = tuple(part for outcome in outcomes for part in outcome.result.attachments)
        title = f"{succeeded} of {len(outcomes)} calls succeeded"
        return ToolResult(title, "\n".join(texts), {**metadata, "details": details}, attachments)

    return batch


async def _run_all(calls: list[Coroutine[Any, Any, CallOutcome]]) -> list[CallOutcome]:
    """Run all calls at the same time. If one raises, which ends the batch (`_run_one`),
    the others are stopped.
    """
    # `gather` would leave the other calls running when one raises.
    running = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*running)
    finally:
        await cancel_all(running)


async def _run_one(toolbox: Toolbox, call: BatchCall, ctx: ToolContext) -> CallOutcome:
    """Run one call, with permission checks and hooks, as any call; a failure becomes its result.

    Raises HookRefused if a hook ends the turn, and Rejected without a message:
    both end the whole batch.
    """
    # Imported late: this module is loaded at start-up.
    from codeloop.tool.call_hooks import run_call
    from codeloop.tool.truncate import truncate_output

    prepared = toolbox.prepare(call.tool, msgspec.json.encode(call.parameters).decode())
    if isinstance(prepared, InvalidToolCall):
        return CallOutcome(is_success=False, result=ToolResult(call.tool, str(prepared)))
    try:
        result = await run_call(ctx.session.hooks.runner, prepared, ctx)
    except HookRefused as error:
        if error.ends:
            raise
        return CallOutcome(is_success=False, result=ToolResult(call.tool, str(error)))
    except (Denied, ToolFailure) as error:
        return CallOutcome(is_success=False, result=ToolResult(call.tool, format_for_model(error)))
    except Rejected as error:
        if error.message is None:
            raise
        return CallOutcome(is_success=False, result=ToolResult(call.tool, format_for_model(error)))
    shown_result = truncate_output(
        result,
        ctx.workspace.scratch,
        keep=prepared.tool.traits.keep,
        lines=ctx.workspace.bounds.output_lines,
        size=ctx.workspace.bounds.output_bytes,
    )
    return CallOutcome(is_success=True, result=shown_result)
