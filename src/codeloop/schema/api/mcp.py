"""MCP servers as clients see them: states, sign-ins, resources,
completions of their prompts' arguments.
"""

from typing import Literal

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import JSON, Wire


class MCPStatus(Wire):
    """The state of an MCP server, in the words of OpenCode's API; `error` says why it failed.

    `state`, which OpenCode's API lacks, is more precise: `configured` (never connected), `known`
    (its cached tools are offered, the first call starts it), `starting`. `sandbox`: False for a
    program that runs without one.
    """

    status: Literal["connected", "disabled", "failed", "needs_auth", "needs_client_registration"]
    error: str | None = None
    state: Literal["configured", "known", "starting"] | None = None
    sandbox: Literal[False] | None = None


class AddMcp(Wire):
    """Names an MCP server and how it is started or reached."""

    name: str
    config: JSON


class McpName(Wire):
    """Names an MCP server."""

    name: str


class McpAuthStart(Wire):
    """A sign-in at an MCP server that was begun: the address to open,
    and what the redirect bears.
    """

    authorization_url: str
    oauth_state: str


class McpAuthCode(Wire):
    """What came of a sign-in at an MCP server: the code,
    or the whole address that the browser was led to.
    """

    name: str
    code: str


class McpAuthRemoved(Wire):
    """A sign-in at an MCP server is forgotten."""

    success: Literal[True]


class McpResource(Wire):
    """A resource of an MCP server; `client` is the server's name."""

    name: str
    uri: str
    client: str
    description: str | None = None
    mime_type: str | None = None


class CompleteMcpPrompt(Wire):
    """Asks for completions of an argument of an MCP server's prompt.
    `typed`: the text after the command's name.

    A server that is not connected is only asked if `connect` is set, which starts it.
    """

    command: str
    typed: str = ""
    connect: bool = False


class McpPromptCompletion(Wire):
    """Completions of a prompt's argument. `replaces`: the end of the typed text,
    which a value replaces.
    """

    argument: str = ""
    replaces: str = ""
    values: list[str] = []


MCP_STATUS = Operation(
    "mcp.status", "GET", "/mcp", NoArguments, dict[str, MCPStatus], "project.mcp:get_statuses"
)
MCP_ADD = Operation(
    "mcp.add", "POST", "/mcp", AddMcp, dict[str, MCPStatus], "project.mcp:add_server"
)
MCP_CONNECT = Operation(
    "mcp.connect", "POST", "/mcp/{name}/connect", McpName, bool, "project.mcp:connect_server"
)
MCP_DISCONNECT = Operation(
    "mcp.disconnect",
    "POST",
    "/mcp/{name}/disconnect",
    McpName,
    bool,
    "project.mcp:disconnect_server",
)
MCP_AUTH_START = Operation(
    "mcp.auth.start",
    "POST",
    "/mcp/{name}/auth",
    McpName,
    McpAuthStart,
    "project.mcp_sign_in:start_sign_in",
)
MCP_AUTH_REMOVE = Operation(
    "mcp.auth.remove",
    "DELETE",
    "/mcp/{name}/auth",
    McpName,
    McpAuthRemoved,
    "project.mcp_sign_in:remove_sign_in",
)
MCP_AUTH_CALLBACK = Operation(
    "mcp.auth.callback",
    "POST",
    "/mcp/{name}/auth/callback",
    McpAuthCode,
    MCPStatus,
    "project.mcp_sign_in:finish_sign_in",
)
MCP_AUTH_AUTHENTICATE = Operation(
    "mcp.auth.authenticate",
    "POST",
    "/mcp/{name}/auth/authenticate",
    McpName,
    MCPStatus,
    "project.mcp_sign_in:sign_in_with_browser",
)
MCP_COMPLETE = Operation(
    "mcp.complete",
    "POST",
    "/mcp/complete",
    CompleteMcpPrompt,
    McpPromptCompletion,
    "project.mcp:complete_prompt_argument",
)
RESOURCE_LIST = Operation(
    "experimental.resource.list",
    "GET",
    "/experimental/resource",
    NoArguments,
    dict[str, McpResource],
    "project.mcp:list_resources",
)
