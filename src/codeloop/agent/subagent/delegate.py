"""Work that a person hands to a subagent directly: the call that the model would have made, without asking it."""

from collections.abc import Callable

import msgspec

from codeloop.agent.engine import Engine
from codeloop.agent.moves import Delegate
from codeloop.agent.recording import Recording
from codeloop.agent.recovery import message_event
from codeloop.agent.step import StoredAbort, new_message, show_status
from codeloop.agent.tool_calls import ToolCalls
from codeloop.model.chat import CallReady, Finished
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.live_events import Busy
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import Subtask, SubtaskResult


async def delegate(engine: Engine, session_id: str, move: Delegate) -> None:
    """Run the tool `task` for each subtask of a prompt, side by side; the model is asked next, with their results.

    A cancel stores what there is as interrupted.
    """
    first = move.work[0].agent
    info = replace(new_message(engine, session_id, move.user), mode=first, agent=first)
    show_status(engine, session_id, Busy())
    engine.store.append(message_event(info))
    models, plain = {new_id("tool"): work.model for work in move.work}, engine.spawn

    async def spawn(engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]) -> SubtaskResult:
        return await plain(engine, call, replace(task, model=models.get(call.call_id)), report)

    engine = replace(engine, spawn=spawn)
    calls = ToolCalls(engine, engine.agent(move.user.agent), info, Recording())  # each subagent records its own steps
    with StoredAbort(engine, info):
        try:
            for call_id, work in zip(models, move.work, strict=True):
                given = {"description": work.description, "prompt": work.prompt, "subagent_type": work.agent}
                calls.ready(CallReady(call_id, "task", msgspec.json.encode(given).decode()))
            await calls.join(Finished("tool-calls"))
        finally:
            await calls.cancel()
        completed = replace(info.time, completed=now_ms())
        engine.store.append(message_event(replace(info, finish="tool-calls", time=completed)))
