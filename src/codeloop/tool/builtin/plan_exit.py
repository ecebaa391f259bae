"""Leaving plan mode, when the user agrees."""

import msgspec

from codeloop.schema.event import MessageInfo, MessageUpdated, PartInfo, PartUpdated, SessionInfo, SessionUpdated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import UserMessage, UserTime
from codeloop.schema.part import TextPart
from codeloop.schema.question import Question, QuestionOption
from codeloop.schema.rules import Need
from codeloop.schema.wire import replace
from codeloop.tool.builtin.question import answered
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

YES, NO = "Yes", "No"
APPROVED = "The user approves the plan: carry it out. You may change files now."


class PlanExitParams(msgspec.Struct, frozen=True):
    """Takes nothing: the plan is what was said before."""


@tool("plan_exit", params=PlanExitParams)
async def plan_exit(params: PlanExitParams, ctx: ToolContext) -> ToolResult:
    """Ask whether the plan may be carried out; on yes the next step is the build agent's."""
    del params
    need = Need(permission="plan_exit", patterns=("*",), always=("*",))
    await ctx.ask(need)
    options = [
        QuestionOption(label=YES, description="Switch to the build agent and carry out the plan"),
        QuestionOption(label=NO, description="Stay with the plan agent and go on planning"),
    ]
    asked = Question(question="Carry out the plan?", header="Plan", options=options)
    answers = await answered(ctx, [asked], need)
    answer = ", ".join(chosen for one in answers for chosen in one) or NO
    if answer == NO:
        raise ToolFailure("The user wants to go on planning. Ask what to change.")
    if answer != YES:
        raise ToolFailure(f"The user does not approve the plan yet and says: {answer}")
    _continue_as_build(ctx)
    return ToolResult("Plan approved", APPROVED, {"answer": answer})


def _continue_as_build(ctx: ToolContext) -> None:
    entries = ctx.store.recent(ctx.session_id).entries
    last = next(entry.info for entry in reversed(entries) if isinstance(entry.info, UserMessage))
    message = replace(last, id=new_id("msg"), agent="build", time=UserTime(created=now_ms()), summary=None)
    part = TextPart(id=new_id("prt"), session_id=ctx.session_id, message_id=message.id, text=APPROVED, synthetic=True)
    session = replace(ctx.store.session(ctx.session_id), agent="build")
    ctx.store.append(
        SessionUpdated(properties=SessionInfo(session_id=ctx.session_id, info=session)),
        MessageUpdated(properties=MessageInfo(session_id=ctx.session_id, info=message)),
        PartUpdated(properties=PartInfo(session_id=ctx.session_id, part=part, time=now_ms())),
    )
