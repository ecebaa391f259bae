"""The loop: decide, do. Everything else is a wrapper around the two calls, the model and a tool."""

from codeloop.agent.compaction import compact
from codeloop.agent.engine import Engine, model_ref
from codeloop.agent.moves import AskModel, Compact, Delegate, Recover, Stop, next_move
from codeloop.agent.recovery import recover
from codeloop.agent.request.cache import RequestCache
from codeloop.agent.step import ask_model, delegate


async def run(engine: Engine, session_id: str) -> Stop:
    """Work on a session until there is nothing more to do. Cancel by cancelling the task."""
    cache = RequestCache()
    while True:
        match next_move(engine.store.context_view(session_id), engine.policy):
            case Stop() as stop:
                return stop
            case Recover() as move:
                recover(engine.store, session_id, move.entries)
            case Compact() as move:
                await compact(engine, session_id, move)
            case Delegate() as move:
                await delegate(engine, session_id, move)
            case AskModel() as move:
                budget = engine.policy.budget
                if budget is None:
                    await ask_model(engine, session_id, move, cache)
                    continue
                async with budget.hold(session_id, model_ref(move.user.model)) as is_affordable:
                    if is_affordable:  # else the next move is to stop
                        await ask_model(engine, session_id, move, cache)
