"""Tools that a client offers to a session and carries out itself; OpenCode's API has none."""

from typing import Annotated

import msgspec

from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.operation import Operation
from codeloop.schema.resources import ClientToolCall
from codeloop.schema.wire import JSON, Wire


class ClientTool(Wire):
    """A tool that a client carries out. `parameters`: a JSON Schema of an object.

    `read_only`: it changes nothing, so calls may run in parallel,
    and the profile `read-only` allows them.
    """

    # The names that model services accept for tools.
    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    description: str
    parameters: JSON
    read_only: bool = False


class OfferTools(Wire):
    """Offers tools to a session from its next turn on,
    replacing those offered under this id before.

    OpenCode's API has no such tools. The client chooses `lease_id`.
    The offer ends unless it is made again in time.
    """

    session_id: str
    lease_id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{8,64}$")]
    tools: Annotated[list[ClientTool], msgspec.Meta(max_length=128)]


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
    """Asks for permission for what a call is about to do: the rules decide,
    or the user if they say so.
    """

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


TOOLS_OFFER = Operation(
    "session.tools.offer",
    "PUT",
    "/session/{sessionID}/tools/{leaseID}",
    OfferTools,
    ToolsOffered,
    "session.client_tools:offer_tools",
)
TOOLS_WITHDRAW = Operation(
    "session.tools.withdraw",
    "DELETE",
    "/session/{sessionID}/tools/{leaseID}",
    WithdrawTools,
    bool,
    "session.client_tools:withdraw_tools",
)
TOOL_ANSWER = Operation(
    "session.tools.answer",
    "POST",
    "/session/{sessionID}/tools/{leaseID}/{requestID}/answer",
    AnswerToolCall,
    bool,
    "session.client_tools:answer_call",
)
TOOL_ASK = Operation(
    "session.tools.ask",
    "POST",
    "/session/{sessionID}/tools/{leaseID}/{requestID}/ask",
    AskForToolCall,
    ToolPermission,
    "session.client_tools:ask_permission",
)
TOOL_REPORT = Operation(
    "session.tools.report",
    "POST",
    "/session/{sessionID}/tools/{leaseID}/{requestID}/report",
    ReportToolCall,
    bool,
    "session.client_tools:report_progress",
)
