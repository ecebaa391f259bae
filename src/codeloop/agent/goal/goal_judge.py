"""Has a small model judge a goal that has no checks,
by the runs of the checks that the model chose.
"""

from collections.abc import Sequence

import msgspec

from codeloop.agent.engine import Engine
from codeloop.agent.hooks.hook_judge import ask_verdict
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.schema.bounds.session import GOAL_OUTPUT
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import UserMessage, format_model_ref
from codeloop.schema.part import PatchPart, ToolPart, ToolStateCompleted
from codeloop.store.conversation import Entry

CONDITION_TEMPLATE = """Condition: the goal below is reached, and the runs prove it. They were made after the last edit.
A run that does not test what the goal asks for proves nothing; if a part of the goal has no run, it is not met.

Goal: {goal}

Event: {evidence}"""
# Changed files that the judge is shown.
_MAX_JUDGED_FILES = 200


async def judge_goal(
    engine: Engine, session_id: str, goal: str, runs: Sequence[ToolPart], entries: Sequence[Entry]
) -> str:
    """Have a small model judge a goal; return its reason why the goal is not reached yet,
    "" if it is.

    The judge is the small model that belongs to the session's model,
    or that model itself where it has none.
    `runs`: the checks that codeloop ran. `entries`: the turn;
    the judge is shown the files that it changed.
    """
    user = next(entry.info for entry in reversed(entries) if isinstance(entry.info, UserMessage))
    session_model = format_model_ref(user.model)
    judge_model = engine.models.find_small_model(session_model) or session_model
    patches = [part for entry in entries for part in entry.parts if isinstance(part, PatchPart)]
    files = sorted({file for patch in patches for file in patch.files})
    run_records = [
        {
            "command": part.state.input["command"],
            "exit": part.state.metadata.get("exit"),
            "output": _cut_output(part),
        }
        for part in runs
        if isinstance(part.state, ToolStateCompleted)
    ]
    evidence = msgspec.json.encode(
        {"runs": run_records, "changedFiles": files[:_MAX_JUDGED_FILES]}
    ).decode()
    prompt = CONDITION_TEMPLATE.format(goal=goal, evidence=evidence)
    try:
        verdict = await ask_verdict(engine, session_id, engine.models.open(judge_model), prompt)
    except (HookFailed, CodeloopError) as error:
        return f"the judge gave no verdict: {error}"
    return "" if verdict.ok else verdict.reason or "the judge says that it is not reached"


def _cut_output(part: ToolPart) -> str:
    state = part.state
    return state.output[-GOAL_OUTPUT.value :] if isinstance(state, ToolStateCompleted) else ""
