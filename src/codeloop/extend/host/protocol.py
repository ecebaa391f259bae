"""The protocol between us and an extension host: version 1, documented in docs/extensions.md.

One JSON object a line, over a socket whose descriptor the host finds in the environment. Each side
numbers its own requests; an answer, `result` or `error`, has the number of its request.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.schema.wire import JSON, bound_depth, convert_to_wire_name

VERSION = 1
DESCRIPTOR_VARIABLE = "CODELOOP_HOST_FD"
"""The variable with the descriptor's number."""


class HostMessage(Struct, frozen=True, tag_field="type", omit_defaults=True):
    """The base of all messages; the JSON key `type` holds the tag."""


# Messages to a host


class HostHello(HostMessage, frozen=True, tag="hello"):
    """The first message. `operations`: id, method and route of what a host may ask of our API."""

    version: int
    directory: str
    root: str
    project: JSON
    operations: tuple[tuple[str, str, str], ...] = ()


class LoadSpec(Struct, frozen=True, omit_defaults=True):
    """An extension to load. `path`: a file, a package's folder,
    or `module:name` of an installed one.
    """

    name: str
    path: str
    kind: Literal["tool", "plugin"]
    options: JSON | None = None


class LoadRequest(HostMessage, frozen=True, tag="load"):
    """Load an extension; answered with an ExtensionOffer."""

    id: int
    extension: LoadSpec


class CallOrigin(Struct, frozen=True, rename=convert_to_wire_name):
    """The session, message, agent and folders that a call belongs to."""

    session_id: str = ""
    message_id: str = ""
    call_id: str = ""
    agent: str = ""
    directory: str = ""
    worktree: str = ""


class CallTool(HostMessage, frozen=True, tag="call"):
    """Call a tool; answered with a ToolAnswer."""

    id: int
    extension: str
    tool: str
    arguments: JSON
    context: CallOrigin


class AskHook(HostMessage, frozen=True, tag="hook"):
    """Call an extension's hook; answered with the changed `output`."""

    id: int
    extension: str
    name: str
    input: JSON
    output: JSON


class CancelRequest(HostMessage, frozen=True, tag="cancel"):
    """Cancel a request; it is still answered, with its outcome."""

    id: int


class EventBatch(HostMessage, frozen=True, tag="events"):
    """Events for followers; answered by EventsTaken."""

    events: tuple[msgspec.Raw, ...]


class AuthStep(HostMessage, frozen=True, tag="auth", omit_defaults=True):
    """A step of signing in with a plugin; `method` counts its methods from 0.

    `authorize` is answered with `{url, instructions, method: "auto"|"code"}`, or for a key with
    what the plugin makes of it; `callback` with `{type: "success", ...}` or `{type: "failed"}`;
    `loader` with a LoadedSignIn.
    """

    id: int
    extension: str
    step: Literal["authorize", "callback", "loader"]
    method: int = 0
    inputs: dict[str, str] = {}
    code: str = ""
    credential: JSON | None = None
    provider: JSON | None = None


class FetchedRequest(Struct, frozen=True):
    """A request to a model's service."""

    url: str
    method: str
    headers: dict[str, str]
    body: str


class PluginRequest(HostMessage, frozen=True, tag="fetch"):
    """Send a request through a plugin's own `fetch`;
    answered by a FetchHead, FetchChunks, and at last a result.
    """

    id: int
    extension: str
    request: FetchedRequest
    credential: JSON


# Answers of either side


class AnswerResult(HostMessage, frozen=True, tag="result"):
    """The result of a request."""

    id: int
    value: Any


class AnswerError(HostMessage, frozen=True, tag="error"):
    """A request failed.

    `raised`: the extension's own code raised an exception, or a host's request was refused;
    `invalid`: the arguments, the extension, its result or the runtime can't be used; `missing`:
    there is no such extension, tool or operation.
    `name`: of the exception. `data`: the error in the form of our API.
    """

    id: int
    kind: Literal["raised", "invalid", "missing"]
    message: str
    name: str = ""
    trace: str = ""
    data: JSON | None = None


# Messages from a host


class HostReady(HostMessage, frozen=True, tag="ready"):
    """The answer to HostHello. `runtime`: such as `node 22.1`."""

    version: int
    runtime: str


class HostQuestion(HostMessage, frozen=True, tag="ask"):
    """Sent during a call: asks for a permission, about which the rules or the user decide."""

    id: int
    call: int
    permission: str
    patterns: tuple[str, ...] = ("*",)
    always: tuple[str, ...] = ()
    metadata: JSON = {}


class CallProgress(HostMessage, frozen=True, tag="report"):
    """Sent during a call: its progress."""

    call: int
    title: str | None = None
    metadata: JSON | None = None


class OperationCall(HostMessage, frozen=True, tag="operation"):
    """Sent at any time: a request for an operation of our API."""

    id: int
    operation: str
    path: JSON | None = None
    query: JSON | None = None
    body: Any = None


class EventsTaken(HostMessage, frozen=True, tag="taken"):
    """Acknowledges `count` of the events as handled."""

    count: int


class FetchHead(HostMessage, frozen=True, tag="response"):
    """Status and headers of the response to a PluginRequest."""

    id: int
    status: int
    headers: tuple[tuple[str, str], ...] = ()


class FetchChunk(HostMessage, frozen=True, tag="chunk"):
    """A piece of that response's body, in base64."""

    id: int
    data: bytes


class LogLine(HostMessage, frozen=True, tag="log"):
    """A line for our log."""

    message: str
    level: str = "info"
    extra: JSON | None = None


FromHost = (
    HostReady
    | AnswerResult
    | AnswerError
    | HostQuestion
    | CallProgress
    | FetchHead
    | FetchChunk
    | OperationCall
    | EventsTaken
    | LogLine
)
ToHost = (
    HostHello
    | LoadRequest
    | CallTool
    | AskHook
    | AuthStep
    | PluginRequest
    | CancelRequest
    | EventBatch
    | AnswerResult
    | AnswerError
)


# Contents of answers


class OfferedTool(Struct, frozen=True):
    """A tool of an extension. `parameters`: a JSON Schema."""

    name: str
    description: str
    parameters: JSON


class OfferedHook(Struct, frozen=True):
    """A hook of an extension. `policy`: if the hook fails, the action that it judges is refused."""

    name: str
    policy: bool = False


class ExtensionOffer(Struct, frozen=True, omit_defaults=True):
    """An extension's offer. `problems`: its unusable parts, a line each."""

    tools: tuple[OfferedTool, ...] = ()
    hooks: tuple[OfferedHook, ...] = ()
    auth: JSON | None = None
    provider: JSON | None = None
    problems: tuple[str, ...] = ()


class ToolAnswer(Struct, frozen=True):
    """The result of a call. `attachments`: `mime`, `url` (`data:...`), perhaps `filename`."""

    output: str
    title: str | None = None
    metadata: JSON | None = None
    attachments: list[JSON] | None = None


class LoadedSignIn(Struct, frozen=True):
    """The result of a plugin's loader. `options`: the provider's (`apiKey`, `baseURL`).
    `fetch`: it has its own.
    """

    options: JSON = {}
    fetch: bool = False


# One encoder and one decoder for each direction: making them costs more than most messages.
encode = msgspec.json.Encoder().encode


def encode_line(message: HostMessage) -> bytes:
    """Encode a message as a line."""
    return encode(message) + b"\n"


decode_from_host = bound_depth(msgspec.json.Decoder(FromHost).decode)
decode_to_host = msgspec.json.Decoder(ToHost).decode
