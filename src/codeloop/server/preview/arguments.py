"""The arguments of the preview's operations (`/api/*`), a struct each.
Its docstrings are in the OpenAPI document.
"""

from typing import Any, Literal

from codeloop.schema.api.pty import PtySize
from codeloop.schema.message import SessionModel
from codeloop.schema.wire import JSON, Count, Wire


class PreviewLocation(Wire):
    """A directory."""

    directory: str


class ListPreviewSessions(Wire):
    """Preview: sessions of every project by the time of their creation.
    `cursor`: from an earlier answer.
    """

    limit: Count = 50
    order: Literal["asc", "desc"] = "desc"
    search: str | None = None
    project: str | None = None
    directory: str | None = None
    subpath: str | None = None
    cursor: str | None = None


class PreviewRule(Wire):
    """A permission rule: an action such as `shell`, the resources that it is about,
    and its effect.
    """

    action: str
    effect: Literal["allow", "ask", "deny"]
    resource: str = "*"


class CreatePreviewSession(Wire):
    """Preview: makes a session, whose rules are `permissions`.
    Its id is always the server's choice.
    """

    parent_id: str | None = None
    title: str | None = None
    metadata: JSON | None = None
    permissions: list[PreviewRule] | None = None
    agent: str | None = None
    model: SessionModel | None = None
    location: PreviewLocation | None = None


class PreviewSessionId(Wire):
    """Preview: names a session."""

    session_id: str


class SwitchAgent(Wire):
    """Preview: names the agent of the next turns."""

    session_id: str
    agent: str


class SwitchModel(Wire):
    """Preview: names the model of the next turns."""

    session_id: str
    model: SessionModel


class PromptFile(Wire):
    """A file of a prompt."""

    uri: str
    name: str | None = None
    description: str | None = None


class PromptAgent(Wire):
    """A subagent that a prompt names."""

    name: str


class PreviewPrompt(Wire):
    """A prompt."""

    text: str
    files: list[PromptFile] = []
    agents: list[PromptAgent] = []


class AdmitPrompt(Wire):
    """Preview: stores a prompt and, unless `resume` is false, begins a turn.
    `queue` is refused while one runs.
    """

    session_id: str
    prompt: PreviewPrompt
    id: str | None = None
    delivery: Literal["steer", "queue"] = "steer"
    resume: bool = True


class StageRevert(Wire):
    """Preview: reverts the messages from a message on, and the files that were changed since."""

    session_id: str
    message_id: str
    files: bool = True


class PreviewMessageId(Wire):
    """Preview: names a message of a session."""

    session_id: str
    message_id: str


class ListPreviewMessages(Wire):
    """Preview: messages of a session. `cursor`: from an earlier answer."""

    session_id: str
    limit: Count = 50
    order: Literal["asc", "desc"] = "desc"
    cursor: str | None = None


class PreviewProviderId(Wire):
    """Preview: names a provider."""

    provider_id: str


class IntegrationId(Wire):
    """Preview: names a service that users sign in to: a provider."""

    integration_id: str


class ConnectKey(Wire):
    """Preview: stores a key for a provider."""

    integration_id: str
    key: str
    label: str | None = None


class ConnectOAuth(Wire):
    """Preview, refused: users sign in by `/provider/{providerID}/oauth/authorize`."""

    integration_id: str
    method_id: str
    inputs: dict[str, str] = {}
    label: str | None = None


class AttemptId(Wire):
    """Preview, refused: there are no attempts to sign in."""

    attempt_id: str


class CompleteAttempt(Wire):
    """Preview, refused: there are no attempts to sign in."""

    attempt_id: str
    code: str | None = None


class CredentialId(Wire):
    """Preview: names the stored credential of a provider, by the provider's id."""

    credential_id: str


class LabelCredential(Wire):
    """Preview, refused: credentials have no labels."""

    credential_id: str
    label: str


class ListSavedPermissions(Wire):
    """Preview: what is always allowed in the directory's project.
    With the id of another project: nothing.
    """

    project_id: str | None = None


class SavedPermissionId(Wire):
    """Preview: names something that is always allowed."""

    id: str


class RequestPermission(Wire):
    """Preview, refused: a client asks within a call of its own tools."""

    session_id: str
    action: str
    resources: list[str]
    id: str | None = None
    save: list[str] | None = None
    metadata: JSON | None = None
    source: Any = None
    agent: str | None = None


class PreviewRequestId(Wire):
    """Preview: names a question that waits in a session."""

    session_id: str
    request_id: str


class ReplyPermission(Wire):
    """Preview: answers a permission request of a session."""

    session_id: str
    request_id: str
    reply: Literal["once", "always", "reject"]
    message: str | None = None


class ReplyQuestion(Wire):
    """Preview: answers a question of a session: the chosen labels of each."""

    session_id: str
    request_id: str
    answers: list[list[str]]


class ReadPreviewFile(Wire):
    """Preview: names a file of the project by its path; answered with its bytes."""

    path: str


class ListPreviewFolder(Wire):
    """Preview: names a folder of the project."""

    path: str = ""


class CreatePreviewPty(Wire):
    """Preview: opens a terminal."""

    command: str | None = None
    args: list[str] | None = None
    cwd: str | None = None
    title: str | None = None
    env: dict[str, str] | None = None


class PreviewPtyId(Wire):
    """Preview: names a terminal."""

    pty_id: str


class UpdatePreviewPty(Wire):
    """Preview: renames or resizes a terminal."""

    pty_id: str
    title: str | None = None
    size: PtySize | None = None
