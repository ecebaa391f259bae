"""The arguments of version 2's operations beside sessions, a struct each.
Its docstrings are in the OpenAPI document.
"""

from typing import Any, Literal

import msgspec

from codeloop.schema.api.pty import PtySize
from codeloop.schema.message import SessionModel
from codeloop.schema.resources import ProjectCommands, ProjectIcon
from codeloop.schema.wire import JSON, Count, Natural, Wire


class AgentId(Wire):
    """Version 2: names an agent."""

    agent_id: str


class ProviderId2(Wire):
    """Version 2: names a provider."""

    provider_id: str


class IntegrationId(Wire):
    """Version 2: names a service that users sign in to: a provider."""

    integration_id: str


class ConnectKey(Wire):
    """Version 2: stores a key for a provider."""

    integration_id: str
    key: str
    answer: JSON | None = None
    label: str | None = None


class ConnectMethod(Wire):
    """Version 2: begins to sign in, by one of the ways of a provider."""

    integration_id: str
    method_id: str
    answer: JSON | None = None
    inputs: JSON | None = None
    label: str | None = None


class SignInId(Wire):
    """Version 2: names a sign-in that was begun."""

    attempt_id: str
    integration_id: str | None = None


class FinishSignIn2(Wire):
    """Version 2: ends a sign-in, with the code that the service showed."""

    attempt_id: str
    integration_id: str | None = None
    code: str | None = None


class WellKnown(Wire):
    """Version 2, refused: a service that describes its own addresses."""

    url: str


class CredentialId(Wire):
    """Version 2: names the stored credential of a provider, by the provider's id."""

    credential_id: str


class CreateCredential(Wire):
    """Version 2: stores a credential of a provider."""

    integration_id: str
    value: JSON
    id: str | None = None
    label: str | None = None
    activate: bool | None = None


class LabelCredential(Wire):
    """Version 2, refused: credentials have no labels."""

    credential_id: str
    label: str


class ListSavedPermissions(Wire):
    """Version 2: what is always allowed in the directory's project.
    With the id of another project: nothing.
    """

    project_id: str | None = None


class SavedPermissionId(Wire):
    """Version 2: names something that is always allowed."""

    id: str


class ChangeSavedPermission(Wire):
    """Version 2: changes something that is always allowed."""

    id: str
    action: str | None = None
    resource: str | None = None


class RequestPermission(Wire):
    """Version 2: asks whether something is allowed in a session; if the rules don't say,
    the user is asked.
    """

    session_id: str
    action: str
    resources: list[str]
    id: str | None = None
    save: list[str] | None = None
    metadata: JSON | None = None
    source: Any = None
    agent: str | None = None


class RequestId2(Wire):
    """Version 2: names a question that waits in a session."""

    session_id: str
    request_id: str


class ReplyPermission(Wire):
    """Version 2: answers a permission request of a session; the preview calls it `reply`."""

    session_id: str
    request_id: str
    decision: Literal["once", "always", "reject"] | None = None
    reply: Literal["once", "always", "reject"] | None = None
    message: str | None = None


class ReplyQuestion(Wire):
    """Preview of version 2: answers a question of a session: the chosen labels of each."""

    session_id: str
    request_id: str
    answers: list[list[str]]


class _FormField(Wire):
    options: list[JSON] | None = None
    when: list[JSON] | None = None


class CreateForm(Wire):
    """Version 2: shows a form to the user."""

    session_id: str
    title: str
    fields: list[JSON]
    id: str | None = None
    metadata: JSON | None = None

    def __post_init__(self) -> None:
        """Raise msgspec.ValidationError for fields that no answer can be checked against."""
        msgspec.convert(self.fields, list[_FormField])


class FormId(Wire):
    """Version 2: names a form of a session."""

    session_id: str
    form_id: str


class CancelForm(Wire):
    """Version 2: refuses to answer a form."""

    session_id: str
    form_id: str
    message: str | None = None


class ReplyForm(Wire):
    """Version 2: answers a form: the values by the keys of its fields."""

    session_id: str
    form_id: str
    answer: JSON


class ReadFile2(Wire):
    """Version 2: names a file of the project by its path; answered with its bytes."""

    path: str


class ListFolder2(Wire):
    """Version 2: names a folder of the project."""

    path: str = ""


class CreatePty2(Wire):
    """Version 2: opens a terminal."""

    command: str | None = None
    args: list[str] | None = None
    cwd: str | None = None
    title: str | None = None
    env: dict[str, str] | None = None


class PtyId2(Wire):
    """Version 2: names a terminal."""

    pty_id: str


class UpdatePty2(Wire):
    """Version 2: renames or resizes a terminal."""

    pty_id: str
    title: str | None = None
    size: PtySize | None = None


class CreateShell(Wire):
    """Version 2: runs a command line of the user beside the sessions; `timeout` in ms."""

    command: str
    cwd: str | None = None
    timeout: Count | None = None
    metadata: JSON | None = None


class ShellId(Wire):
    """Version 2: names a command that was started beside the sessions."""

    id: str


class ReadShell(Wire):
    """Version 2: reads what a command has printed; `cursor`: bytes that were read before."""

    id: str
    cursor: Natural = 0
    limit: Count | None = None


class DiffVcs(Wire):
    """Version 2: asks for the changes of the work tree: since the last commit (`working`),
    or since the branch left another one.
    """

    mode: Literal["working", "branch", "committed"]
    base: str | None = None
    context: Natural | None = None


class ListBranches(Wire):
    """Version 2: lists branches whose name has a text in it."""

    search: str = ""
    limit: Count | None = None


class InitVcs(Wire):
    """Version 2: makes the directory a repository."""

    provider: str | None = None


class ProjectId2(Wire):
    """Version 2: names a project."""

    project_id: str


class CreateWorktree2(Wire):
    """Version 2: makes a work tree of a project. `directory`: of the new folder."""

    project_id: str
    start: str | None = msgspec.field(default=None, name="from")
    branch: str | None = None
    directory: str | None = None
    name: str | None = None


class RemoveWorktree2(Wire):
    """Version 2: removes a work tree."""

    project_id: str
    directory: str
    force: bool = False


class UpdateProject2(Wire):
    """Version 2: changes how a project is shown."""

    project_id: str
    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None


class ServerName(Wire):
    """Version 2: names an MCP server."""

    server: str


class AddServer(Wire):
    """Version 2: adds an MCP server for as long as the project is open."""

    server: str
    config: JSON


class UpdateShellSetting(Wire):
    """Version 2: sets the user's shell; null takes the setting out."""

    shell: str | None = None


class Generate(Wire):
    """Version 2: asks a model for a text."""

    prompt: str
    model: SessionModel | None = None


class SearchWeb(Wire):
    """Version 2: asks a search service."""

    query: str
    provider_id: str | None = None


class PluginTarget(Wire):
    """Version 2: names plugins whose versions are looked up."""

    target: str | None = None


class PluginTargets(Wire):
    """Version 2, refused: names plugins to update."""

    targets: list[str]


class SessionTerminal(Wire):
    """Version 2: names a session whose kept terminals are meant."""

    session_id: str


class KeptTerminal(Wire):
    """Version 2: names a kept terminal; there are none."""

    pty_id: str


class RpcCall(Wire):
    """Version 2, refused: a call of a terminal plugin."""

    rpc_id: str
    method: str
    input: Any = None


class VoiceSession(Wire):
    """Version 2, refused: a conversation by voice."""

    model: str
    transport: Any


class PairingCode(Wire):
    """Version 2, refused: a code of a pairing."""

    code: str
