"""The operations of the preview (`/api/*`), and how their answers are wrapped."""

from typing import Any, Literal

from codeloop.schema.operation import AnyOperation, NoArguments, Operation
from codeloop.schema.wire import JSON, Wire
from codeloop.server.preview import arguments as takes

AnswerWrap = Literal["located", "data", "plain", "none"]
"""How an answer is wrapped: under `data` with its `location`, under `data` alone, not at all; none: there is no answer.

The contract of version 2 wraps each operation in one of these ways.
"""

_SESSION = "/api/session/{sessionID}"
_ROWS: tuple[tuple[AnswerWrap, str, Any, str, type[Wire]], ...] = (
    ("plain", "v2.health.get", "GET", "/api/health", NoArguments),
    ("located", "v2.agent.list", "GET", "/api/agent", NoArguments),
    ("plain", "v2.session.list", "GET", "/api/session", takes.ListPreviewSessions),
    ("data", "v2.session.create", "POST", "/api/session", takes.CreatePreviewSession),
    ("data", "v2.session.active", "GET", "/api/session/active", NoArguments),
    ("data", "v2.session.get", "GET", _SESSION, takes.PreviewSessionId),
    ("none", "v2.session.switchAgent", "POST", f"{_SESSION}/agent", takes.SwitchAgent),
    ("none", "v2.session.switchModel", "POST", f"{_SESSION}/model", takes.SwitchModel),
    ("data", "v2.session.prompt", "POST", f"{_SESSION}/prompt", takes.AdmitPrompt),
    ("none", "v2.session.compact", "POST", f"{_SESSION}/compact", takes.PreviewSessionId),
    ("none", "v2.session.wait", "POST", f"{_SESSION}/wait", takes.PreviewSessionId),
    ("data", "v2.session.revert.stage", "POST", f"{_SESSION}/revert/stage", takes.StageRevert),
    ("none", "v2.session.revert.clear", "POST", f"{_SESSION}/revert/clear", takes.PreviewSessionId),
    ("none", "v2.session.revert.commit", "POST", f"{_SESSION}/revert/commit", takes.PreviewSessionId),
    ("data", "v2.session.context", "GET", f"{_SESSION}/context", takes.PreviewSessionId),
    ("plain", "v2.session.history", "GET", f"{_SESSION}/history", takes.PreviewSessionId),
    ("plain", "v2.session.events", "GET", f"{_SESSION}/event", takes.PreviewSessionId),
    ("none", "v2.session.interrupt", "POST", f"{_SESSION}/interrupt", takes.PreviewSessionId),
    ("plain", "v2.session.messages", "GET", f"{_SESSION}/message", takes.ListPreviewMessages),
    ("data", "v2.session.message", "GET", f"{_SESSION}/message/{{messageID}}", takes.PreviewMessageId),
    ("located", "v2.model.list", "GET", "/api/model", NoArguments),
    ("located", "v2.provider.list", "GET", "/api/provider", NoArguments),
    ("located", "v2.provider.get", "GET", "/api/provider/{providerID}", takes.PreviewProviderId),
    ("located", "v2.integration.list", "GET", "/api/integration", NoArguments),
    ("located", "v2.integration.attempt.status", "GET", "/api/integration/attempt/{attemptID}", takes.AttemptId),
    ("none", "v2.integration.attempt.cancel", "DELETE", "/api/integration/attempt/{attemptID}", takes.AttemptId),
    (
        "none",
        "v2.integration.attempt.complete",
        "POST",
        "/api/integration/attempt/{attemptID}/complete",
        takes.CompleteAttempt,
    ),
    ("located", "v2.integration.get", "GET", "/api/integration/{integrationID}", takes.IntegrationId),
    ("none", "v2.integration.connect.key", "POST", "/api/integration/{integrationID}/connect/key", takes.ConnectKey),
    (
        "located",
        "v2.integration.connect.oauth",
        "POST",
        "/api/integration/{integrationID}/connect/oauth",
        takes.ConnectOAuth,
    ),
    ("none", "v2.credential.update", "PATCH", "/api/credential/{credentialID}", takes.LabelCredential),
    ("none", "v2.credential.remove", "DELETE", "/api/credential/{credentialID}", takes.CredentialId),
    ("located", "v2.permission.request.list", "GET", "/api/permission/request", NoArguments),
    ("data", "v2.permission.saved.list", "GET", "/api/permission/saved", takes.ListSavedPermissions),
    ("none", "v2.permission.saved.remove", "DELETE", "/api/permission/saved/{id}", takes.SavedPermissionId),
    ("data", "v2.session.permission.create", "POST", f"{_SESSION}/permission", takes.RequestPermission),
    ("data", "v2.session.permission.list", "GET", f"{_SESSION}/permission", takes.PreviewSessionId),
    ("data", "v2.session.permission.get", "GET", f"{_SESSION}/permission/{{requestID}}", takes.PreviewRequestId),
    (
        "none",
        "v2.session.permission.reply",
        "POST",
        f"{_SESSION}/permission/{{requestID}}/reply",
        takes.ReplyPermission,
    ),
    ("plain", "v2.fs.read", "GET", "/api/fs/read/{path}", takes.ReadPreviewFile),
    ("located", "v2.fs.list", "GET", "/api/fs/list", takes.ListPreviewFolder),
    ("located", "v2.command.list", "GET", "/api/command", NoArguments),
    ("located", "v2.skill.list", "GET", "/api/skill", NoArguments),
    ("located", "v2.pty.list", "GET", "/api/pty", NoArguments),
    ("located", "v2.pty.create", "POST", "/api/pty", takes.CreatePreviewPty),
    ("located", "v2.pty.get", "GET", "/api/pty/{ptyID}", takes.PreviewPtyId),
    ("located", "v2.pty.update", "PUT", "/api/pty/{ptyID}", takes.UpdatePreviewPty),
    ("none", "v2.pty.remove", "DELETE", "/api/pty/{ptyID}", takes.PreviewPtyId),
    ("located", "v2.pty.connectToken", "POST", "/api/pty/{ptyID}/connect-token", takes.PreviewPtyId),
    ("located", "v2.question.request.list", "GET", "/api/question/request", NoArguments),
    ("data", "v2.session.question.list", "GET", f"{_SESSION}/question", takes.PreviewSessionId),
    ("none", "v2.session.question.reply", "POST", f"{_SESSION}/question/{{requestID}}/reply", takes.ReplyQuestion),
    (
        "none",
        "v2.session.question.reject",
        "POST",
        f"{_SESSION}/question/{{requestID}}/reject",
        takes.PreviewRequestId,
    ),
    ("located", "v2.reference.list", "GET", "/api/reference", NoArguments),
)

PREVIEW_OPERATIONS: tuple[AnyOperation, ...] = tuple(
    Operation(operation_id, method, path, takes_type, type(None) if wrap == "none" else JSON)
    for wrap, operation_id, method, path, takes_type in _ROWS
)
"""Every row of the preview; of two paths that match a request, the first counts."""
ANSWER_WRAPS: dict[str, AnswerWrap] = {operation_id: wrap for wrap, operation_id, *_ in _ROWS}
"""How the answer of each row is wrapped, by its id."""
LIST_OPERATIONS = frozenset(
    row.id
    for row in PREVIEW_OPERATIONS
    if ANSWER_WRAPS[row.id] in {"located", "data"} and (row.id.endswith(".list") or row.id == "v2.session.context")
)
"""The ids of the rows whose answer holds a list under `data`; the document describes them as arrays."""
