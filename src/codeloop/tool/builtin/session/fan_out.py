"""Many subagents in one turn: before more than a few start, the user is asked once, with number and cost."""

import asyncio
from collections.abc import Callable, Sequence

from codeloop.schema.bounds.session import FAN_OUT_SETTLE, FAN_OUT_WAIT
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.permission import Need
from codeloop.tool.tool import ToolContext, ToolFailure

_LOOK = 0.1
"""Seconds between checks for further calls of the model."""


class FanOut:
    """Limits the subagents of a turn. `most`: as many start without a question."""

    def __init__(self, most: int, model_of: Callable[[str], str | None]) -> None:
        """`model_of`: the model of a subagent by its agent's name; None: that of the session."""
        self._most = most
        self._model_of = model_of
        self._locks: dict[str, asyncio.Lock] = {}
        self._allowed: dict[str, str] = {}
        """By session, the prompt whose turn may start any number (the user said yes)."""
        self._refused: dict[str, str] = {}
        """By session, the prompt whose turn may start no more (the user said no)."""

    async def pass_through(self, ctx: ToolContext) -> None:
        """Return when the call may start a subagent; raise Denied, Rejected or, asked before, ToolFailure else."""
        turn, calls = ctx.session.list_task_calls()
        at = next((number for number, call in enumerate(calls) if call.call_id == ctx.call_id), 0)
        if at < self._most or self._allowed.get(ctx.session_id) == turn:
            return
        async with self._locks.setdefault(ctx.session_id, asyncio.Lock()):
            if self._allowed.get(ctx.session_id) == turn:
                return
            if self._refused.get(ctx.session_id) == turn:
                raise ToolFailure(f"Not started: this turn may start no more than {self._most} subagents.")
            calls = await _settle(ctx, len(calls))
            self._refused[ctx.session_id] = turn
            await ctx.ask(self._make_need(ctx, calls))
            del self._refused[ctx.session_id]
            self._allowed[ctx.session_id] = turn

    def _make_need(self, ctx: ToolContext, calls: Sequence[ToolPart]) -> Need:
        agents = [str(call.state.input.get("subagent_type", "")) for call in calls[self._most :]]
        models = sorted({self._model_of(agent) or "the session's model" for agent in agents})
        each = ctx.session.mean_subagent_cost()
        metadata = {
            "started": self._most,
            "more": len(agents),
            "agents": sorted(set(agents)),
            "models": models,
            "cost": None if each is None else each * len(agents),
        }
        return Need(permission="subagents", patterns=(str(len(calls)),), metadata=metadata)


async def _settle(ctx: ToolContext, known: int) -> list[ToolPart]:
    """Wait until the model makes no further calls, so that the question names all of them; return them."""
    quiet, waited = 0.0, 0.0
    calls = ctx.session.list_task_calls()[1]
    while quiet < FAN_OUT_SETTLE.seconds and waited < FAN_OUT_WAIT.seconds:
        await asyncio.sleep(_LOOK)
        calls = ctx.session.list_task_calls()[1]
        is_streaming = any(isinstance(call.state, ToolStatePending) for call in calls)
        quiet = 0.0 if is_streaming or len(calls) != known else quiet + _LOOK
        known, waited = len(calls), waited + _LOOK
    return calls
