"""Tools that a client offers to a session and carries out itself; OpenCode's API has none."""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.wire import JSON, Wire


class ClientTool(Wire):
    """A tool that a client carries out. `parameters`: a JSON Schema of an object.

    `read_only`: it changes nothing, so calls may run in parallel, and the profile `plan` allows them.
    """

    # The names that model services accept for tools.
    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    description: str
    parameters: JSON
    read_only: bool = False


class OfferTools(Wire):
    """Offers tools to a session from its next turn on, replacing those offered under this id before.

    OpenCode's API has no such tools. The client chooses `lease_id`. The offer ends unless it is made again in time.
    """

    session_id: str
    lease_id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{8,64}$")]
    tools: Annotated[list[ClientTool], msgspec.Meta(max_length=128)]


class ClientToolCall(Wire):
    """A call that a client must carry out (`called`), or no longer has to (`ended`). Paths are absolute."""

    request_id: str
    lease_id: str
    state: Literal["called", "ended"]
    session_id: str
    message_id: str
    call_id: str
    agent: str
    tool: str
    arguments: JSON
    directory: str
    worktree: str


class ToolsOffered(Wire):
    """Until when tools are offered (ms since the epoch), and the calls that wait for the client."""

    until: int
    calls: list[ClientToolCall]


class WithdrawTools(Wire):
    """Ends an offer of tools, and the calls that wait for the client."""

    session_id: str
    lease_id: str


class AnswerToolCall(Wire):
    """Answers a call: with its result, or with an `error` that the model reads."""

    session_id: str
    lease_id: str
    request_id: str
    output: str = ""
    title: str = ""
    metadata: JSON = {}
    attachments: list[FilePartInput] = []
    error: str | None = None


class AskForToolCall(Wire):
    """Asks for permission for what a call is about to do: the rules decide, or the user if they say so."""

    session_id: str
    lease_id: str
    request_id: str
    permission: str
    patterns: Annotated[list[str], msgspec.Meta(min_length=1)]
    always: list[str] = []
    metadata: JSON = {}


class ToolPermission(Wire):
    """Whether it is allowed; if not, `message` says why, and the call has ended."""

    allowed: bool
    message: str = ""


class ReportToolCall(Wire):
    """Shows the progress of a call."""

    session_id: str
    lease_id: str
    request_id: str
    title: str | None = None
    metadata: JSON = {}
