"""Reads the message of `run` from the command line or stdin, and finds the command and the files that it names."""

import base64
import fcntl
import os
import re
import stat
import sys
import termios
from array import array
from collections.abc import Callable
from typing import NamedTuple

from codeloop.cli.options import Options
from codeloop.client.client import Client
from codeloop.extend.commands import COMPACT_COMMAND
from codeloop.kit.suggest import find_similar, format_suggestion
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import COMMAND_LIST, NoArguments

EXAMPLE_COMMAND = 'codeloop run "fix the failing test"'
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
"""The commands of a conversation that are not prompts, and what does the same for `run`."""


class RunMessage(NamedTuple):
    """The words of the command line, and what came from stdin."""

    words: str
    piped: str = ""

    @property
    def text(self) -> str:
        """Both."""
        return "\n\n".join(filter(None, self))


def read_message(options: Options) -> RunMessage:
    """Return the message; stdin is read only on request, so that an open pipe never hangs a script.

    It may be empty only with a file or a command. Raises UsageProblem if there is nothing to do.
    """
    if options.goal is not None and "-" not in options.message:
        return RunMessage("\n\n".join(filter(None, (options.goal.strip(), " ".join(options.message).strip()))))
    if options.command is not None and "-" not in options.message:
        return RunMessage(" ".join(map(quote_word, options.message)))
    words = " ".join(word for word in options.message if word != "-").strip()
    if options.message and "-" not in options.message:
        if not words and not options.files:
            raise UsageProblem(f"The message is empty. Give a task: {EXAMPLE_COMMAND}.")
        return RunMessage(words)
    if sys.stdin is None or (sys.stdin.isatty() and not options.message):
        if options.files:
            return RunMessage("")
        raise UsageProblem(f"The message is missing. Give a task: {EXAMPLE_COMMAND}, or pipe it to stdin.")
    words = "\n\n".join(filter(None, ((options.goal or "").strip(), words)))
    message = RunMessage(words, sys.stdin.buffer.read().decode("utf-8", "replace").strip())
    if not message.text and not options.files:
        raise UsageProblem(f"The message is missing: stdin is empty. Give a task: {EXAMPLE_COMMAND}.")
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
        waiting = array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
        return waiting[0] > 0
    except OSError:
        return False


def quote_word(word: str) -> str:
    """Return a word of the command line so that a command reads it as one argument."""
    if word and not any(char.isspace() for char in word):
        return word
    return f"'{word}'" if '"' in word else f'"{word}"'


async def parse_command(client: Client, options: Options, words: str) -> tuple[str | None, str]:
    """Return the command that the words call, None for a prompt, and its arguments or the prompt. stdin never counts.

    A path is text, as in `/etc/hosts is broken`. Raises UsageProblem if there is no such command.
    """
    if options.command is not None:
        return options.command.removeprefix("/"), words
    match = re.match(r"/([^\s/]+)(?:\s+(.*))?$", words, re.DOTALL)
    if match is None or not options.message or not options.message[0].startswith("/"):
        return None, words
    name = match[1]
    commands = {command.name for command in await client.call(COMMAND_LIST, NoArguments())}
    if name in commands or name == COMPACT_COMMAND.name:
        return name, match[2] or ""
    if name in RUN_EQUIVALENTS:
        raise UsageProblem(f"/{name} works in a conversation only. Use instead: {RUN_EQUIVALENTS[name]}.")
    if os.path.lexists(f"/{name}"):
        return None, words
    close = format_suggestion(f"/{each}" for each in find_similar(name, [COMPACT_COMMAND.name, *sorted(commands)]))
    raise UsageProblem(
        f"Unknown command: /{name}.{close} `codeloop command list` lists them. "
        "To send it as a prompt, put a space first."
    )


async def make_parts(client: Client, message: RunMessage, note: Callable[[str], object]) -> list[PartInput]:
    """Return the parts of a prompt, with the files and subagents that the words, but not stdin, mention."""
    if not message.text:
        return []
    if "@" not in message.words:
        return [TextPartInput(text=message.text)]
    from codeloop.client.mentions import find_mentions

    return [TextPartInput(text=message.text), *(await find_mentions(client, message.words, note))]


def make_piped_file(text: str) -> FilePartInput:
    """Make an attachment of the text from stdin, so that none of it is filled into a command's template."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    return FilePartInput(mime="text/plain", url=f"data:text/plain;base64,{data}", filename="stdin")
