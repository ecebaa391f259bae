"""The tool `batch`: runs several independent tool calls at the same time, and returns their results together."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, NamedTuple

import msgspec

from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.errors import HookRefused
from codeloop.schema.limits import BATCH_CALLS
from codeloop.schema.wire import JSON
from codeloop.tool.tool import TURN_ENDED_KEY, Tool, ToolContext, ToolFailure, ToolResult, format_for_model, tool
from codeloop.tool.toolbox import InvalidToolCall, Toolbox


class CallOutcome(NamedTuple):
    """The outcome of one call of a batch: whether it succeeded, and its result or its error as a result."""

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
    """Return the tool `batch` for the tools of `toolbox`, to which it does not belong: no batch runs in a batch."""

    @tool("batch", params=BatchParams)
    async def batch(params: BatchParams, ctx: ToolContext) -> ToolResult:
        """Run the calls, each with its own permission check and result; the others go on when one fails."""
        results = await _run_all([_run_one(toolbox, call, ctx) for call in params.tool_calls])
        texts = [
            f'<result call="{number}" tool="{call.tool}" ok="{str(ok).lower()}">\n{result.output}\n</result>'
            for number, (call, (ok, result)) in enumerate(zip(params.tool_calls, results, strict=True), 1)
        ]
        succeeded = sum(ok for ok, _ in results)
        details = [
            {"tool": call.tool, "ok": ok, "title": result.title, "metadata": result.metadata}
            for call, (ok, result) in zip(params.tool_calls, results, strict=True)
        ]
        metadata: JSON = {"totalCalls": len(results), "successful": succeeded, "failed": len(results) - succeeded}
        if (
            reason := next(
                (each.metadata[TURN_ENDED_KEY] for _, each in results if TURN_ENDED_KEY in each.metadata), None
            )
        ) is not None:
            metadata[TURN_ENDED_KEY] = reason
        attachments = tuple(part for _, result in results for part in result.attachments)
        title = f"{succeeded} of {len(results)} calls succeeded"
        return ToolResult(title, "\n".join(texts), {**metadata, "details": details}, attachments)

    return batch


async def _run_all(calls: list[Coroutine[Any, Any, CallOutcome]]) -> list[CallOutcome]:
    """Run all calls at the same time. If one raises, because the user rejected it, the others are stopped first."""
    # `gather` would leave the other calls running when one raises.
    running = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _run_one(toolbox: Toolbox, call: BatchCall, ctx: ToolContext) -> CallOutcome:
    """Run one call, with permission checks and hooks, as any call; a failure becomes its result.

    Raises HookRefused if a hook ends the turn, and Rejected without a message: both end the whole batch.
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
    shown_result = truncate_output(result, ctx.workspace.scratch, keep=prepared.tool.traits.keep)
    return CallOutcome(is_success=True, result=shown_result)
