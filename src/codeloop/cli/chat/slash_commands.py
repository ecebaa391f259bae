"""Runs one line of a conversation: a prompt, a `/command`, or a `!command` for the shell."""

import shutil
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct

from codeloop.cli.chat.conversation import LineConversation
from codeloop.cli.chat.list_commands import edit_queue, manage_mcp_servers, manage_permissions
from codeloop.cli.chat.report_commands import (
    find_text,
    list_sessions,
    show_context,
    show_cost,
    show_jobs,
    show_memory,
    show_status,
)
from codeloop.cli.run.message import OutgoingMessage, send_message
from codeloop.cli.target.selection import (
    check_agent,
    check_model,
    find_session,
    parse_model,
    set_profile,
)
from codeloop.client.client import Client
from codeloop.client.mentions import find_mentions
from codeloop.client.slash.commands import COMMANDS_BY_ANY_NAME, COMMANDS_BY_NAME, suggest_commands
from codeloop.client.slash.goal import parse_goal
from codeloop.client.slash.waiting_session import find_waiting_session
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.client.worktree_texts import describe_opened_worktree
from codeloop.client.worktrees import is_worktree_verb, open_named_worktree, run_worktree_command
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.api.session_inputs import (
    SESSION_SHELL,
    SUMMARIZE,
    Goal,
    RunShell,
    Summarize,
    TextPartInput,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_KEY, PROFILES, parse_profile
from codeloop.schema.wire import replace

BUSY_MESSAGE = "A turn is running: answer its question first, or end it with Ctrl-C; then commands of your own can run."


class LineCommand(Struct, frozen=True):
    """A slash command of a conversation line by line;
    `run` is called with the words after the command's name.

    `arguments`, `text`: the arguments and the help text where they differ from the terminal
    UI's command of that name.
    """

    run: Callable[[LineConversation, str], Awaitable[None]]
    arguments: str | None = None
    text: str = ""


async def run_line(chat: LineConversation, line: str) -> None:
    """Run a line. Raises CodeloopError if it is refused."""
    if line.startswith("/"):
        name, _, words = line[1:].partition(" ")
        await _run_slash_command(chat, name, words.strip())
    elif line.startswith("!") and (command := line[1:].strip()):
        agent = chat.agent or (chat.session.agent if chat.session else None)
        if chat.is_busy:
            raise UsageProblem(BUSY_MESSAGE)
        # The session may not be created yet; its id is filled in when the command is sent.
        shell = RunShell(
            session_id="", command=command, agent=agent, model=parse_model(chat.options.model)
        )
        await chat.send(
            lambda client, session_id: client.call(
                SESSION_SHELL, replace(shell, session_id=session_id)
            )
        )
    elif line.strip():
        await _send_prompt(chat, line)


async def _send_prompt(chat: LineConversation, line: str, goal: Goal | None = None) -> None:
    parts = [TextPartInput(text=line), *(await find_mentions(chat.client, line, chat.show_text))]
    await _send_message(chat, line, OutgoingMessage(parts, is_attended=chat.is_attended, goal=goal))


async def _send_message(chat: LineConversation, text: str, message: OutgoingMessage) -> None:
    """Send a message; `text`: the line that was typed, to show it when its turn comes."""
    message_id, options = new_id("msg"), replace(chat.options, agent=chat.agent)
    await chat.send(
        lambda client, session_id: send_message(client, session_id, message_id, options, message),
        text,
        message_id,
    )


async def _pursue_goal(chat: LineConversation, words: str) -> None:
    text, goal = parse_goal(words)
    if chat.is_busy:
        raise UsageProblem(BUSY_MESSAGE)
    await _send_prompt(chat, text, goal)


async def _run_slash_command(chat: LineConversation, name: str, words: str) -> None:
    # The command of the terminal UI that has this name or alias.
    ui_command = COMMANDS_BY_ANY_NAME.get(name)
    command_name = ui_command.name if ui_command is not None and name not in LINE_COMMANDS else name
    if (line_command := LINE_COMMANDS.get(command_name)) is not None:
        if words and not _describe_arguments(command_name, line_command):
            raise UsageProblem(
                f"/{name} takes no words. To say this to the model, put a space first."
            )
        await line_command.run(chat, words)
        return
    commands = [command.name for command in await chat.client.call(COMMAND_LIST, NoArguments())]
    if name not in commands and ui_command is not None:
        raise UsageProblem(
            f"/{name} ({ui_command.title}) needs the terminal UI: start codeloop without --plain."
        )
    if name not in commands:
        suggestion = format_suggestion(
            f"/{command}" for command in suggest_commands(name, [*LINE_COMMANDS, *commands])
        )
        raise UsageProblem(
            f"Unknown command: /{name}.{suggestion} /help lists them. To send it as a prompt, put a space first."
        )
    message = OutgoingMessage(parts=[], is_attended=chat.is_attended, command=name, arguments=words)
    await _send_message(chat, f"/{name} {words}".rstrip(), message)


def _describe_arguments(name: str, command: LineCommand) -> str:
    return COMMANDS_BY_NAME[name].arguments if command.arguments is None else command.arguments


async def _show_help(chat: LineConversation, _words: str) -> None:
    rows = [
        (
            f"/{name} {_describe_arguments(name, command)}".rstrip(),
            command.text or COMMANDS_BY_NAME[name].title,
        )
        for name, command in LINE_COMMANDS.items()
    ]
    rows += [
        ("!COMMAND", "run a shell command that the model sees"),
        ("@FILE", "in a prompt: attach a file"),
    ]
    commands = await chat.client.call(COMMAND_LIST, NoArguments())
    rows += [
        (f"/{command.name}", command.description or command.source or "")
        for command in commands
        if command.name not in LINE_COMMANDS
    ]
    name_width = max(len(name) for name, _ in rows)
    # Two spaces before the name and two after it, and the last column stays free.
    text_width = max(shutil.get_terminal_size().columns - name_width - 5, 20)
    chat.show_text(
        "\n".join(
            f"  {name.ljust(name_width)}  {one_line(text, text_width)}".rstrip()
            for name, text in rows
        )
    )
    chat.show_text(
        "Ctrl-C stops the turn, twice it leaves; Ctrl-D leaves. Prompts typed during a turn are queued."
    )


async def _start_new(chat: LineConversation, words: str) -> None:
    await chat.switch_session(None)
    if words:
        await run_line(chat, words)
    else:
        chat.show_text("The next prompt starts a new session.")


async def _switch_session(chat: LineConversation, words: str) -> None:
    if not words:
        raise UsageProblem("Name one: /session ID. /sessions lists them.")
    await chat.switch_session(await find_session(chat.client, words))


async def _choose_agent(chat: LineConversation, words: str) -> None:
    if not words:
        raise UsageProblem(
            "Name one: /agent NAME. /status shows which one answers, `codeloop agent list` lists them."
        )
    await check_agent(chat.client, words)
    chat.choose_agent(words)
    chat.show_text(f"The next prompts use agent {words}.")


async def _choose_model(chat: LineConversation, words: str) -> None:
    if not words:
        raise UsageProblem(
            "Name one: /model PROVIDER/MODEL. /status shows which one answers, `codeloop models` lists them."
        )
    await check_model(chat.client, words)
    chat.options = replace(chat.options, model=words)
    chat.show_text(f"The next prompts use {words}.")


async def _choose_profile(chat: LineConversation, words: str) -> None:
    if not words:
        session = await chat.load_session() if chat.session is not None else None
        current = parse_profile(
            (session.metadata or {}).get(PROFILE_KEY) if session else chat.options.profile
        )
        chat.show_text(f"profile {current or 'as configured'}; there are {', '.join(PROFILES)}")
        return
    profile = parse_profile(words)
    if profile is None:
        raise UsageProblem(
            f"There is no profile {words}.{format_suggestion(find_similar(words, PROFILES))} "
            f"Choose {', '.join(PROFILES)}."
        )
    chat.options = replace(chat.options, profile=profile)
    if chat.session is not None:
        await set_profile(chat.client, await chat.load_session(), profile)
    chat.show_text(f"From the next call on, profile {profile} holds in this session.")


async def _undo_turn(chat: LineConversation, _words: str) -> None:
    await _change_last_turn(chat, undo_last)


async def _redo_turn(chat: LineConversation, _words: str) -> None:
    await _change_last_turn(chat, redo_last)


async def _change_last_turn(chat: LineConversation, change: Callable[..., Awaitable[int]]) -> None:
    """Undo or redo the last turn. `change`: `undo_last` or `redo_last`."""
    warn = partial(chat.show_text, style="red")
    await change(
        chat.client, await chat.load_session(), dry_run=False, say=chat.show_text, warn=warn
    )


async def _summarize_session(chat: LineConversation, _words: str) -> None:
    session = await chat.load_session()
    if session.model is None:
        raise UsageProblem("There is nothing to summarize yet.")
    provider_id, model_id = session.model.provider_id, session.model.id

    async def send(client: Client, session_id: str) -> None:
        await client.call(
            SUMMARIZE, Summarize(session_id=session_id, provider_id=provider_id, model_id=model_id)
        )

    await chat.send(send)


async def _enter_waiting_session(chat: LineConversation, _words: str) -> None:
    await chat.switch_session(
        await find_waiting_session(chat.client, {chat.session.id} if chat.session else ())
    )


async def _use_worktree(chat: LineConversation, words: str) -> None:
    if is_worktree_verb(words):
        chat.show_text("\n".join(await run_worktree_command(chat.client, words)))
        return
    tree, is_new, prompt = await open_named_worktree(chat.client, words)
    await chat.switch_session(None, tree.directory)
    chat.show_text("\n".join(describe_opened_worktree(tree, is_new=is_new)))
    if prompt:
        await run_line(chat, prompt)


async def _leave(chat: LineConversation, _words: str) -> None:
    chat.leave()


# The commands that need no screen; `session` and `queue` are not among those of the terminal UI.
# They take precedence over the server's commands of the same name.
LINE_COMMANDS: dict[str, LineCommand] = {
    "help": LineCommand(_show_help, text="List the commands"),
    "new": LineCommand(_start_new),
    "sessions": LineCommand(list_sessions, text="List this project's sessions"),
    "session": LineCommand(_switch_session, "ID", "Switch session"),
    "agents": LineCommand(_choose_agent, "NAME"),
    "models": LineCommand(_choose_model, "PROVIDER/MODEL"),
    "profile": LineCommand(_choose_profile),
    "goal": LineCommand(_pursue_goal),
    "undo": LineCommand(_undo_turn),
    "redo": LineCommand(_redo_turn),
    "compact": LineCommand(_summarize_session),
    "context": LineCommand(show_context),
    "cost": LineCommand(show_cost),
    "memory": LineCommand(show_memory),
    "jobs": LineCommand(show_jobs),
    "permissions": LineCommand(manage_permissions, "[revoke ID]"),
    "find": LineCommand(find_text, "TEXT"),
    "next": LineCommand(_enter_waiting_session),
    "worktree": LineCommand(_use_worktree),
    "status": LineCommand(show_status),
    "queue": LineCommand(
        edit_queue, "[edit N WORDS | cancel N]", "List, edit or cancel queued prompts"
    ),
    "mcp": LineCommand(manage_mcp_servers, "[auth NAME [ADDRESS]]"),
    "exit": LineCommand(_leave),
}
