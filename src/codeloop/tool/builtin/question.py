"""Asking a person: options, several questions in one call, answered by any client."""

from typing import Annotated

import msgspec

from codeloop.permission.gate import Rejected
from codeloop.schema.event import QuestionAsked, QuestionRefusal, QuestionRejected, QuestionReplied
from codeloop.schema.ids import new_id
from codeloop.schema.question import Question, QuestionOption, QuestionRequest
from codeloop.schema.rules import Need, ToolRef
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

Said = Annotated[str, msgspec.Meta(min_length=1)]


class Option(msgspec.Struct, frozen=True):
    """One choice."""

    label: Said
    description: str


class Asked(msgspec.Struct, frozen=True):
    """One question."""

    question: Said
    header: Annotated[str, msgspec.Meta(description="a word or two")]
    options: list[Option]
    multiple: bool | None = None
    custom: Annotated[bool, msgspec.Meta(description="false: no free answer")] | None = None


class QuestionParams(msgspec.Struct, frozen=True):
    """What to ask."""

    questions: Annotated[list[Asked], msgspec.Meta(min_length=1)]


@tool("question", params=QuestionParams)
async def question(params: QuestionParams, ctx: ToolContext) -> ToolResult:
    """Ask and wait for the answers. Raises Rejected when they are refused."""
    for asked in params.questions:
        if not asked.options and asked.custom is False:
            raise ToolFailure(f"The question {asked.question!r} has no options and no free answer. Give options.")
    need = Need(permission="question", patterns=("*",), always=("*",))
    await ctx.ask(need)
    questions = [_question(asked) for asked in params.questions]
    answers = await answered(ctx, questions, need)
    told = [f'"{q.question}" = "{", ".join(chosen)}"' for q, chosen in zip(questions, answers, strict=True)]
    count = f"{len(questions)} question{'s' if len(questions) > 1 else ''}"
    return ToolResult(f"Asked {count}", "The user answered:\n" + "\n".join(told), {"answers": answers})


async def answered(ctx: ToolContext, questions: list[Question], need: Need) -> list[list[str]]:
    """Put questions to whoever is there and wait for as long as they need; gives the chosen labels or free texts.

    Raises Rejected when they are refused; a question whose call is cancelled is withdrawn.
    """
    tool_ref = ToolRef(message_id=ctx.message_id, call_id=ctx.call_id)
    request = QuestionRequest(id=new_id("que"), session_id=ctx.session_id, questions=questions, tool=tool_ref)
    seq = ctx.store.append(QuestionAsked(properties=request))
    try:
        async for stamped in ctx.store.follow(seq, session=ctx.session_id):
            match stamped.event:
                case QuestionReplied(properties=p) if p.request_id == request.id:
                    return p.answers
                case QuestionRejected(properties=p) if p.request_id == request.id:
                    raise Rejected(need, p.message)
                case _:
                    pass
    finally:
        if any(waiting.id == request.id for waiting in ctx.store.pending_questions(ctx.session_id)):
            refusal = QuestionRefusal(session_id=ctx.session_id, request_id=request.id)
            ctx.store.append(QuestionRejected(properties=refusal))
    raise AssertionError("a follower ends only by being closed")


def _question(asked: Asked) -> Question:
    options = [QuestionOption(label=option.label, description=option.description) for option in asked.options]
    return Question(
        question=asked.question, header=asked.header, options=options, multiple=asked.multiple, custom=asked.custom
    )
