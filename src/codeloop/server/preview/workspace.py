"""Handlers of the preview: files, terminals, permission requests and questions."""

import asyncio
import mimetypes
from typing import NoReturn

import msgspec
from starlette.responses import Response

from codeloop.app.handlers.workspace.files import load_file
from codeloop.schema.api.answers import (
    PERMISSION_LIST,
    PERMISSION_REPLY,
    PERMISSION_REVOKE,
    QUESTION_LIST,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.api.files import FILE_LIST, FileQuery
from codeloop.schema.api.pty import (
    PTY_CREATE,
    PTY_GET,
    PTY_LIST,
    PTY_REMOVE,
    PTY_TICKET,
    PTY_UPDATE,
    CreatePty,
    PtyId,
    UpdatePty,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRequest, RevokeGrant
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON
from codeloop.server.preview import arguments as takes
from codeloop.server.preview.request import Handler, PreviewRequest, make_answers_decorator, make_refusal
from codeloop.server.preview.translate import translate_permission

HANDLERS: dict[str, Handler] = {}
"""By operation id."""
answers = make_answers_decorator(HANDLERS)


@answers("v2.fs.read")
async def read_file(preview: PreviewRequest, args: takes.ReadPreviewFile) -> Response:
    """Return a file's bytes."""
    _, content = await asyncio.to_thread(load_file, await preview.get_project(), args.path)
    if content is None:
        raise OperationError("NotFoundError", f"File not found: {args.path}")
    media_type = mimetypes.guess_type(args.path)[0] or "application/octet-stream"
    return Response(content, media_type=media_type)


@answers("v2.fs.list")
async def list_folder(preview: PreviewRequest, args: takes.ListPreviewFolder) -> list[JSON]:
    """List the entries of a folder, folders first."""
    file_nodes = await preview.call(FILE_LIST, FileQuery(path=args.path))
    return [{"path": each.path, "type": each.type} for each in file_nodes]


@answers("v2.pty.list")
async def list_terminals(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return every terminal."""
    return [msgspec.to_builtins(each) for each in await preview.call(PTY_LIST, NoArguments())]


@answers("v2.pty.create")
async def open_terminal(preview: PreviewRequest, args: takes.CreatePreviewPty) -> JSON:
    """Open a terminal."""
    create_pty = CreatePty(
        command=args.command, args=args.args or [], cwd=args.cwd, title=args.title, env=args.env or {}
    )
    return msgspec.to_builtins(await preview.call(PTY_CREATE, create_pty))


@answers("v2.pty.get")
async def get_terminal(preview: PreviewRequest, args: takes.PreviewPtyId) -> JSON:
    """Return a terminal."""
    return msgspec.to_builtins(await preview.call(PTY_GET, PtyId(pty_id=args.pty_id)))


@answers("v2.pty.update")
async def update_terminal(preview: PreviewRequest, args: takes.UpdatePreviewPty) -> JSON:
    """Rename or resize a terminal."""
    update_pty = UpdatePty(pty_id=args.pty_id, title=args.title, size=args.size)
    return msgspec.to_builtins(await preview.call(PTY_UPDATE, update_pty))


@answers("v2.pty.remove")
async def remove_terminal(preview: PreviewRequest, args: takes.PreviewPtyId) -> None:
    """End a terminal."""
    await preview.call(PTY_REMOVE, PtyId(pty_id=args.pty_id))


@answers("v2.pty.connectToken")
async def create_ticket(preview: PreviewRequest, args: takes.PreviewPtyId) -> JSON:
    """Return a ticket for a terminal's WebSocket."""
    return msgspec.to_builtins(await preview.call(PTY_TICKET, PtyId(pty_id=args.pty_id)))


@answers("v2.permission.request.list")
async def list_requests(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the permission requests that wait."""
    return [translate_permission(each) for each in await preview.call(PERMISSION_LIST, NoArguments())]


@answers("v2.permission.saved.list")
async def list_saved_permissions(preview: PreviewRequest, args: takes.ListSavedPermissions) -> list[JSON]:
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


@answers("v2.permission.saved.remove")
async def remove_saved_permission(preview: PreviewRequest, args: takes.SavedPermissionId) -> None:
    """Revoke a permission that was always allowed."""
    await preview.call(PERMISSION_REVOKE, RevokeGrant(grant_id=args.id))


@answers("v2.session.permission.create")
async def refuse_request(_preview: PreviewRequest, _args: takes.RequestPermission) -> NoReturn:
    """Refuse: a client asks within a call of its own tools."""
    raise make_refusal("A client asks for permission within a call of its own tools: /session/{id}/tools/.../ask.")


@answers("v2.session.permission.list")
async def list_session_requests(preview: PreviewRequest, args: takes.PreviewSessionId) -> list[JSON]:
    """Return the permission requests that wait in a session."""
    return [translate_permission(each) for each in await _find_permission_requests(preview, args.session_id)]


@answers("v2.session.permission.get")
async def get_request(preview: PreviewRequest, args: takes.PreviewRequestId) -> JSON:
    """Return a permission request that waits."""
    return translate_permission(await _find_permission_request(preview, args.session_id, args.request_id))


@answers("v2.session.permission.reply")
async def reply_permission(preview: PreviewRequest, args: takes.ReplyPermission) -> None:
    """Answer a permission request."""
    request = await _find_permission_request(preview, args.session_id, args.request_id)
    answer = AnswerPermission(request_id=request.id, reply=args.reply, message=args.message)
    await (await _make_preview_for_session(preview, args.session_id)).call(PERMISSION_REPLY, answer)


@answers("v2.question.request.list")
async def list_questions(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the questions that wait."""
    return [msgspec.to_builtins(each) for each in await preview.call(QUESTION_LIST, NoArguments())]


@answers("v2.session.question.list")
async def list_session_questions(preview: PreviewRequest, args: takes.PreviewSessionId) -> list[JSON]:
    """Return the questions that wait in a session."""
    return [msgspec.to_builtins(each) for each in await _find_questions(preview, args.session_id)]


@answers("v2.session.question.reply")
async def reply_question(preview: PreviewRequest, args: takes.ReplyQuestion) -> None:
    """Answer a question."""
    await _check_question(preview, args.session_id, args.request_id)
    answer = AnswerQuestion(request_id=args.request_id, answers=args.answers)
    await (await _make_preview_for_session(preview, args.session_id)).call(QUESTION_REPLY, answer)


@answers("v2.session.question.reject")
async def reject_question(preview: PreviewRequest, args: takes.PreviewRequestId) -> None:
    """Refuse to answer a question."""
    await _check_question(preview, args.session_id, args.request_id)
    await (await _make_preview_for_session(preview, args.session_id)).call(
        QUESTION_REJECT, RejectQuestion(request_id=args.request_id)
    )


async def _make_preview_for_session(preview: PreviewRequest, session_id: str) -> PreviewRequest:
    """Return a preview request for the directory of a session. Raises CodeloopError: there is no such session."""
    project = await preview.get_project(session_id)
    project.store.get_session(session_id)
    return PreviewRequest(preview.app, project.settings.project_root.directory)


async def _find_permission_requests(preview: PreviewRequest, session_id: str) -> list[PermissionRequest]:
    requests = await (await _make_preview_for_session(preview, session_id)).call(PERMISSION_LIST, NoArguments())
    return [each for each in requests if each.session_id == session_id]


async def _find_permission_request(preview: PreviewRequest, session_id: str, request_id: str) -> PermissionRequest:
    for each in await _find_permission_requests(preview, session_id):
        if each.id == request_id:
            return each
    raise OperationError("PermissionNotFoundError", f"Permission request not found: {request_id}")


async def _find_questions(preview: PreviewRequest, session_id: str) -> list[QuestionRequest]:
    requests = await (await _make_preview_for_session(preview, session_id)).call(QUESTION_LIST, NoArguments())
    return [each for each in requests if each.session_id == session_id]


async def _check_question(preview: PreviewRequest, session_id: str, request_id: str) -> None:
    if all(each.id != request_id for each in await _find_questions(preview, session_id)):
        raise OperationError("QuestionNotFoundError", f"Question request not found: {request_id}")
