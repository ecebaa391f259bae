"""What a line of a conversation means: a prompt, a command of ours or the server's, a line for the shell."""

from codeloop.cli.chat.mention import prompt_parts
from codeloop.cli.chat.slash_commands import COMMANDS, Talk
from codeloop.cli.exit_codes import UsageProblem
from codeloop.kit.suggest import meant, near
from codeloop.schema.api.session_inputs import InvokeCommand, Prompt, RunShell
from codeloop.schema.ids import new_id
from codeloop.schema.operation import COMMAND, COMMAND_LIST, PROMPT, SESSION_SHELL, NoArguments
from codeloop.schema.wire import replace


async def take(talk: Talk, line: str) -> None:
    """Do what a line says. Raises CodeloopError when that is refused."""
    if line.startswith("/"):
        name, _, words = line[1:].partition(" ")
        await _slash(talk, name, words.strip())
    elif line.startswith("!") and line[1:].strip():
        agent = talk.agent or (talk.session.agent if talk.session else None)
        await talk.begin(
            lambda client, session: client.call(
                SESSION_SHELL, RunShell(session_id=session, command=line[1:].strip(), agent=agent, model=talk.model)
            )
        )
    elif line.strip():
        parts = await prompt_parts(talk.client, line, talk.say)
        prompt = Prompt(
            session_id="", parts=parts, message_id=new_id("msg"), model=talk.model, agent=talk.agent, limits=talk.limits
        )
        await talk.begin(
            lambda client, session: client.call(PROMPT, replace(prompt, session_id=session)), line, prompt.message_id
        )


async def _slash(talk: Talk, name: str, words: str) -> None:
    if name in COMMANDS:
        await COMMANDS[name].run(talk, words)
        return
    commands = [command.name for command in await talk.client.call(COMMAND_LIST, NoArguments())]
    if name not in commands:
        close = meant(f"/{each}" for each in near(name, [*COMMANDS, *commands]))
        raise UsageProblem(
            f"There is no command /{name}.{close} /help lists them; a space before it makes it a prompt."
        )
    model = f"{talk.model.provider_id}/{talk.model.model_id}" if talk.model else None
    command = InvokeCommand(
        session_id="",
        command=name,
        arguments=words,
        message_id=new_id("msg"),
        model=model,
        agent=talk.agent,
        limits=talk.limits,
    )
    await talk.begin(
        lambda client, session: client.call(COMMAND, replace(command, session_id=session)),
        f"/{name} {words}".rstrip(),
        command.message_id,
    )
