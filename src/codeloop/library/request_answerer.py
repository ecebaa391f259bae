"""Answers the permission requests and questions of a turn, and of its subagents,
with the callbacks of its session.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar, cast

from codeloop.client.client import Client, belongs_to
from codeloop.client.questions.requester import find_requester
from codeloop.library.event_feed import EventFeed, Listener
from codeloop.library.options import (
    Allow,
    Choice,
    Deny,
    ModelQuestion,
    OnPermission,
    OnQuestion,
    PermissionQuestion,
    QuestionReply,
)
from codeloop.schema.api.answers import (
    PERMISSION_LIST,
    PERMISSION_REPLY,
    QUESTION_LIST,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.event import Event, PermissionAsked, QuestionAsked
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import NOBODY_MESSAGE, PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionRequest

ArgumentType = TypeVar("ArgumentType")
ReplyType = TypeVar("ReplyType")


class RequestAnswerer(Listener):
    """Answers the requests of one session and of its subagents.

    `on_permission`, `on_question`: the callbacks of the session; without one, its requests are
    refused. `on_failure`: called with the exception of a callback,
    or the error for a value of the wrong type.
    """

    def __init__(
        self,
        client: Client,
        feed: EventFeed,
        session_id: str,
        *,
        on_permission: OnPermission | None,
        on_question: OnQuestion | None,
        on_failure: Callable[[BaseException], object],
    ) -> None:
        self._client = client
        self._feed = feed
        self._session_id = session_id
        self._on_permission = on_permission
        self._on_question = on_question
        self._on_failure = on_failure
        self._seen_ids: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Answer the request of an event, if it has one."""
        if isinstance(event, PermissionAsked | QuestionAsked):
            self._answer_in_background(event.properties)

    def on_resume(self) -> None:
        """Answer the requests that were made meanwhile."""
        self._feed.start_background(self._answer_waiting(), self._on_failure)

    async def _answer_waiting(self) -> None:
        # The feed reports a server that is gone for good.
        with suppress(CodeloopError):
            for request in await self._client.call(PERMISSION_LIST, NoArguments()):
                self._answer_in_background(request)
            for request in await self._client.call(QUESTION_LIST, NoArguments()):
                self._answer_in_background(request)

    def _answer_in_background(self, request: PermissionRequest | QuestionRequest) -> None:
        # After a gap in the events, a request may also be in the list of those that wait.
        if request.id not in self._seen_ids:
            self._seen_ids.add(request.id)
            self._feed.start_background(self._answer(request), self._on_failure)

    async def _answer(self, request: PermissionRequest | QuestionRequest) -> None:
        if not await belongs_to(self._client, request.session_id, self._session_id):
            return
        # Another client may have answered, or the turn may have ended.
        with suppress(OperationError):
            if isinstance(request, PermissionRequest):
                await self._client.call(PERMISSION_REPLY, await self._answer_permission(request))
            elif (answers := await self._answer_questions(request)) is not None:
                await self._client.call(
                    QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers)
                )
            else:
                await self._client.call(
                    QUESTION_REJECT, RejectQuestion(request_id=request.id, message=NOBODY_MESSAGE)
                )

    async def _answer_permission(self, request: PermissionRequest) -> AnswerPermission:
        if self._on_permission is None:
            return AnswerPermission(request_id=request.id, reply="reject", message=NOBODY_MESSAGE)
        permission_question = PermissionQuestion(
            permission=request.permission,
            patterns=tuple(request.patterns),
            always=tuple(request.always),
            tool=(await find_requester(self._client, request)).tool,
            session_id=request.session_id,
            details=request.metadata,
        )
        return _convert_permission_reply(
            request, await _call_callback(self._on_permission, permission_question)
        )

    async def _answer_questions(self, request: QuestionRequest) -> list[list[str]] | None:
        """Return the answers to all questions; None if one of them gets none."""
        answers: list[list[str]] = []
        for question in request.questions:
            reply = await self._answer_question(request.session_id, question)
            if reply is None:
                return None
            answers.append(_convert_question_reply(reply))
        return answers

    async def _answer_question(self, session_id: str, question: QuestionInfo) -> QuestionReply:
        if self._on_question is None:
            return None
        model_question = ModelQuestion(
            question=question.question,
            header=question.header,
            choices=tuple(Choice(option.label, option.description) for option in question.options),
            multiple=bool(question.multiple),
            custom=question.custom is not False,
            session_id=session_id,
        )
        return await _call_callback(self._on_question, model_question)


async def _call_callback(
    callback: "Callable[[ArgumentType], ReplyType | Awaitable[ReplyType]]", argument: ArgumentType
) -> ReplyType:
    """Call a callback and return its value. If it is not async, it runs in a thread,
    so that it may wait for a user.
    """
    if inspect.iscoroutinefunction(callback):
        return await cast("Awaitable[ReplyType]", callback(argument))
    value = await asyncio.to_thread(callback, argument)
    # Such as of a lambda that calls an async function.
    return (
        await cast("Awaitable[ReplyType]", value)
        if inspect.isawaitable(value)
        else cast("ReplyType", value)
    )


def _convert_question_reply(reply: object) -> list[str]:
    """Convert the value that `on_question` returned to a list of answers.
    Raises CodeloopError for a wrong type.
    """
    texts = [reply] if isinstance(reply, str) else reply
    if not isinstance(texts, Sequence) or not all(
        isinstance(each, str) for each in cast("Sequence[object]", texts)
    ):
        raise CodeloopError(
            f"on_question returned {reply!r}. Return a text, a list of texts, or None."
        )
    return list(cast("Sequence[str]", texts))


def _convert_permission_reply(request: PermissionRequest, reply: object) -> AnswerPermission:
    """Convert the value that `on_permission` returned to an answer.
    Raises CodeloopError for a wrong type.
    """
    match reply:
        case Allow(always=True) if request.always:
            return AnswerPermission(request_id=request.id, reply="always")
        case Allow(session=True) if request.always:
            return AnswerPermission(request_id=request.id, reply="always", scope="session")
        case True | Allow():
            return AnswerPermission(request_id=request.id, reply="once")
        case False:
            return AnswerPermission(request_id=request.id, reply="reject", message=Deny().reason)
        case Deny(reason=reason, stop=stop):
            # A refusal without words ends the turn.
            return AnswerPermission(
                request_id=request.id, reply="reject", message=None if stop else reason
            )
        case _:
            raise CodeloopError(
                f"on_permission returned {reply!r}. Return True, False, Allow(...) or Deny(...)."
            )
