"""What the words of `codeloop run` mean, as in a conversation: a command, or a prompt that mentions files."""

import base64
import os
import re
from collections.abc import Callable

from msgspec import Struct

from codeloop.cli.chat.mention import prompt_parts
from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.run.message import Message
from codeloop.cli.run.options import Options
from codeloop.client.client import Client
from codeloop.extend.commands import COMPACT
from codeloop.kit.suggest import meant, near
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.operation import COMMAND_LIST, NoArguments

ELSEWHERE = {
    "help": "codeloop --help",
    "new": "codeloop run without --continue",
    "sessions": "codeloop session list",
    "session": "codeloop run --session ID",
    "agent": "codeloop run --agent NAME",
    "model": "codeloop run --model PROVIDER/MODEL",
    "undo": "codeloop undo",
    "redo": "codeloop redo",
    "status": "codeloop session show",
    "queue": "codeloop session show",
    "exit": "nothing: it ends by itself",
}
"""The commands of a conversation that are no prompts, and what does the same here."""


class Typed(Struct, frozen=True):
    """A command by name, with what follows it; without a name a prompt."""

    command: str | None
    words: str


async def typed(client: Client, options: Options, words: str) -> Typed:
    """Return what the words of the command line mean; text from stdin is never read for that.

    A path is text: `/etc/hosts is broken`. Raises UsageProblem when there is no such command.
    """
    if options.command is not None:
        return Typed(options.command.removeprefix("/"), words)
    found = re.match(r"/([^\s/]+)(?:\s+(.*))?$", words, re.DOTALL)
    if found is None or not options.message or not options.message[0].startswith("/"):
        return Typed(None, words)
    name = found[1]
    commands = {command.name for command in await client.call(COMMAND_LIST, NoArguments())}
    if name in commands or name == COMPACT.name:
        return Typed(name, found[2] or "")
    if name in ELSEWHERE:
        raise UsageProblem(f"/{name} belongs to a conversation. Here it is: {ELSEWHERE[name]}.")
    if os.path.lexists(f"/{name}"):
        return Typed(None, words)
    close = meant(f"/{each}" for each in near(name, [COMPACT.name, *sorted(commands)]))
    raise UsageProblem(
        f"There is no command /{name}.{close} `codeloop command list` lists them; a space before it makes it a prompt."
    )


async def pieces(client: Client, message: Message, note: Callable[[str], object]) -> list[PartInput]:
    """Return the pieces of a prompt, with the files and subagents that its words mention.

    What comes from stdin stays text: somebody else may have written it.
    """
    if not message.text:
        return []
    return [TextPartInput(text=message.text), *(await prompt_parts(client, message.words, note))[1:]]


def piped_file(text: str) -> FilePartInput:
    """Return what came from stdin as an attachment: nothing of it is filled into a command's template."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    return FilePartInput(mime="text/plain", url=f"data:text/plain;base64,{data}", filename="stdin")
