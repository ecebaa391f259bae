"""Asks the user: with options, several questions in one call, answered by any client."""

from typing import Annotated

import msgspec

from codeloop.schema.permission import Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class Option(msgspec.Struct, frozen=True):
    """One choice."""

    label: NonEmpty
    description: str


class AskedQuestion(msgspec.Struct, frozen=True):
    """One question."""

    question: NonEmpty
    header: Annotated[str, msgspec.Meta(description="a word or two")]
    options: list[Option]
    multiple: bool | None = None
    custom: Annotated[bool, msgspec.Meta(description="false: no free answer")] | None = None


class QuestionParams(msgspec.Struct, frozen=True):
    """What to ask."""

    questions: Annotated[list[AskedQuestion], msgspec.Meta(min_length=1)]


@tool("question", params=QuestionParams)
async def question(params: QuestionParams, ctx: ToolContext) -> ToolResult:
    """Ask and wait for the answers. Raises Rejected when they are refused."""
    for asked in params.questions:
        if not asked.options and asked.custom is False:
            raise ToolFailure(
                f"The question {asked.question!r} has no options and no free answer.",
                advice="Give options, or leave custom out.",
            )
    need = Need(permission="question", patterns=("*",), always=("*",))
    await ctx.ask(need)
    questions = [_question(asked) for asked in params.questions]
    answers = await ctx.session.answers(questions, need)
    told = [
        f'"{q.question}" = "{", ".join(chosen)}"' if chosen else f'"{q.question}" was left without an answer'
        for q, chosen in zip(questions, answers, strict=True)
    ]
    count = f"{len(questions)} question{'s' if len(questions) > 1 else ''}"
    return ToolResult(f"Asked {count}", "The user answered:\n" + "\n".join(told), {"answers": answers})


def _question(asked: AskedQuestion) -> QuestionInfo:
    options = [QuestionOption(label=option.label, description=option.description) for option in asked.options]
    return QuestionInfo(
        question=asked.question, header=asked.header, options=options, multiple=asked.multiple, custom=asked.custom
    )
