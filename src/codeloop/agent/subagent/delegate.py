"""Hands the subtasks of a prompt to their subagents,
as one answer of tool calls that no model wrote.
"""

from collections.abc import Callable

import msgspec

from codeloop.agent.answer.answer_lifecycle import InterruptionGuard, make_answer
from codeloop.agent.answer.live_status import show_status
from codeloop.agent.calls.tool_calls import ToolCalls
from codeloop.agent.engine import Engine
from codeloop.agent.moves import Delegate
from codeloop.model.chat import CallReady, Finished
from codeloop.schema.event import make_message_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.live_events import Busy
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import Subtask, SubtaskResult


async def delegate(engine: Engine, session_id: str, move: Delegate) -> None:
    """Run the tool `task` for each subtask of a prompt, all at once.
    The next step asks the model, with the results.

    If it is cancelled, the calls so far are stored as interrupted.
    """
    # An answer has one agent, so that of the first subtask stands for all.
    first = move.subtasks[0].agent
    info = replace(make_answer(engine, session_id, move.user), mode=first, agent=first)
    show_status(engine, session_id, Busy())
    engine.store.append(make_message_updated(info))
    models_by_call_id = {new_id("tool"): subtask.model for subtask in move.subtasks}
    spawn_subagent = engine.spawn

    async def spawn(
        engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]
    ) -> SubtaskResult:
        """Start a subagent with the model that its subtask names: the tool `task`
        has no parameter for it.
        """
        return await spawn_subagent(
            engine, call, replace(task, model=models_by_call_id.get(call.call_id)), report
        )

    engine = replace(engine, spawn=spawn)
    # No recorder: each subagent records the changes of its own steps.
    calls = ToolCalls(engine, engine.get_agent(move.user.agent), info)
    with InterruptionGuard(engine, info):
        try:
            for call_id, subtask in zip(models_by_call_id, move.subtasks, strict=True):
                payload = {
                    "description": subtask.description,
                    "prompt": subtask.prompt,
                    "subagent_type": subtask.agent,
                }
                calls.start(CallReady(call_id, "task", msgspec.json.encode(payload).decode()))
            await calls.join(Finished("tool-calls"))
        finally:
            await calls.cancel()
        completed = replace(info.time, completed=now_ms())
        engine.store.append(
            make_message_updated(replace(info, finish="tool-calls", time=completed))
        )
