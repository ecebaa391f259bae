"""Builds the `session/update` notifications about a session itself: its commands, title, options
and usage, notices, and answers to its built-in commands. All are in the form of version 1.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from codeloop.acp.prompts import BUILT_IN_COMMANDS
from codeloop.client.client import Client
from codeloop.client.slash.commands import format_hints
from codeloop.schema.api.agents import Command
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session
from codeloop.schema.part import StepFinishPart
from codeloop.schema.wire import JSON


def build_commands_update(commands: Sequence[Command]) -> JSON:
    """Build the update with the available commands: the built-in ones, and `commands`."""
    rows: list[JSON] = [
        {"name": name, "description": text} for name, text in BUILT_IN_COMMANDS.items()
    ]
    for command in commands:
        fields: JSON = {
            "name": command.name,
            "description": command.description or f"Runs /{command.name}.",
        }
        if command.hints:
            fields["input"] = {"hint": format_hints(command.hints)}
        rows.append(fields)
    return {"sessionUpdate": "available_commands_update", "availableCommands": rows}


def build_notice(severity: str, title: str, description: str) -> JSON:
    """Build the update that shows a notice beside the conversation."""
    # The severities of a toast also have `success`, which the protocol does not know.
    severity = severity if severity in {"info", "warning", "error"} else "info"
    update: JSON = {"sessionUpdate": "notice", "severity": severity, "title": title}
    if description:
        update["description"] = description
    return update


def build_option_updates(state: JSON) -> list[JSON]:
    """Build the updates with the options and the mode of a session; `state`: as `build_state`
    of `options.py` returns it.
    """
    updates: list[JSON] = [
        {"sessionUpdate": "config_option_update", "configOptions": state["configOptions"]}
    ]
    if (modes := state.get("modes")) is not None:
        updates.append(
            {"sessionUpdate": "current_mode_update", "currentModeId": modes["currentModeId"]}
        )
    return updates


def build_text_update(text: str) -> JSON:
    """Build the update with a text of the agent that is not stored."""
    return {
        "sessionUpdate": "agent_message_chunk",
        # The messages of the agent that an editor sees are our parts.
        "messageId": new_id("prt"),
        "content": {"type": "text", "text": text},
    }


def build_title_update(session: Session) -> JSON:
    """Build the update with the title of a session."""
    updated_at = datetime.fromtimestamp(session.time.updated / 1000, UTC).isoformat()
    return {
        "sessionUpdate": "session_info_update",
        "title": session.title,
        "updatedAt": updated_at,
    }


async def read_last_step(client: Client, session_id: str) -> StepFinishPart | None:
    """Read the end of the last step of a session's newest message. Raises CodeloopError."""
    newest = await client.call(SESSION_MESSAGES, ListMessages(session_id=session_id, limit=1))
    steps = [
        part for message in newest for part in message.parts if isinstance(part, StepFinishPart)
    ]
    return steps[-1] if steps else None


def build_usage_update(step: StepFinishPart, window: int, cost: float | None) -> JSON:
    """Build the update with the tokens in the context after a step, the size of the window,
    and the cost of the session.
    """
    usage: JSON = {"used": step.tokens.all, "size": window}
    if cost is not None:
        usage["cost"] = {"amount": cost, "currency": "USD"}
    return {"sessionUpdate": "usage_update", **usage}
