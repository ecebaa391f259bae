"""The operations of `question`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import QUESTION_LIST, QUESTION_REJECT, QUESTION_REPLY
from codeloop.schema.prompts import AnswerQuestion, RejectQuestion
from codeloop.schema.question import QuestionRequest


async def list_(client: Client) -> list[QuestionRequest]:
    """GET /question."""
    return await client.call(QUESTION_LIST)


async def reply(client: Client, args: AnswerQuestion) -> bool:
    """POST /question/{requestID}/reply.

    Answers a question: for each of its questions the labels or free texts that were chosen.
    """
    return await client.call(QUESTION_REPLY, **asdict(args))


async def reject(client: Client, args: RejectQuestion) -> bool:
    """POST /question/{requestID}/reject.

    Refuses to answer; with `message` the turn goes on.
    """
    return await client.call(QUESTION_REJECT, **asdict(args))
