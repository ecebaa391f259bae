"""The loop: decide, do. Everything else is a wrapper around the two calls, the model and a tool;
and a turn: the loop, again for prompts that came meanwhile, and in rounds for a goal.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Protocol

from codeloop.agent.answer.reminders import stop_or_remind
from codeloop.agent.answer.turn_diffs import store_diffs
from codeloop.agent.engine import Engine
from codeloop.agent.moves import (
    AskModel,
    Compact,
    Delegate,
    FallBack,
    Recover,
    Stop,
    decide_next_move,
)
from codeloop.agent.recovery import recover
from codeloop.agent.request.request_cache import RequestCache
from codeloop.agent.step import ask_model
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import format_model_ref


async def run(engine: Engine, session_id: str) -> Stop:
    """Work on a session until there is nothing more to do. Cancel by cancelling the task."""
    with engine.workspace.ground.hold():
        return await _make_moves(engine, session_id)


async def _make_moves(engine: Engine, session_id: str) -> Stop:
    cache = RequestCache()
    has_asked = False
    configured_budget = engine.turn_settings.configured_budget
    await _prepare_snapshots(engine, session_id)
    while True:
        if configured_budget is not None:
            await configured_budget.check()
        match decide_next_move(engine.store.read_context(session_id), engine.turn_settings):
            case Stop() as stop:
                # A run that found nothing to do sends no reminder: it would wake
                # the model for nothing.
                end = await _end_turn(engine, session_id, stop) if has_asked else stop
                if end is not None:
                    return end
            case Recover() as move:
                recover(engine.store, session_id, move.entries)
            case Compact() as move:
                # Imported late: most turns end without a compaction.
                from codeloop.agent.compaction import compact

                await compact(engine, session_id, move)
            case FallBack() as move:
                # Imported late: most turns stay with their model.
                from codeloop.agent.answer.fallback import fall_back

                fall_back(engine, move)
            case Delegate() as move:
                # Imported late: most turns have no subtasks.
                from codeloop.agent.subagent.delegate import delegate

                await delegate(engine, session_id, move)
            case AskModel() as move:
                has_asked = True
                budget = engine.turn_settings.shared_budget
                if budget is None:
                    await ask_model(engine, session_id, move, cache)
                    continue
                async with budget.reserve(
                    session_id, format_model_ref(move.user.model)
                ) as is_affordable:
                    # Otherwise the next move is to stop, with the budget's refusal as the reason.
                    if is_affordable:
                        await ask_model(engine, session_id, move, cache)


async def _prepare_snapshots(engine: Engine, session_id: str) -> None:
    if engine.snapshots is None:
        return
    engine.snapshots.begin_early()
    if engine.snapshots.has_open_steps():
        # Imported late: few processes are killed.
        from codeloop.agent.answer.cut_off_steps import close_cut_off_steps

        await close_cut_off_steps(engine.store, engine.snapshots, session_id)


async def _end_turn(engine: Engine, session_id: str, stop: Stop) -> Stop | None:
    """Return how the turn ends; None: it continues, after a reminder or the end of a
    command that it waited for.
    """
    settled = stop
    if engine.workspace.has_jobs:
        # Imported late: few turns have commands in the background.
        from codeloop.agent.ended_commands import settle_overdue

        settled = await settle_overdue(engine, session_id, stop)
    return await stop_or_remind(engine, session_id, settled) if settled is not None else None


class Rounds(Protocol):
    """Keeps a turn going until its goal is reached.

    `agent.goal.goal_rounds.GoalRounds` implements it; it is imported only for turns with a goal.
    """

    async def begin(self, engine: Engine, session_id: str) -> None:
        """Record the state before the work begins."""
        ...

    def limit_engine(self, engine: Engine, session_id: str) -> Engine:
        """Return the engine of the next round."""
        ...

    async def end_round(self, engine: Engine, session_id: str, stop: Stop) -> Stop | None:
        """Return the end of the turn; None if it goes on with another round."""
        ...


async def run_turn(engine: Engine, session_id: str, rounds: Rounds | None) -> Stop:
    """Run a turn to its end, with prompts that arrive meanwhile;
    store its file changes even if it is cancelled.
    """
    try:
        while True:
            limited_engine = engine if rounds is None else rounds.limit_engine(engine, session_id)
            stop = await engine.hooks.run_turn(
                partial(run, limited_engine, session_id), engine.store, session_id
            )
            with suppress(CodeloopError):
                await store_diffs(engine, session_id)
            # A prompt may have been stored after the loop looked for the last time.
            move = decide_next_move(
                engine.store.read_context(session_id), limited_engine.turn_settings
            )
            if not isinstance(move, Stop):
                continue
            if rounds is None:
                return stop
            if (end := await rounds.end_round(engine, session_id, stop)) is not None:
                return end
    except asyncio.CancelledError:
        with suppress(CodeloopError):
            await store_diffs(engine, session_id)
        raise
