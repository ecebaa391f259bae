"""Handlers of permissions: open questions, rules in force, and "always" grants."""

from codeloop.agent.calls.call_rules import find_profile, make_call_rules, make_lists_of_new_session
from codeloop.app.project import Project
from codeloop.kit.wildcard import is_within
from codeloop.permission.questions import settle_question
from codeloop.schema.api.answers import (
    AnswerPermission,
    RespondPermission,
)
from codeloop.schema.errors import OperationError, SessionNotFound
from codeloop.schema.event import PermissionAnswer
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import (
    PermissionQuery,
    PermissionRequest,
    PermissionsInForce,
    RevokeGrant,
    RuleInForce,
    is_category_pattern,
)

_MAX_DECISIONS = 50
"""The latest decisions that `list_rules` returns."""


async def list_pending_requests(project: Project, _args: NoArguments) -> list[PermissionRequest]:
    """Return the open permission questions of running processes."""
    # A process that was killed left its questions open; nobody waits for their answers any more.
    is_held = project.store.leases.is_held
    return [
        request
        for request in project.store.list_pending_permissions()
        if is_held(request.session_id)
    ]


async def answer_request(project: Project, args: AnswerPermission) -> bool:
    """Answer a question. An edited "always" that allows more than the question
    offered needs `wider`.

    Raises OperationError.
    """
    pending_requests = {
        each.id: each for each in await list_pending_requests(project, NoArguments())
    }
    request = pending_requests.get(args.request_id)
    if request is None:
        raise OperationError(
            "PermissionNotFoundError", f"Permission request not found: {args.request_id}"
        )
    answer = PermissionAnswer(
        session_id=request.session_id,
        request_id=args.request_id,
        reply=args.reply,
        message=args.message,
        scope=args.scope,
    )
    edited_patterns = _find_edited_patterns(args, request) if args.reply == "always" else ()
    if not settle_question(project.store, answer, edited_patterns):
        raise OperationError(
            "PermissionNotFoundError", f"Permission request not found: {args.request_id}"
        )
    return True


async def answer_request_by_old_route(project: Project, args: RespondPermission) -> bool:
    """Answer a question, by the older route of the API."""
    return await answer_request(
        project, AnswerPermission(request_id=args.permission_id, reply=args.response)
    )


async def list_rules(project: Project, args: PermissionQuery) -> PermissionsInForce:
    """Return the permission rules in force in a session, or in a new one.
    Raises OperationError: no such session.
    """
    engine, store = project.engine, project.store
    session = store.find_session(args.session_id) if args.session_id is not None else None
    if args.session_id is not None and session is None:
        raise SessionNotFound(args.session_id)
    session_agent = session.agent if session is not None else None
    agent = engine.get_agent(
        args.agent or session_agent or project.settings.config.default_agent or "build"
    )
    is_new = session is None
    lists = (
        make_lists_of_new_session(engine, agent)
        if is_new
        else make_call_rules(engine, session.id, agent).lists
    )
    rules = [
        RuleInForce(
            permission=rule.permission,
            pattern=rule.pattern,
            action=rule.action,
            origin=layer.find_origin(index),
            list=number,
        )
        for number, layers in enumerate(lists)
        for layer in layers
        for index, rule in enumerate(layer.rules)
    ]
    return PermissionsInForce(
        profile=find_profile(engine, session.id)
        if session is not None
        else engine.rulebook.profile,
        agent=agent.name,
        rules=rules,
        grants=store.permissions.list_all_grants(),
        decisions=store.permissions.list_decisions(args.session_id, limit=_MAX_DECISIONS),
    )


async def revoke_grant(project: Project, args: RevokeGrant) -> bool:
    """Revoke an "always" grant. Raises OperationError when no grant has this id."""
    if all(grant.id != args.grant_id for grant in project.store.permissions.list_all_grants()):
        raise OperationError("NotFoundError", f"Nothing is always allowed under {args.grant_id}.")
    project.store.permissions.revoke([args.grant_id])
    return True


def _find_edited_patterns(args: AnswerPermission, request: PermissionRequest) -> tuple[str, ...]:
    """Return the edited patterns to always allow;
    empty if the user has not edited the offered ones.

    Raises OperationError for patterns that can't be allowed so.
    """
    if args.always is None:
        return ()
    if not request.always:
        raise OperationError(
            "BadRequest", "This can't be allowed always. Answer with once or reject."
        )
    added = [pattern for pattern in args.always if pattern not in request.always]
    if not args.always or any(
        not pattern.strip() or is_category_pattern(pattern) for pattern in added
    ):
        raise OperationError(
            "BadRequest", "What is allowed always is a command or a path; * stands for any text."
        )
    if not args.wider and not all(is_within(pattern, request.always) for pattern in added):
        patterns = ", ".join(request.always)
        problem = f"{', '.join(added)} allows more than was offered ({patterns}). Set wider if that is meant."
        raise OperationError("BadRequest", problem)
    return tuple(args.always)
