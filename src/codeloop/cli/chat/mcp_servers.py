"""`/mcp`: what the MCP servers are doing, and signing in at one, also from a machine that is not the server's."""

from codeloop.cli.chat.conversation import Chat
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.api.project import McpAuthCode, McpName, MCPStatus
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import MCP_AUTH_CALLBACK, MCP_AUTH_START, MCP_STATUS, NoArguments


async def show_servers(chat: Chat, words: str) -> None:
    """List the servers; `auth NAME` begins to sign in, `auth NAME CODE` ends it with what the browser ended at."""
    match words.split(maxsplit=2):
        case []:
            servers = await chat.client.call(MCP_STATUS, NoArguments())
            for name, status in servers.items():
                chat.say(f"{escape_controls(name)}: {_describe_status(name, status)}")
            if not servers:
                chat.say("No MCP server is configured.")
        case ["auth", name]:
            mcp_auth_start = await chat.client.call(MCP_AUTH_START, McpName(name=name))
            chat.say(f"Open this address to sign in:\n{escape_controls(mcp_auth_start.authorization_url)}")
            chat.say(
                f"If that browser is on another machine: /mcp auth {escape_controls(name)} ADDRESS-THAT-IT-ENDS-AT"
            )
        case ["auth", name, code]:
            status = await chat.client.call(MCP_AUTH_CALLBACK, McpAuthCode(name=name, code=code))
            chat.say(f"{escape_controls(name)}: {_describe_status(name, status)}")
        case _:
            raise UsageProblem("Write /mcp, /mcp auth NAME, or /mcp auth NAME ADDRESS.")


def _describe_status(name: str, status: MCPStatus) -> str:
    if status.status == "needs_auth":
        return f"wants you to sign in: /mcp auth {escape_controls(name)}"
    more = f": {escape_controls(status.error)}" if status.error else ""
    without = ", without a sandbox" if status.sandbox is False else ""
    return f"{status.state or status.status}{without}{more}"
