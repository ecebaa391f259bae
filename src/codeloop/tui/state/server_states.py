"""The displayed states of MCP servers and language servers: a text, how healthy the server is,
and the reason.
"""

from typing import Literal

from msgspec import Struct

from codeloop.schema.api.mcp import MCPStatus
from codeloop.schema.api.project import LSPStatus

Health = Literal["good", "resting", "wanting", "bad"]
"""`wanting`: the user must do something first, such as sign in;
`resting`: not in use, or still starting.
"""
CONNECTING = "connecting…"
_STATE_TEXTS = {
    "configured": "not looked at yet",
    "known": "starts at the first call",
    "starting": CONNECTING,
    "needs_auth": "wants you to sign in",
    "needs_client_registration": "wants a registered client",
}
"""The texts of reported states, where they differ from the state's name."""
_HEALTH_BY_STATE: dict[str, Health] = {
    "connected": "good",
    "known": "good",
    "needs_auth": "wanting",
    "needs_client_registration": "wanting",
    "failed": "bad",
    "error": "bad",
}
"""The health of the states that both kinds of servers report; any other state is `resting`.

`known` is good, although the server does not run: its tools can be called.
"""
HEALTH_COLOURS: dict[Health, str] = {
    "good": "success",
    "resting": "text_muted",
    "wanting": "warning",
    "bad": "error",
}
"""The theme's colour of each health."""


class ServerState(Struct, frozen=True):
    """A server's state: in words, its health, and if it is bad, the reason."""

    words: str
    health: Health = "resting"
    reason: str = ""


def describe_mcp(status: MCPStatus) -> ServerState:
    """Return the state of an MCP server: its `state`,
    or if `status` is precise enough to need none, that.
    """
    name = status.state or status.status
    words = _STATE_TEXTS.get(name, name)
    if status.sandbox is False:
        words = f"{words}, without a sandbox"
    return ServerState(words, _HEALTH_BY_STATE.get(name, "resting"), status.error or "")


def describe_lsp(status: LSPStatus) -> ServerState:
    """Return the state of a language server."""
    words = "connected" if status.status == "connected" else "given up"
    return ServerState(words, _HEALTH_BY_STATE[status.status], status.error or "")
