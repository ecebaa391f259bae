"""The table of the preview (`/api/*`): its operations, how their answers are wrapped,
and what answers them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from codeloop.schema.api.agents import AGENT_LIST, COMMAND_LIST, SKILL_LIST
from codeloop.schema.api.answers import PERMISSION_LIST, PERMISSION_REVOKE, QUESTION_LIST
from codeloop.schema.api.files import FILE_LIST
from codeloop.schema.api.providers import (
    AUTH_REMOVE,
    AUTH_SET,
    CONFIG_PROVIDERS,
    PROVIDER_LIST,
    ApiAuth,
    ProviderId,
    SetAuth,
)
from codeloop.schema.api.pty import (
    PTY_CREATE,
    PTY_GET,
    PTY_LIST,
    PTY_REMOVE,
    PTY_TICKET,
    PTY_UPDATE,
    CreatePty,
)
from codeloop.schema.api.session_requests import SESSION_GET
from codeloop.schema.api.session_undo import SESSION_UNREVERT
from codeloop.schema.operation import AnyOperation, Constant, NoArguments, Operation, Unsupported
from codeloop.schema.permission import RevokeGrant
from codeloop.schema.wire import JSON, Wire
from codeloop.server.preview import arguments as takes
from codeloop.server.preview.translate import (
    translate_agent,
    translate_command,
    translate_entries,
    translate_integrations,
    translate_models,
    translate_permission,
    translate_providers,
    translate_session,
)

AnswerWrap = Literal["located", "data", "plain", "none"]
"""How an answer is wrapped: under `data` with its `location`, under `data` alone, not at all;
none: there is no answer.

The contract of version 2 wraps each operation in one of these ways.
"""


class Forward(Struct, frozen=True):
    """An operation of version 1 that answers one of the preview,
    and how its values become those of version 2.

    `take`: makes its arguments of those of the preview; without it, they are the fields of the same
    names. Without `translate`, its answer is the same in both versions.
    """

    operation: AnyOperation
    translate: Callable[[Any], Any] = msgspec.to_builtins
    take: Callable[[Any], Wire] | None = None

    def make_arguments(self, args: Wire) -> Wire:
        """Return the arguments of the operation of version 1."""
        if self.take is not None:
            return self.take(args)
        takes_type = self.operation.takes
        names = [name for name in takes_type.__struct_fields__ if name in args.__struct_fields__]
        return takes_type(**{name: getattr(args, name) for name in names})


Answer = Forward | Unsupported | Constant | str
"""What answers an operation; a text: the handler, as `module:function` of this folder,
loaded for the first request.
"""


def make_create_pty(args: takes.CreatePreviewPty) -> CreatePty:
    """Return the request for a terminal in the form of version 1."""
    return CreatePty(
        command=args.command,
        args=args.args or [],
        cwd=args.cwd,
        title=args.title,
        env=args.env or {},
    )


def _each(translate: Callable[[Any], JSON]) -> Callable[[Iterable[Any]], list[JSON]]:
    return lambda values: [translate(value) for value in values]


def _make_operation(head: str, takes_type: type[Wire]) -> AnyOperation:
    wrap, operation_id, method, path = head.split()
    return Operation(
        operation_id, cast("Any", method), path, takes_type, type(None) if wrap == "none" else JSON
    )


_NO_ATTEMPTS = Unsupported(
    "Sign in by /provider/{providerID}/oauth/authorize, and finish by .../callback; the server keeps no attempts."
)
# Of each row: how its answer is wrapped, its id, method and path; its arguments; what answers it.
_ROWS: tuple[tuple[str, type[Wire], Answer], ...] = (
    ("plain v2.health.get GET /api/health", NoArguments, Constant({"healthy": True})),
    (
        "located v2.agent.list GET /api/agent",
        NoArguments,
        Forward(AGENT_LIST, _each(translate_agent)),
    ),
    ("plain v2.session.list GET /api/session", takes.ListPreviewSessions, "sessions:list_sessions"),
    (
        "data v2.session.create POST /api/session",
        takes.CreatePreviewSession,
        "sessions:create_session",
    ),
    (
        "data v2.session.active GET /api/session/active",
        NoArguments,
        "sessions:list_active_sessions",
    ),
    (
        "data v2.session.get GET /api/session/{sessionID}",
        takes.PreviewSessionId,
        Forward(SESSION_GET, translate_session),
    ),
    (
        "none v2.session.switchAgent POST /api/session/{sessionID}/agent",
        takes.SwitchAgent,
        "sessions:switch_agent",
    ),
    (
        "none v2.session.switchModel POST /api/session/{sessionID}/model",
        takes.SwitchModel,
        "sessions:switch_model",
    ),
    (
        "data v2.session.prompt POST /api/session/{sessionID}/prompt",
        takes.AdmitPrompt,
        "sessions:admit_prompt",
    ),
    (
        "none v2.session.compact POST /api/session/{sessionID}/compact",
        takes.PreviewSessionId,
        "sessions:compact_session",
    ),
    (
        "none v2.session.wait POST /api/session/{sessionID}/wait",
        takes.PreviewSessionId,
        "sessions:wait_for_turn",
    ),
    (
        "data v2.session.revert.stage POST /api/session/{sessionID}/revert/stage",
        takes.StageRevert,
        "sessions:stage_revert",
    ),
    (
        "none v2.session.revert.clear POST /api/session/{sessionID}/revert/clear",
        takes.PreviewSessionId,
        Forward(SESSION_UNREVERT),
    ),
    (
        "none v2.session.revert.commit POST /api/session/{sessionID}/revert/commit",
        takes.PreviewSessionId,
        "sessions:commit_revert",
    ),
    (
        "data v2.session.context GET /api/session/{sessionID}/context",
        takes.PreviewSessionId,
        "sessions:list_context_messages",
    ),
    (
        "plain v2.session.history GET /api/session/{sessionID}/history",
        takes.PreviewSessionId,
        "sessions:refuse_history",
    ),
    (
        "plain v2.session.events GET /api/session/{sessionID}/event",
        takes.PreviewSessionId,
        "sessions:refuse_history",
    ),
    (
        "none v2.session.interrupt POST /api/session/{sessionID}/interrupt",
        takes.PreviewSessionId,
        "sessions:interrupt_turn",
    ),
    (
        "plain v2.session.messages GET /api/session/{sessionID}/message",
        takes.ListPreviewMessages,
        "sessions:list_messages",
    ),
    (
        "data v2.session.message GET /api/session/{sessionID}/message/{messageID}",
        takes.PreviewMessageId,
        "sessions:get_message",
    ),
    (
        "located v2.model.list GET /api/model",
        NoArguments,
        Forward(CONFIG_PROVIDERS, translate_models),
    ),
    (
        "located v2.provider.list GET /api/provider",
        NoArguments,
        Forward(CONFIG_PROVIDERS, translate_providers),
    ),
    (
        "located v2.provider.get GET /api/provider/{providerID}",
        takes.PreviewProviderId,
        "catalog:get_provider",
    ),
    (
        "located v2.integration.list GET /api/integration",
        NoArguments,
        Forward(PROVIDER_LIST, translate_integrations),
    ),
    (
        "located v2.integration.attempt.status GET /api/integration/attempt/{attemptID}",
        takes.AttemptId,
        _NO_ATTEMPTS,
    ),
    (
        "none v2.integration.attempt.cancel DELETE /api/integration/attempt/{attemptID}",
        takes.AttemptId,
        _NO_ATTEMPTS,
    ),
    (
        "none v2.integration.attempt.complete POST /api/integration/attempt/{attemptID}/complete",
        takes.CompleteAttempt,
        _NO_ATTEMPTS,
    ),
    (
        "located v2.integration.get GET /api/integration/{integrationID}",
        takes.IntegrationId,
        "catalog:get_integration",
    ),
    (
        "none v2.integration.connect.key POST /api/integration/{integrationID}/connect/key",
        takes.ConnectKey,
        Forward(
            AUTH_SET,
            take=lambda args: SetAuth(provider_id=args.integration_id, auth=ApiAuth(key=args.key)),
        ),
    ),
    (
        "located v2.integration.connect.oauth POST /api/integration/{integrationID}/connect/oauth",
        takes.ConnectOAuth,
        _NO_ATTEMPTS,
    ),
    (
        "none v2.credential.update PATCH /api/credential/{credentialID}",
        takes.LabelCredential,
        Unsupported("Credentials have no labels: there is one for each provider."),
    ),
    (
        "none v2.credential.remove DELETE /api/credential/{credentialID}",
        takes.CredentialId,
        Forward(AUTH_REMOVE, take=lambda args: ProviderId(provider_id=args.credential_id)),
    ),
    (
        "located v2.permission.request.list GET /api/permission/request",
        NoArguments,
        Forward(PERMISSION_LIST, _each(translate_permission)),
    ),
    (
        "data v2.permission.saved.list GET /api/permission/saved",
        takes.ListSavedPermissions,
        "workspace:list_saved_permissions",
    ),
    (
        "none v2.permission.saved.remove DELETE /api/permission/saved/{id}",
        takes.SavedPermissionId,
        Forward(PERMISSION_REVOKE, take=lambda args: RevokeGrant(grant_id=args.id)),
    ),
    (
        "data v2.session.permission.create POST /api/session/{sessionID}/permission",
        takes.RequestPermission,
        Unsupported(
            "A client asks for permission within a call of its own tools: /session/{id}/tools/.../ask."
        ),
    ),
    (
        "data v2.session.permission.list GET /api/session/{sessionID}/permission",
        takes.PreviewSessionId,
        "workspace:list_session_requests",
    ),
    (
        "data v2.session.permission.get GET /api/session/{sessionID}/permission/{requestID}",
        takes.PreviewRequestId,
        "workspace:get_request",
    ),
    (
        "none v2.session.permission.reply POST /api/session/{sessionID}/permission/{requestID}/reply",
        takes.ReplyPermission,
        "workspace:reply_permission",
    ),
    ("plain v2.fs.read GET /api/fs/read/{path}", takes.ReadPreviewFile, "workspace:read_file"),
    (
        "located v2.fs.list GET /api/fs/list",
        takes.ListPreviewFolder,
        Forward(FILE_LIST, translate_entries),
    ),
    (
        "located v2.command.list GET /api/command",
        NoArguments,
        Forward(COMMAND_LIST, _each(translate_command)),
    ),
    ("located v2.skill.list GET /api/skill", NoArguments, Forward(SKILL_LIST)),
    ("located v2.pty.list GET /api/pty", NoArguments, Forward(PTY_LIST)),
    (
        "located v2.pty.create POST /api/pty",
        takes.CreatePreviewPty,
        Forward(PTY_CREATE, take=make_create_pty),
    ),
    ("located v2.pty.get GET /api/pty/{ptyID}", takes.PreviewPtyId, Forward(PTY_GET)),
    ("located v2.pty.update PUT /api/pty/{ptyID}", takes.UpdatePreviewPty, Forward(PTY_UPDATE)),
    ("none v2.pty.remove DELETE /api/pty/{ptyID}", takes.PreviewPtyId, Forward(PTY_REMOVE)),
    (
        "located v2.pty.connectToken POST /api/pty/{ptyID}/connect-token",
        takes.PreviewPtyId,
        Forward(PTY_TICKET),
    ),
    (
        "located v2.question.request.list GET /api/question/request",
        NoArguments,
        Forward(QUESTION_LIST),
    ),
    (
        "data v2.session.question.list GET /api/session/{sessionID}/question",
        takes.PreviewSessionId,
        "workspace:list_session_questions",
    ),
    (
        "none v2.session.question.reply POST /api/session/{sessionID}/question/{requestID}/reply",
        takes.ReplyQuestion,
        "workspace:reply_question",
    ),
    (
        "none v2.session.question.reject POST /api/session/{sessionID}/question/{requestID}/reject",
        takes.PreviewRequestId,
        "workspace:reject_question",
    ),
    ("located v2.reference.list GET /api/reference", NoArguments, Constant([])),
)

PREVIEW_OPERATIONS: tuple[AnyOperation, ...] = tuple(
    _make_operation(head, takes_type) for head, takes_type, _ in _ROWS
)
"""Every row of the preview; of two paths that match a request, the first counts."""
ANSWER_WRAPS: dict[str, AnswerWrap] = {
    head.split()[1]: cast("AnswerWrap", head.split()[0]) for head, _, _ in _ROWS
}
"""How the answer of each row is wrapped, by its id."""
ANSWERS: dict[str, Answer] = {head.split()[1]: answer for head, _, answer in _ROWS}
"""What answers each row, by its id."""
LIST_OPERATIONS = frozenset(
    row.id
    for row in PREVIEW_OPERATIONS
    if ANSWER_WRAPS[row.id] in {"located", "data"}
    and (row.id.endswith(".list") or row.id == "v2.session.context")
)
"""The ids of the rows whose answer holds a list under `data`;
the document describes them as arrays.
"""
