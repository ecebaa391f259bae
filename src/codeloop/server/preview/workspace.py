"""Handlers of the preview: files, terminals, permission requests and questions."""

import asyncio
import mimetypes

import msgspec
from starlette.responses import Response

from codeloop.app.handlers.workspace.files import load_file
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
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON
from codeloop.server.preview import arguments as takes
from codeloop.server.preview.request import PreviewRequest
from codeloop.server.preview.translate import translate_permission


async def read_file(preview: PreviewRequest, args: takes.ReadPreviewFile) -> Response:
    """Return a file's bytes."""
    _, content = await asyncio.to_thread(load_file, await preview.get_project(), args.path)
    if content is None:
        raise OperationError("NotFoundError", f"File not found: {args.path}")
    media_type = mimetypes.guess_type(args.path)[0] or "application/octet-stream"
    return Response(content, media_type=media_type)


async def list_saved_permissions(
    preview: PreviewRequest, args: takes.ListSavedPermissions
) -> list[JSON]:
    """List the permissions that are always allowed in the directory's project."""
    project = await preview.get_project()
    project_id = project.settings.project_root.project_id
    if args.project_id not in {None, project_id}:
        return []
    return [
        {"id": grant.id, "projectID": project_id, "action": grant.permission, "resource": pattern}
        for grant in project.store.permissions.list_all_grants()
        for pattern in grant.patterns
    ]


async def list_session_requests(
    preview: PreviewRequest, args: takes.PreviewSessionId
) -> list[JSON]:
    """Return the permission requests that wait in a session."""
    return [
        translate_permission(each)
        for each in await _find_permission_requests(preview, args.session_id)
    ]


async def get_request(preview: PreviewRequest, args: takes.PreviewRequestId) -> JSON:
    """Return a permission request that waits."""
    return translate_permission(
        await _find_permission_request(preview, args.session_id, args.request_id)
    )


async def reply_permission(preview: PreviewRequest, args: takes.ReplyPermission) -> None:
    """Answer a permission request."""
    request = await _find_permission_request(preview, args.session_id, args.request_id)
    answer = AnswerPermission(request_id=request.id, reply=args.reply, message=args.message)
    await (await _make_preview_for_session(preview, args.session_id)).call(PERMISSION_REPLY, answer)


async def list_session_questions(
    preview: PreviewRequest, args: takes.PreviewSessionId
) -> list[JSON]:
    """Return the questions that wait in a session."""
    return [msgspec.to_builtins(each) for each in await _find_questions(preview, args.session_id)]


async def reply_question(preview: PreviewRequest, args: takes.ReplyQuestion) -> None:
    """Answer a question."""
    await _check_question(preview, args.session_id, args.request_id)
    answer = AnswerQuestion(request_id=args.request_id, answers=args.answers)
    await (await _make_preview_for_session(preview, args.session_id)).call(QUESTION_REPLY, answer)


async def reject_question(preview: PreviewRequest, args: takes.PreviewRequestId) -> None:
    """Refuse to answer a question."""
    await _check_question(preview, args.session_id, args.request_id)
    await (await _make_preview_for_session(preview, args.session_id)).call(
        QUESTION_REJECT, RejectQuestion(request_id=args.request_id)
    )


async def _make_preview_for_session(preview: PreviewRequest, session_id: str) -> PreviewRequest:
    """Return a preview request for the directory of a session.
    Raises CodeloopError: there is no such session.
    """
    project = await preview.get_project(session_id)
    project.store.get_session(session_id)
    return PreviewRequest(preview.app, project.settings.project_root.directory)


async def _find_permission_requests(
    preview: PreviewRequest, session_id: str
) -> list[PermissionRequest]:
    requests = await (await _make_preview_for_session(preview, session_id)).call(
        PERMISSION_LIST, NoArguments()
    )
    return [each for each in requests if each.session_id == session_id]


async def _find_permission_request(
    preview: PreviewRequest, session_id: str, request_id: str
) -> PermissionRequest:
    for each in await _find_permission_requests(preview, session_id):
        if each.id == request_id:
            return each
    raise OperationError("PermissionNotFoundError", f"Permission request not found: {request_id}")


async def _find_questions(preview: PreviewRequest, session_id: str) -> list[QuestionRequest]:
    requests = await (await _make_preview_for_session(preview, session_id)).call(
        QUESTION_LIST, NoArguments()
    )
    return [each for each in requests if each.session_id == session_id]


async def _check_question(preview: PreviewRequest, session_id: str, request_id: str) -> None:
    if all(each.id != request_id for each in await _find_questions(preview, session_id)):
        raise OperationError("QuestionNotFoundError", f"Question request not found: {request_id}")
