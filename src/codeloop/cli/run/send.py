"""Sends a prompt or a command to a session and waits for its answer;
used by `run` and by conversations.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from codeloop.cli.option_values import Options
from codeloop.cli.target.selection import parse_model
from codeloop.client.client import Client
from codeloop.schema.api.session_inputs import (
    COMMAND,
    PROMPT,
    Goal,
    InvokeCommand,
    MessageWithParts,
    PartInput,
    Prompt,
    RunLimits,
)
from codeloop.schema.wire import JSON


class OutgoingMessage(Struct, frozen=True):
    """A prompt with its parts, or a slash command with its arguments and attached parts.

    `is_attended`: a user can be asked while the turn runs.
    `format`: the format of an answer as data.
    """

    parts: Sequence[PartInput]
    is_attended: bool
    command: str | None = None
    arguments: str = ""
    goal: Goal | None = None
    format: JSON | None = None


async def send_message(
    client: Client, session_id: str, message_id: str, options: Options, message: OutgoingMessage
) -> MessageWithParts:
    """Send a message with the model, the agent and the limits of the options;
    return the answer when the turn ends.

    `message_id`: the id under which the message will be stored.
    """
    common: dict[str, Any] = {
        "session_id": session_id,
        "message_id": message_id,
        "parts": list(message.parts),
        "agent": options.agent,
        "variant": options.variant,
        "format": message.format,
        "limits": _make_limits(options, is_attended=message.is_attended),
    }
    if message.command is not None:
        call = InvokeCommand(
            command=message.command, arguments=message.arguments, model=options.model, **common
        )
        return await client.call(COMMAND, call)
    return await client.call(
        PROMPT, Prompt(model=parse_model(options.model), goal=message.goal, **common)
    )


def make_goal(options: Options) -> Goal | None:
    """Return the checks and rules of `--goal`; None without it. Its TEXT is not in it:
    `read_message` puts it first.
    """
    if options.goal is None:
        return None
    return Goal(
        checks=[*options.checks],
        protect=[*options.protect],
        unprotect=[*options.unprotect],
        rounds=options.rounds,
    )


def _make_limits(options: Options, *, is_attended: bool) -> RunLimits:
    return RunLimits(
        steps=options.max_steps,
        cost=options.max_cost,
        tokens=options.max_tokens,
        compact=not options.no_compact,
        attended=is_attended,
    )
