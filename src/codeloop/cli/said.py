"""What a line of a conversation means: a prompt, a command of ours or the server's, a line for the shell."""

from codeloop.cli.exits import UsageProblem
from codeloop.cli.mention import prompt_parts
from codeloop.cli.slash import COMMANDS, Talk
from codeloop.schema.command import Command
from codeloop.schema.ids import new_id
from codeloop.schema.operation import COMMAND, COMMAND_LIST, PROMPT, SESSION_SHELL


async def take(talk: Talk, line: str) -> None:
    """Do what a line says. Raises CodeloopError when that is refused."""
    if line.startswith("/"):
        name, _, words = line[1:].partition(" ")
        await _slash(talk, name, words.strip())
    elif line.startswith("!") and line[1:].strip():
        agent = talk.agent or (talk.session.agent if talk.session else None)
        await talk.begin(SESSION_SHELL, "", command=line[1:].strip(), agent=agent, model=talk.model)
    elif line.strip():
        parts = await prompt_parts(talk.client, line)
        chosen = {"model": talk.model, "agent": talk.agent, "limits": talk.limits}
        await talk.begin(PROMPT, line, parts=parts, message_id=new_id("msg"), **chosen)


async def _slash(talk: Talk, name: str, words: str) -> None:
    if name in COMMANDS:
        await COMMANDS[name].run(talk, words)
        return
    commands: list[Command] = await talk.client.call(COMMAND_LIST)
    if all(command.name != name for command in commands):
        raise UsageProblem(f"There is no command /{name}. /help lists them; a space before it makes it a prompt.")
    model = f"{talk.model.provider_id}/{talk.model.model_id}" if talk.model else None
    chosen = {"model": model, "agent": talk.agent, "limits": talk.limits}
    shown = f"/{name} {words}".rstrip()
    await talk.begin(COMMAND, shown, command=name, arguments=words, message_id=new_id("msg"), **chosen)
