"""The parameters of the protocol's methods. Unknown fields are skipped, `_meta` among them."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from codeloop.acp.connection import INVALID_PARAMS, RpcError
from codeloop.schema.wire import JSON

Absolute = Annotated[str, Meta(pattern="^/")]


class Params(Struct, frozen=True, kw_only=True, rename="camel"):
    """Parameters, with the protocol's names."""


class ClientAuth(Params, frozen=True):
    """`terminal`: the client can run us in a terminal to sign in."""

    terminal: bool = False


class Elicitation(Params, frozen=True):
    """Whether the client shows forms and opens pages; an empty object means yes."""

    form: JSON | None = None
    url: JSON | None = None


class ClientSession(Params, frozen=True):
    """What the client shows of a session; an empty object means yes."""

    notices: JSON | None = None
    compaction: JSON | None = None


class ClientFiles(Params, frozen=True):
    """Whether the client lets us read and write files as it holds them, unsaved changes included."""

    read_text_file: bool = False
    write_text_file: bool = False


class ClientCapabilities(Params, frozen=True):
    """What the client can do."""

    fs: ClientFiles = ClientFiles()
    auth: ClientAuth | None = None
    elicitation: Elicitation | None = None
    session: ClientSession | None = None
    terminal: bool = False
    meta: JSON | None = field(default=None, name="_meta")


class DraftAuth(Params, frozen=True):
    """As `ClientAuth`; an empty object means yes."""

    terminal: JSON | None = None


class DraftCapabilities(Params, frozen=True):
    """What the client can do, as version 2 has it."""

    auth: DraftAuth | None = None
    elicitation: Elicitation | None = None


class InitializeParams(Params, frozen=True):
    """`initialize`; `capabilities` are those of version 2."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    capabilities: DraftCapabilities | None = None


class AuthenticateParams(Params, frozen=True):
    """`authenticate`."""

    method_id: str


class NewParams(Params, frozen=True):
    """`session/new`. A server of `mcp_servers` without a `type` is started and spoken to over its standard streams."""

    cwd: Absolute
    additional_directories: list[Absolute] = []
    mcp_servers: list[JSON] = []


class ReplayStart(Params, frozen=True):
    """From where a conversation is sent again; the only place that is known is `start`."""

    type: str


class OpenParams(Params, frozen=True):
    """`session/load`, `session/resume`, `session/fork`. `replay_from`: of version 2."""

    session_id: str
    cwd: Absolute | None = None
    additional_directories: list[Absolute] = []
    mcp_servers: list[JSON] = []
    replay_from: ReplayStart | None = None


class ListSessionsParams(Params, frozen=True):
    """`session/list`; the cursor is that of an earlier page."""

    cwd: Absolute | None = None
    cursor: str | None = None


class NamedParams(Params, frozen=True):
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
    """A file or resource that is mentioned."""

    name: str
    uri: str
    mime_type: str | None = None


class ResourceContents(Params, frozen=True):
    """A file's content as the editor has it: `text`, or `blob` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class EditorResource(Params, frozen=True, tag_field="type", tag="resource"):
    """A file that is mentioned, with its content."""

    resource: ResourceContents


PromptBlock = EditorText | EditorImage | EditorAudio | EditorLink | EditorResource


class PromptParams(Params, frozen=True):
    """`session/prompt`."""

    session_id: str
    prompt: list[PromptBlock]


P = TypeVar("P", bound=Params)


def read_params(kind: type[P], raw: Any) -> P:
    """Read parameters. Raises RpcError, which names the field that is wrong."""
    try:
        return msgspec.convert({} if raw is None else raw, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"{error}.") from error
