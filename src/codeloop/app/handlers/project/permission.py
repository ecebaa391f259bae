"""Questions that wait for an answer."""

from codeloop.app.project import Project
from codeloop.schema.api.session_inputs import AnswerPermission, RespondPermission
from codeloop.schema.errors import OperationError
from codeloop.schema.event import PermissionAnswer
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRequest


async def pending(project: Project, _args: NoArguments) -> list[PermissionRequest]:
    """Return the questions that wait; those of a process that has ended wait for nobody."""
    is_held = project.store.leases.is_held
    return [request for request in project.store.pending_permissions() if is_held(request.session_id)]


async def reply(project: Project, args: AnswerPermission) -> bool:
    """Answer a question."""
    waiting = [request for request in await pending(project, NoArguments()) if request.id == args.request_id]
    if not waiting:
        raise OperationError("PermissionNotFoundError", f"Permission request not found: {args.request_id}")
    answer = PermissionAnswer(
        session_id=waiting[0].session_id, request_id=args.request_id, reply=args.reply, message=args.message
    )
    if not project.engine.gate.reply(answer):
        raise OperationError("PermissionNotFoundError", f"Permission request not found: {args.request_id}")
    return True


async def respond(project: Project, args: RespondPermission) -> bool:
    """Answer a question; the older form."""
    return await reply(project, AnswerPermission(request_id=args.permission_id, reply=args.response))
