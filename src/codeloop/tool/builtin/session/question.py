"""The tool `question`: asks the user one or more questions, with options;
any attached client can answer.
"""

from typing import Annotated

import msgspec

from codeloop.schema.permission import Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]


class AskedOption(msgspec.Struct, frozen=True):
    """One option of a question."""

    label: NonEmptyText
    description: str


class AskedQuestion(msgspec.Struct, frozen=True):
    """One question. `multiple`: several options may be chosen;
    `custom`: the user may write an answer.
    """

    question: NonEmptyText
    header: Annotated[str, msgspec.Meta(description="a word or two")]
    options: list[AskedOption]
    multiple: bool | None = None
    custom: Annotated[bool, msgspec.Meta(description="false: no free answer")] | None = None


class QuestionParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `question`."""

    questions: Annotated[list[AskedQuestion], msgspec.Meta(min_length=1)]


@tool("question", params=QuestionParams)
async def question(params: QuestionParams, ctx: ToolContext) -> ToolResult:
    """Ask, and wait for the answers. Raises Rejected when the user refuses to answer."""
    for each in params.questions:
        if not each.options and each.custom is False:
            raise ToolFailure(
                f"The question {each.question!r} has no options and no free answer.",
                advice="Give options, or leave custom out.",
            )
    need = Need(permission="question", patterns=("*",), always=("*",))
    await ctx.ask(need)
    questions = [_make_question(each) for each in params.questions]
    answers = await ctx.session.ask_questions(questions, need)
    lines = [
        f'"{q.question}" = "{", ".join(choices)}"'
        if choices
        else f'"{q.question}" was left without an answer'
        for q, choices in zip(questions, answers, strict=True)
    ]
    count = f"{len(questions)} question{'s' if len(questions) > 1 else ''}"
    return ToolResult(
        f"Asked {count}", "The user answered:\n" + "\n".join(lines), {"answers": answers}
    )


def _make_question(asked: AskedQuestion) -> QuestionInfo:
    options = [
        QuestionOption(label=option.label, description=option.description)
        for option in asked.options
    ]
    return QuestionInfo(
        question=asked.question,
        header=asked.header,
        options=options,
        multiple=asked.multiple,
        custom=asked.custom,
    )
