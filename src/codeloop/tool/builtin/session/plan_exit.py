"""Leaves plan mode, when the user agrees."""

import msgspec

from codeloop.schema.permission import Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

YES, NO = "Yes", "No"
APPROVED = "The user approves the plan: carry it out. You may change files now."


class PlanExitParams(msgspec.Struct, frozen=True):
    """No parameters: the plan is in the conversation."""


@tool("plan_exit", params=PlanExitParams)
async def plan_exit(params: PlanExitParams, ctx: ToolContext) -> ToolResult:
    """Ask whether the plan may be carried out; on yes the next step is the build agent's."""
    del params
    need = Need(permission="plan_exit", patterns=("*",), always=("*",))
    await ctx.ask(need)
    options = [
        QuestionOption(label=YES, description="Switch to the build agent and carry out the plan"),
        QuestionOption(label=NO, description="Stay with the plan agent and continue planning"),
    ]
    asked = QuestionInfo(question="Carry out the plan?", header="Plan", options=options)
    answers = await ctx.session.answers([asked], need)
    answer = ", ".join(chosen for one in answers for chosen in one) or NO
    if answer == NO:
        raise ToolFailure("The user wants to continue planning.", advice="Ask what to change.")
    if answer != YES:
        raise ToolFailure(f"The user does not approve the plan yet and says: {answer}")
    ctx.session.continue_as("build", APPROVED)
    return ToolResult("Plan approved", APPROVED, {"answer": answer})
