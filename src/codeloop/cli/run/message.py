"""The message of `run`: reads it from the command line and stdin, finds the slash command in it,
and sends it.
"""

import base64
import fcntl
import os
import re
import stat
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from codeloop.cli.option_values import Options
from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.target.selection import parse_model
from codeloop.client.client import Client
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.api.session_inputs import (
    COMMAND,
    PROMPT,
    FilePartInput,
    Goal,
    InvokeCommand,
    MessageWithParts,
    PartInput,
    Prompt,
    RunLimits,
    TextPartInput,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import NoArguments
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


EXAMPLE_COMMAND = 'codeloop run "fix the failing test"'
# Slash commands of a conversation that are not prompts, with what does the same outside of it.
RUN_EQUIVALENTS = {
    "help": "codeloop --help",
    "new": "codeloop run without --continue",
    "sessions": "codeloop session list",
    "session": "codeloop run --session ID",
    "agent": "codeloop run --agent NAME",
    "model": "codeloop run --model PROVIDER/MODEL",
    "profile": "codeloop run --profile NAME",
    "undo": "codeloop undo",
    "redo": "codeloop redo",
    "status": "codeloop session show",
    "queue": "codeloop session show",
    "exit": "nothing, a run ends by itself",
}


class RunMessage(NamedTuple):
    """A message: the `words` of the command line, and the text that was `piped` to stdin."""

    words: str
    piped: str = ""

    @property
    def text(self) -> str:
        """The words, then the text from stdin."""
        return "\n\n".join(filter(None, self))


def read_message(options: Options) -> RunMessage:
    """Return the message. It may be empty with a file, or with a command that reads no stdin.

    Raises UsageProblem for any other empty one.
    """
    # stdin is only read for `-`, or without words: a script may have an open pipe as stdin,
    # which never ends.
    asks_for_stdin = "-" in options.message
    given_words = [word for word in options.message if word != "-"]
    # The words of a command are its arguments, which its template takes apart again.
    words = " ".join(
        given_words if options.command is None else map(quote_word, given_words)
    ).strip()
    goal_and_words = "\n\n".join(filter(None, ((options.goal or "").strip(), words)))
    if not asks_for_stdin:
        if options.goal is not None:
            return RunMessage(goal_and_words)
        if options.command is not None:
            return RunMessage(words)
        if options.message:
            if not words and not options.files:
                raise UsageProblem(f"The message is empty. Give a task: {EXAMPLE_COMMAND}.")
            return RunMessage(words)
    if sys.stdin is None or (sys.stdin.isatty() and not asks_for_stdin):
        if options.files:
            return RunMessage("")
        raise UsageProblem(
            f"The message is missing. Give a task: {EXAMPLE_COMMAND}, or pipe it to stdin."
        )
    message = RunMessage(goal_and_words, sys.stdin.buffer.read().decode("utf-8", "replace").strip())
    if not message.text and not options.files:
        raise UsageProblem(
            f"The message is missing: stdin is empty. Give a task: {EXAMPLE_COMMAND}."
        )
    return message


def is_stdin_unread(options: Options) -> bool:
    """Return whether stdin is a pipe or a file with content that `read_message` leaves unread."""
    reads = "-" in options.message or not (options.message or options.command or options.goal)
    if reads or sys.stdin is None:
        return False
    try:
        descriptor = sys.stdin.fileno()
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return status.st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
        if not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
            return False
        # Imported late: stdin is rarely a pipe.
        import termios

        # The number of bytes that could be read now.
        byte_count = array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, byte_count)
        return byte_count[0] > 0
    except OSError:
        # It is only for a note, so an unusual stdin is not a reason to fail.
        return False


def quote_word(word: str) -> str:
    """Quote a word of the command line that a command would not read as one argument."""
    if word and not any(char.isspace() for char in word):
        return word
    return f"'{word}'" if '"' in word else f'"{word}"'


async def parse_command(client: Client, options: Options, words: str) -> tuple[str | None, str]:
    """Return the name of the slash command that the words call, and its arguments;
    for a prompt None and the words.

    A path is not a command: `/etc/hosts is broken` is a prompt.
    Raises UsageProblem if there is no such command.
    """
    from codeloop.kit.text.suggest import find_similar, format_suggestion

    if options.command is not None:
        return options.command.removeprefix("/"), words
    match = re.match(r"/([^\s/]+)(?:\s+(.*))?$", words, re.DOTALL)
    # Only a word of the command line calls a command, never text from stdin;
    # nor does a `/` after a space.
    if match is None or not options.message or not options.message[0].startswith("/"):
        return None, words
    # Imported late: most prompts are not commands.
    from codeloop.extend.commands import COMPACT_COMMAND

    name = match[1]
    commands = {command.name for command in await client.call(COMMAND_LIST, NoArguments())}
    if name in commands or name == COMPACT_COMMAND.name:
        return name, match[2] or ""
    if name in RUN_EQUIVALENTS:
        raise UsageProblem(
            f"/{name} works in a conversation only. Use instead: {RUN_EQUIVALENTS[name]}."
        )
    # `/tmp is full`
    if os.path.lexists(f"/{name}"):
        return None, words
    close = format_suggestion(
        f"/{each}" for each in find_similar(name, [COMPACT_COMMAND.name, *sorted(commands)])
    )
    raise UsageProblem(
        f"Unknown command: /{name}.{close} `codeloop command list` lists them. "
        "To send it as a prompt, put a space first."
    )


async def make_outgoing_message(
    client: Client,
    options: Options,
    message: RunMessage,
    command_and_arguments: tuple[str | None, str],
    attachments: list[FilePartInput],
    answer_format: JSON | None,
    note: Callable[[str], object],
) -> OutgoingMessage:
    """Return the message to send: the parts of a prompt,
    or a command with its attachments and the text from stdin.

    `command_and_arguments`: as `parse_command` returns them.
    `note`: called with lines for the user.
    """
    command, arguments = command_and_arguments
    if command is not None:
        parts = [*([make_piped_file(message.piped)] if message.piped else []), *attachments]
    else:
        parts = [*await make_parts(client, message, note), *attachments]
    return OutgoingMessage(
        parts=parts,
        is_attended=can_ask_user(),
        command=command,
        arguments=arguments,
        goal=make_goal(options),
        format=answer_format,
    )


async def make_parts(
    client: Client, message: RunMessage, note: Callable[[str], object]
) -> list[PartInput]:
    """Return the parts of a prompt: its text, and the files,
    subagents and resources that its words mention by `@NAME`.

    `note`: called with lines for the user. Text from stdin mentions nothing.
    """
    if not message.text:
        return []
    if "@" not in message.words:
        return [TextPartInput(text=message.text)]
    from codeloop.client.mentions import find_mentions

    return [TextPartInput(text=message.text), *(await find_mentions(client, message.words, note))]


def make_piped_file(text: str) -> FilePartInput:
    """Make an attachment of the text from stdin, for a command: its template must
    not interpret that text.
    """
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    return FilePartInput(mime="text/plain", url=f"data:text/plain;base64,{data}", filename="stdin")
