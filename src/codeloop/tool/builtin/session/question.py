"""The tool `question`: asks the user one or more questions, with options;
any attached client can answer.
"""

from typing import Annotated

import msgspec

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.permission import Need
from codeloop.schema.question import QuestionInfo, QuestionOption
from codeloop.tool.json_schema import UNSENT
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

# The header of a question without one: so much of its beginning.
_MAX_HEADER = 24

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
    options: list[AskedOption]
    header: Annotated[str, msgspec.Meta(extra_json_schema=UNSENT)] = ""
    multiple: bool | None = None
    custom: (
        Annotated[bool, msgspec.Meta(description="false: no free answer", extra_json_schema=UNSENT)]
        | None
    ) = None


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
        header=asked.header or one_line(asked.question, _MAX_HEADER),
        options=options,
        multiple=asked.multiple,
        custom=asked.custom,
    )
