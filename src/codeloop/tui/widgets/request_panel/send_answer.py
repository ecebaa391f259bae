"""Sends an answer to the session that asked."""

from codeloop.client.client import Client
from codeloop.schema.api.session_inputs import AnswerPermission, AnswerQuestion, RejectQuestion
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import PERMISSION_REPLY, QUESTION_REJECT, QUESTION_REPLY
from codeloop.schema.permission import PermissionRequest
from codeloop.tui.state.session_view import Request
from codeloop.tui.widgets.request_panel.form import FormAnswer

_NOT_WAITING = {"PermissionNotFoundError", "QuestionNotFoundError"}
"""The errors of a request that was answered elsewhere, or withdrawn."""


async def send_answer(client: Client, request: Request, answer: FormAnswer) -> bool:
    """Answer a request; return False if it is no longer waiting. Raises OperationError for other refusals."""
    try:
        if isinstance(request, PermissionRequest):
            always = None if answer.always is None else list(answer.always)
            reply = AnswerPermission(
                request_id=request.id, reply=answer.reply, message=answer.message, always=always, wider=answer.wider
            )
            await client.call(PERMISSION_REPLY, reply)
        elif answer.reply == "reject":
            await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id, message=answer.message))
        else:
            answers = [list(each) for each in answer.answers]
            await client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))
    except OperationError as error:
        if error.kind not in _NOT_WAITING:
            raise
        return False
    return True
