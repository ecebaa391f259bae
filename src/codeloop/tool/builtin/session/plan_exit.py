"""The tool `plan_exit`: asks the user to approve the plan, and leaves plan mode on a yes.

All comments of the user on the plan must be answered first.
"""

import msgspec

from codeloop.schema.permission import Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.tool.builtin.session.plan_threads import (
    THREADS,
    PlanThread,
    ThreadAnswer,
    answer_threads,
    describe_threads,
    has_comments,
    list_open,
    read_comments,
)
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

YES, NO = "Yes", "No"
APPROVED = "The user approves the plan: carry it out. You may change files now."
ANSWER = (
    "Change the plan where the user is right. Then call plan_exit with `answers`: for each open thread its number, "
    "and what you changed or why not."
)


class PlanExitParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `plan_exit`: the answers to comments. The plan itself is in the conversation."""

    answers: list[ThreadAnswer] = []


@tool("plan_exit", params=PlanExitParams)
async def plan_exit(params: PlanExitParams, ctx: ToolContext) -> ToolResult:
    """Ask whether the plan may be carried out; on yes the next step is the build agent's."""
    before = _find_threads(ctx)
    threads = answer_threads(before, params.answers)
    if open_threads := list_open(threads):
        raise ToolFailure(
            f"Comments of the user on the plan are not answered yet:\n{describe_threads(open_threads)}",
            _make_metadata(threads),
            advice=ANSWER,
        )
    need = Need(permission="plan_exit", patterns=("*",), always=("*",))
    await ctx.ask(need)
    options = [
        QuestionOption(label=YES, description="Switch to the build agent and carry out the plan"),
        QuestionOption(label=NO, description="Stay with the plan agent and continue planning"),
    ]
    replies = describe_threads([each for each, old in zip(threads, before, strict=True) if each != old])
    question = "Carry out the plan?" + (f"\n\n{replies}" if replies else "")
    answers = await ctx.session.answers([QuestionInfo(question=question, header="Plan", options=options)], need)
    choices = [choices for one in answers for choices in one]
    answer = ("\n\n" if any(map(has_comments, choices)) else ", ").join(choices) or NO
    if answer == NO:
        raise ToolFailure("The user wants to continue planning.", _make_metadata(threads), advice="Ask what to change.")
    if answer != YES:
        new = read_comments(answer, len(threads))
        raise ToolFailure(
            f"The user does not approve the plan yet and says:\n{describe_threads(new)}",
            _make_metadata([*threads, *new]),
            advice=ANSWER,
        )
    ctx.session.continue_as("build", APPROVED)
    return ToolResult("Plan approved", APPROVED, {"answer": answer, **_make_metadata(threads)})


def _find_threads(ctx: ToolContext) -> list[PlanThread]:
    """Return the threads on the plan: those of earlier calls, and new ones for comments in prompts since then."""
    metadata, prompts = ctx.session.calls_before("plan_exit")
    threads = msgspec.convert(metadata.get(THREADS, []), list[PlanThread])
    for text in filter(has_comments, prompts):
        threads += read_comments(text, len(threads))
    return threads


def _make_metadata(threads: list[PlanThread]) -> dict[str, object]:
    return {THREADS: [msgspec.to_builtins(each) for each in threads]} if threads else {}
