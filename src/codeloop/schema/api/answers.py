"""Permission requests and questions that wait, the answers to them,
and the permissions in force.
"""

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.permission import (
    AlwaysScope,
    PermissionQuery,
    PermissionRequest,
    PermissionsInForce,
    Reply,
    RevokeGrant,
)
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import Wire


class AnswerPermission(Wire):
    """Answers a question; `message` goes to the model with a rejection, and the turn then goes on.

    Beyond OpenCode's API: `always` is remembered instead of the patterns that were offered.
    `wider`: the user has seen that it allows more than those; without it, it must not. `scope`:
    where the reply "always" holds.
    """

    request_id: str
    reply: Reply
    message: str | None = None
    always: list[str] | None = None
    wider: bool = False
    scope: AlwaysScope = "directory"


class RespondPermission(Wire):
    """Answers a question; the older form."""

    session_id: str
    permission_id: str
    response: Reply


class AnswerQuestion(Wire):
    """Answers a question: for each of its questions the labels or free texts that were chosen."""

    request_id: str
    answers: list[list[str]]


class RejectQuestion(Wire):
    """Refuses to answer; with `message` the turn goes on."""

    request_id: str
    message: str | None = None


PERMISSION_LIST = Operation(
    "permission.list",
    "GET",
    "/permission",
    NoArguments,
    list[PermissionRequest],
    "project.permission:list_pending_requests",
)
PERMISSION_RULES = Operation(
    "permission.rules",
    "GET",
    "/permission/rules",
    PermissionQuery,
    PermissionsInForce,
    "project.permission:list_rules",
)
PERMISSION_REVOKE = Operation(
    "permission.revoke",
    "DELETE",
    "/permission/grant/{grantID}",
    RevokeGrant,
    bool,
    "project.permission:revoke_grant",
)
PERMISSION_REPLY = Operation(
    "permission.reply",
    "POST",
    "/permission/{requestID}/reply",
    AnswerPermission,
    bool,
    "project.permission:answer_request",
)
QUESTION_LIST = Operation(
    "question.list",
    "GET",
    "/question",
    NoArguments,
    list[QuestionRequest],
    "project.question:list_pending_questions",
)
QUESTION_REPLY = Operation(
    "question.reply",
    "POST",
    "/question/{requestID}/reply",
    AnswerQuestion,
    bool,
    "project.question:answer_question",
)
QUESTION_REJECT = Operation(
    "question.reject",
    "POST",
    "/question/{requestID}/reject",
    RejectQuestion,
    bool,
    "project.question:reject_question",
)
PERMISSION_RESPOND = Operation(
    "permission.respond",
    "POST",
    "/session/{sessionID}/permissions/{permissionID}",
    RespondPermission,
    bool,
    "project.permission:answer_request_by_old_route",
)
