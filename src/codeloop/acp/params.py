"""The parameters of the methods that editors call.
Unknown fields are ignored, as later versions may add some.
"""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from codeloop.acp.connection import INVALID_PARAMS, RpcError
from codeloop.schema.wire import JSON

# The protocol demands absolute paths; a relative one would depend on the directory
# that we were started in.
AbsolutePath = Annotated[str, Meta(pattern="^/")]


class Params(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of parameters and their parts; field names are camelCase on the wire."""


class AuthSupport(Params, frozen=True):
    """How a user can sign in. `terminal`: the editor can run the agent in a terminal for it."""

    terminal: bool = False


class ElicitationSupport(Params, frozen=True):
    """The elicitation that the editor supports: forms and web pages. An empty object means yes."""

    form: JSON | None = None
    url: JSON | None = None


class SessionSupport(Params, frozen=True):
    """The optional updates of a session that the editor shows. An empty object means yes."""

    notices: JSON | None = None
    compaction: JSON | None = None


class FileSupport(Params, frozen=True):
    """Whether the editor lets agents read and write files as it has them, with unsaved changes."""

    read_text_file: bool = False
    write_text_file: bool = False


class ClientCapabilities(Params, frozen=True):
    """The capabilities of an editor in version 1. `meta`: extensions of the protocol."""

    fs: FileSupport = FileSupport()
    auth: AuthSupport | None = None
    elicitation: ElicitationSupport | None = None
    session: SessionSupport | None = None
    terminal: bool = False
    meta: JSON | None = field(default=None, name="_meta")


class DraftAuthSupport(Params, frozen=True):
    """As `AuthSupport`; an empty object means yes."""

    terminal: JSON | None = None


class DraftCapabilities(Params, frozen=True):
    """The capabilities of an editor in version 2."""

    auth: DraftAuthSupport | None = None
    elicitation: ElicitationSupport | None = None


class InitializeParams(Params, frozen=True):
    """`initialize`. Version 1 sends `client_capabilities`, version 2 `capabilities`."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    capabilities: DraftCapabilities | None = None


class AuthenticateParams(Params, frozen=True):
    """`authenticate`."""

    method_id: str


class NewSessionParams(Params, frozen=True):
    """`session/new`. An entry of `mcp_servers` without a `type` is a program with MCP
    over its stdin and stdout.
    """

    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
    mcp_servers: list[JSON] = []


class ReplayStart(Params, frozen=True):
    """The point from which to send a conversation again; only `start` is defined so far."""

    type: str


class OpenSessionParams(Params, frozen=True):
    """`session/load`, `session/resume`, `session/fork`. `replay_from`: only in version 2."""

    session_id: str
    cwd: AbsolutePath | None = None
    additional_directories: list[AbsolutePath] = []
    mcp_servers: list[JSON] = []
    replay_from: ReplayStart | None = None


class ListSessionsParams(Params, frozen=True):
    """`session/list`. `cursor`: from the page before; None: the first page."""

    cwd: AbsolutePath | None = None
    cursor: str | None = None


class SessionParams(Params, frozen=True):
    """`session/close`, `session/delete`, `session/cancel`."""

    session_id: str


class ModeParams(Params, frozen=True):
    """`session/set_mode`."""

    session_id: str
    mode_id: str


class OptionParams(Params, frozen=True):
    """`session/set_config_option`."""

    session_id: str
    config_id: str
    value: str | bool


class EditorText(Params, frozen=True, tag_field="type", tag="text"):
    """Text of a prompt."""

    text: str


class EditorImage(Params, frozen=True, tag_field="type", tag="image"):
    """A picture; `data` is base64."""

    data: str
    mime_type: str
    uri: str | None = None


class EditorAudio(Params, frozen=True, tag_field="type", tag="audio"):
    """A recording; `data` is base64."""

    data: str
    mime_type: str


class EditorLink(Params, frozen=True, tag_field="type", tag="resource_link"):
    """A mention of a file or a resource, without its content."""

    name: str
    uri: str
    mime_type: str | None = None


class ResourceContents(Params, frozen=True):
    """The content of a file as the editor has it: `text`, or `blob` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class EditorResource(Params, frozen=True, tag_field="type", tag="resource"):
    """A mention of a file, with its content."""

    resource: ResourceContents


PromptBlock = EditorText | EditorImage | EditorAudio | EditorLink | EditorResource


class PromptParams(Params, frozen=True):
    """`session/prompt`."""

    session_id: str
    prompt: list[PromptBlock]


ParamsType = TypeVar("ParamsType", bound=Params)


def read_params(params_type: type[ParamsType], raw: Any) -> ParamsType:
    """Convert the parameters of a call. Raises RpcError, which names the wrong field."""
    try:
        return msgspec.convert({} if raw is None else raw, params_type)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"{error}.") from error
