"""Handlers of version 2: permission requests and forms, of the model and of clients."""

import secrets

import msgspec

from codeloop.agent.calls.call_rules import make_call_rules
from codeloop.permission.rules import judge_need
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
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PERMISSIONS_OF_VERSION_TWO, Grant, Need
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON, replace
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.answer_forms import (
    find_form_problem,
    read_answers,
    translate_permissions,
    translate_question,
)
from codeloop.server.version2.names import rename_permission
from codeloop.server.version2.request import Request2, TaggedError, make_not_found
from codeloop.server.version2.session_arguments import SessionId2
from codeloop.server.version2.session_forms import make_object
from codeloop.server.version2.state import ClientForm, ClientPermission

# Permissions


async def list_permissions(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the permission requests that wait in a directory."""
    stored = translate_permissions(await request.call(PERMISSION_LIST, NoArguments()))
    here = str(request.directory)
    clients = request.state.permissions.values()
    return [*stored, *(each.request for each in clients if each.directory == here)]


async def list_session_permissions(request: Request2, args: SessionId2) -> list[JSON]:
    """Return the permission requests that wait in a session."""
    there = await request.at_session(args.session_id)
    found = await list_permissions(there, NoArguments())
    return [each for each in found if each["sessionID"] == args.session_id]


async def get_permission(request: Request2, args: takes.RequestId2) -> JSON:
    """Return a permission request that waits."""
    for each in await list_session_permissions(request, SessionId2(session_id=args.session_id)):
        if each["id"] == args.request_id:
            return each
    raise make_not_found("Permission", args.request_id, requestID=args.request_id)


async def reply_permission(request: Request2, args: takes.ReplyPermission) -> None:
    """Answer a permission request."""
    decision = args.decision or args.reply
    if decision is None:
        raise TaggedError("InvalidRequestError", 400, 'Missing key\n  at ["decision"]')
    found = takes.RequestId2(session_id=args.session_id, request_id=args.request_id)
    await get_permission(request, found)
    client = request.state.permissions.pop(args.request_id, None)
    if client is not None:
        data = {"sessionID": args.session_id, "requestID": args.request_id, "reply": decision}
        request.state.publish("permission.replied", data, client.directory)
        return
    answer = AnswerPermission(request_id=args.request_id, reply=decision, message=args.message)
    await (await request.at_session(args.session_id)).call(PERMISSION_REPLY, answer)


async def ask_permission(request: Request2, args: takes.RequestPermission) -> JSON:
    """Return the verdict of the rules of a session; where they say to ask, the user is asked."""
    project, session = await request.find_session(args.session_id)
    permission = PERMISSIONS_OF_VERSION_TWO.get(args.action, args.action)
    agent = project.engine.get_agent(args.agent or session.agent or "build")
    rules = make_call_rules(project.engine, session.id, agent)
    need = Need(
        permission=permission, patterns=tuple(args.resources), always=tuple(args.save or ())
    )
    effect = judge_need(need, rules.lists)[0].action
    request_id = args.id or new_id("per")
    if effect == "ask":
        source = msgspec.to_builtins(args.source)
        waiting = make_object(
            id=request_id,
            sessionID=session.id,
            action=rename_permission(permission),
            resources=args.resources,
            save=args.save,
            metadata=args.metadata,
            source=source if isinstance(source, dict) and "messageID" in source else None,
        )
        directory = project.settings.project_root.directory_name
        request.state.permissions[request_id] = ClientPermission(waiting, directory)
        request.state.publish("permission.asked", waiting, directory)
    return {"id": request_id, "effect": effect}


async def list_saved_permissions(request: Request2, args: takes.ListSavedPermissions) -> list[JSON]:
    """List the permissions that are always allowed in the directory's project."""
    project = await request.get_project()
    project_id = project.settings.project_root.project_id
    if args.project_id not in {None, project_id}:
        return []
    return [
        _describe_grant(grant, project_id, pattern)
        for grant in project.store.permissions.list_all_grants()
        for pattern in grant.patterns
    ]


def _describe_grant(grant: Grant, project_id: str, pattern: str) -> JSON:
    return {
        "id": grant.id,
        "projectID": project_id,
        "action": rename_permission(grant.permission),
        "resource": pattern,
        "time": {"created": grant.time, "updated": grant.time},
    }


async def change_saved_permission(request: Request2, args: takes.ChangeSavedPermission) -> JSON:
    """Change what is always allowed: an action, or what it is about."""
    project = await request.get_project()
    store = project.store.permissions
    grant = next((each for each in store.list_all_grants() if each.id == args.id), None)
    if grant is None:
        raise make_not_found("PermissionSaved", args.id, id=args.id)
    action = args.action or grant.permission
    changed = replace(
        grant,
        permission=PERMISSIONS_OF_VERSION_TWO.get(action, action),
        patterns=[args.resource] if args.resource else grant.patterns,
        time=now_ms(),
    )
    store.revoke([grant.id])
    store.add_grants([changed])
    project_id = project.settings.project_root.project_id
    return _describe_grant(changed, project_id, changed.patterns[0])


# Forms


async def list_forms(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the forms that wait in a directory."""
    here = str(request.directory)
    questions = await request.call(QUESTION_LIST, NoArguments())
    return [
        *(translate_question(each) for each in questions),
        *(
            each.info
            for each in request.state.forms.values()
            if each.directory == here and each.state["status"] == "pending"
        ),
    ]


async def list_session_forms(request: Request2, args: SessionId2) -> list[JSON]:
    """Return the forms that wait in a session."""
    there = await request.at_session(args.session_id)
    return [
        each
        for each in await list_forms(there, NoArguments())
        if each["sessionID"] == args.session_id
    ]


async def create_form(request: Request2, args: takes.CreateForm) -> JSON:
    """Show a form to the user; who made it reads the answer."""
    there = await request.at_session(args.session_id)
    form_id = args.id or f"frm_{secrets.token_hex(12)}"
    if form_id in request.state.forms:
        raise TaggedError("ConflictError", 409, f"There is a form {form_id}.", resource=form_id)
    info = make_object(
        id=form_id,
        sessionID=args.session_id,
        title=args.title,
        fields=args.fields,
        metadata=args.metadata,
    )
    form = ClientForm(info, str(there.directory), {"status": "pending"})
    request.state.forms[form_id] = form
    request.state.publish("form.created", {"form": info}, form.directory)
    return {**info, "state": form.state}


async def get_form(request: Request2, args: takes.FormId) -> JSON:
    """Return a form with its state."""
    form = await _find_client_form(request, args)
    if form is not None:
        return {**form.info, "state": form.state}
    question = await _find_question(request, args.session_id, args.form_id)
    return {**translate_question(question), "state": {"status": "pending"}}


async def reply_form(request: Request2, args: takes.ReplyForm) -> None:
    """Answer a form."""
    found = takes.FormId(session_id=args.session_id, form_id=args.form_id)
    form = await _find_client_form(request, found)
    if form is not None:
        _check_pending(form)
        if problem := find_form_problem(form.info["fields"], args.answer):
            raise TaggedError("FormInvalidAnswerError", 400, problem, id=args.form_id)
        form.state = {"status": "answered", "answer": args.answer}
        data = {"id": args.form_id, "sessionID": args.session_id, "answer": args.answer}
        request.state.publish("form.replied", data, form.directory)
        return
    question = await _find_question(request, args.session_id, args.form_id)
    answers = read_answers(question, args.answer)
    if isinstance(answers, str):
        raise TaggedError("FormInvalidAnswerError", 400, answers, id=args.form_id)
    there = await request.at_session(args.session_id)
    await there.call(QUESTION_REPLY, AnswerQuestion(request_id=question.id, answers=answers))


async def cancel_form(request: Request2, args: takes.CancelForm) -> None:
    """Refuse to answer a form."""
    found = takes.FormId(session_id=args.session_id, form_id=args.form_id)
    form = await _find_client_form(request, found)
    if form is not None:
        _check_pending(form)
        form.state = make_object(status="cancelled", message=args.message)
        data = {"id": args.form_id, "sessionID": args.session_id}
        request.state.publish("form.cancelled", data, form.directory)
        return
    question = await _find_question(request, args.session_id, args.form_id)
    there = await request.at_session(args.session_id)
    await there.call(QUESTION_REJECT, RejectQuestion(request_id=question.id, message=args.message))


async def _find_client_form(request: Request2, args: takes.FormId) -> ClientForm | None:
    await request.find_session(args.session_id)
    form = request.state.forms.get(args.form_id)
    return form if form is not None and form.info["sessionID"] == args.session_id else None


def _check_pending(form: ClientForm) -> None:
    if form.state["status"] != "pending":
        message = f"The form {form.info['id']} is {form.state['status']} already."
        raise TaggedError("FormAlreadySettledError", 409, message, id=form.info["id"])


async def _find_question(request: Request2, session_id: str, form_id: str) -> QuestionRequest:
    for each in await _list_questions(request, session_id):
        if each.id == form_id:
            return each
    raise make_not_found("Form", form_id, id=form_id)


# Questions, as the preview has them


async def _list_questions(request: Request2, session_id: str) -> list[QuestionRequest]:
    there = await request.at_session(session_id)
    questions = await there.call(QUESTION_LIST, NoArguments())
    return [each for each in questions if each.session_id == session_id]


async def list_session_questions(request: Request2, args: SessionId2) -> list[JSON]:
    """Return the questions that wait in a session."""
    return [msgspec.to_builtins(each) for each in await _list_questions(request, args.session_id)]


async def reply_question(request: Request2, args: takes.ReplyQuestion) -> None:
    """Answer a question."""
    await _check_question(request, args.session_id, args.request_id)
    answer = AnswerQuestion(request_id=args.request_id, answers=args.answers)
    await (await request.at_session(args.session_id)).call(QUESTION_REPLY, answer)


async def reject_question(request: Request2, args: takes.RequestId2) -> None:
    """Refuse to answer a question."""
    await _check_question(request, args.session_id, args.request_id)
    await (await request.at_session(args.session_id)).call(
        QUESTION_REJECT, RejectQuestion(request_id=args.request_id)
    )


async def _check_question(request: Request2, session_id: str, request_id: str) -> None:
    if all(each.id != request_id for each in await _list_questions(request, session_id)):
        raise OperationError("QuestionNotFoundError", f"Question request not found: {request_id}")
