"""MCP servers as clients see them: states, sign-ins, resources, completions of their prompts' arguments."""

from typing import Literal

from codeloop.schema.wire import JSON, Wire


class MCPStatus(Wire):
    """The state of an MCP server, in the words of OpenCode's API; `error` says why it failed.

    `state`, which OpenCode's API lacks, is more precise: `configured` (never connected), `known` (its cached tools are
    offered, the first call starts it), `starting`. `sandbox`: False for a program that runs without one.
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
    """A sign-in at an MCP server that was begun: the address to open, and what the redirect bears."""

    authorization_url: str
    oauth_state: str


class McpAuthCode(Wire):
    """What came of a sign-in at an MCP server: the code, or the whole address that the browser was led to."""

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
    """Asks for completions of an argument of an MCP server's prompt. `typed`: the text after the command's name.

    A server that is not connected is only asked if `connect` is set, which starts it.
    """

    command: str
    typed: str = ""
    connect: bool = False


class McpPromptCompletion(Wire):
    """Completions of a prompt's argument. `replaces`: the end of the typed text, which a value replaces."""

    argument: str = ""
    replaces: str = ""
    values: list[str] = []
