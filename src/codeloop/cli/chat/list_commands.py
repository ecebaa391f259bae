"""The slash commands of a conversation line by line that show a list and change what is on it:
queued prompts, permissions, MCP servers.

Each is called with the conversation and the words after the command's name;
`slash_commands.py` has the table.
"""

from codeloop.cli.chat.conversation import LineConversation
from codeloop.cli.chat.report_commands import TITLE_CHARS
from codeloop.client.slash.reports import format_permission_report
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.answers import PERMISSION_REVOKE, PERMISSION_RULES
from codeloop.schema.api.mcp import (
    MCP_AUTH_CALLBACK,
    MCP_AUTH_START,
    MCP_STATUS,
    McpAuthCode,
    McpName,
    MCPStatus,
)
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_messages import (
    MESSAGE_DELETE,
    PART_UPDATE,
    SESSION_QUEUED,
    MessageId,
    UpdatePart,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import TextPart
from codeloop.schema.permission import PermissionQuery, RevokeGrant
from codeloop.schema.wire import replace


async def edit_queue(chat: LineConversation, words: str) -> None:
    """Show the prompts that wait for a running turn; `edit N WORDS` and `cancel N` change one."""
    session = await chat.load_session()
    waiting = await chat.client.call(SESSION_QUEUED, SessionId(session_id=session.id))
    if not words:
        lines = (
            f"  {position} {one_line(_join_text(each), TITLE_CHARS)}"
            for position, each in enumerate(waiting, 1)
        )
        chat.show_text("\n".join(lines) or "No prompts are queued.")
        return
    action, _, arguments = words.partition(" ")
    number, _, text = arguments.strip().partition(" ")
    if (
        action not in {"edit", "cancel"}
        or not number.isdecimal()
        or (action == "edit" and not text.strip())
    ):
        raise UsageProblem("Usage: /queue, /queue edit N NEW WORDS, or /queue cancel N.")
    # Python raises an error for numbers of some thousand digits.
    if len(number) > 6 or not 0 < int(number) <= len(waiting):
        raise UsageProblem(f"There is no queued prompt {number[:6]}. /queue lists them.")
    message = waiting[int(number) - 1]
    ids = {"session_id": session.id, "message_id": message.info.id}
    if action == "cancel":
        await chat.client.call(MESSAGE_DELETE, MessageId(**ids))
        chat.show_text("Cancelled.")
        return
    part = next(
        (part for part in message.parts if isinstance(part, TextPart) and not part.synthetic), None
    )
    if part is None:
        raise UsageProblem("That prompt has no text. Cancel it with /queue cancel N.")
    await chat.client.call(
        PART_UPDATE, UpdatePart(**ids, part_id=part.id, part=replace(part, text=text.strip()))
    )
    chat.show_text("Changed.")


async def manage_permissions(chat: LineConversation, words: str) -> None:
    """Show the rules that count and the grants; `revoke ID` revokes a grant."""
    action, _, name = words.partition(" ")
    if action == "revoke" and name:
        await chat.client.call(PERMISSION_REVOKE, RevokeGrant(grant_id=name.strip()))
        chat.show_text("Revoked: it is asked again from the next call on.")
    elif words:
        raise UsageProblem("Usage: /permissions, or /permissions revoke ID.")
    else:
        session_id = chat.session.id if chat.session else None
        query = PermissionQuery(session_id=session_id, agent=chat.agent)
        chat.show_text(
            "\n".join(format_permission_report(await chat.client.call(PERMISSION_RULES, query)))
        )


async def manage_mcp_servers(chat: LineConversation, words: str) -> None:
    """List the servers; `auth NAME` begins to sign in, `auth NAME ADDRESS` completes it.

    ADDRESS is where the browser ended, if it runs on another machine and could not
    reach the one of codeloop.
    """
    match words.split(maxsplit=2):
        case []:
            servers = await chat.client.call(MCP_STATUS, NoArguments())
            lines = [
                f"{name}: {_describe_status(name, status)}" for name, status in servers.items()
            ]
            chat.show_text("\n".join(lines) or "No MCP server is configured.")
        case ["auth", name]:
            mcp_auth_start = await chat.client.call(MCP_AUTH_START, McpName(name=name))
            chat.show_text(f"Open this address to sign in:\n{mcp_auth_start.authorization_url}")
            chat.show_text(
                f"If that browser is on another machine: /mcp auth {name} ADDRESS-THAT-IT-ENDS-AT"
            )
        case ["auth", name, code]:
            status = await chat.client.call(MCP_AUTH_CALLBACK, McpAuthCode(name=name, code=code))
            chat.show_text(f"{name}: {_describe_status(name, status)}")
        case _:
            raise UsageProblem("Write /mcp, /mcp auth NAME, or /mcp auth NAME ADDRESS.")


def _describe_status(name: str, status: MCPStatus) -> str:
    if status.status == "needs_auth":
        return f"wants you to sign in: /mcp auth {name}"
    error_note = f": {status.error}" if status.error else ""
    sandbox_note = ", without a sandbox" if status.sandbox is False else ""
    return f"{status.state or status.status}{sandbox_note}{error_note}"


def _join_text(message: MessageWithParts) -> str:
    return " ".join(
        part.text for part in message.parts if isinstance(part, TextPart) and not part.synthetic
    )
