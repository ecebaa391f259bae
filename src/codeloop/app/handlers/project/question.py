"""Handlers of the model's questions to the user."""

from codeloop.app.project import Project
from codeloop.schema.api.answers import AnswerQuestion, RejectQuestion
from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    QuestionAnswers,
    QuestionRefusal,
    QuestionRejected,
    QuestionReplied,
)
from codeloop.schema.operation import NoArguments
from codeloop.schema.question import QuestionRequest


async def list_pending_questions(project: Project, _args: NoArguments) -> list[QuestionRequest]:
    """Return the open questions of running processes."""
    return _list_pending(project)


async def answer_question(project: Project, args: AnswerQuestion) -> bool:
    """Answer a request with one answer for each of its questions. Raises OperationError."""
    request = _find_pending(project, args.request_id)
    if len(args.answers) != len(request.questions):
        raise OperationError(
            "BadRequest", f"{len(request.questions)} answers are needed, not {len(args.answers)}."
        )
    answers = QuestionAnswers(
        session_id=request.session_id, request_id=request.id, answers=args.answers
    )
    project.store.append(QuestionReplied(properties=answers))
    return True


async def reject_question(project: Project, args: RejectQuestion) -> bool:
    """Reject a request, with a message for the model if there is one. Raises OperationError."""
    request = _find_pending(project, args.request_id)
    refusal = QuestionRefusal(
        session_id=request.session_id, request_id=request.id, message=args.message
    )
    project.store.append(QuestionRejected(properties=refusal))
    return True


def _list_pending(project: Project) -> list[QuestionRequest]:
    # A process that was killed left its questions open; nobody waits for their answers any more.
    is_held = project.store.leases.is_held
    return [
        request for request in project.store.list_pending_questions() if is_held(request.session_id)
    ]


def _find_pending(project: Project, request_id: str) -> QuestionRequest:
    for request in _list_pending(project):
        if request.id == request_id:
            return request
    raise OperationError("QuestionNotFoundError", f"Question not found: {request_id}")
