"""Handlers of slash commands: a command's template becomes a prompt.

The typed arguments and the output of shell lines are filled in,
and files that the template mentions are attached.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from codeloop.agent.calls.call_context import CallContext
from codeloop.app.handlers.project.agents import find_commands
from codeloop.app.handlers.project.mcp import open_mcp_servers
from codeloop.app.handlers.session.prompt import (
    find_sent_prompt,
    run_prompt,
    summarize_session,
    wait_for_answer,
)
from codeloop.app.handlers.session.turn_settings import check_model, choose_agent
from codeloop.app.models.open_models import find_newest_model
from codeloop.app.project import Project
from codeloop.app.prompt_parts import guess_mime
from codeloop.extend.commands import COMPACT_COMMAND
from codeloop.extend.mcp.tools.prompts import fetch_prompt
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.extend.skills import format_skill, load_skill
from codeloop.extend.template import LiteralPiece, Piece, ShellPiece, expand_template
from codeloop.kit.text.mentions import list_mentions
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.api.agents import Agent, Command
from codeloop.schema.api.session_inputs import (
    AgentPartInput,
    FilePartInput,
    InitSession,
    InvokeCommand,
    MessageWithParts,
    PartInput,
    Prompt,
    SubtaskPartInput,
    Summarize,
    TextPartInput,
    TurnEnd,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.limits import COMMAND_FILES, COMMAND_SHELLS
from codeloop.schema.live_events import CommandExecuted, ExecutedCommand
from codeloop.schema.message import AssistantMessage, Session, format_model_ref, parse_model_ref
from codeloop.schema.part import FileSource, ToolPart, ToolStatePending, locate_mention
from codeloop.schema.wire import replace
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.tool.tool import ToolFailure


async def run_command(project: Project, args: InvokeCommand) -> MessageWithParts:
    """Expand a command, send it as a prompt, run the turn and return its last answer.

    Raises OperationError, and stores nothing: no such command, a shell line that is denied or was
    aborted, a file that can't be read.
    """
    commands = find_commands(project)
    command = commands.get(args.command)
    if command is None:
        names = sorted(commands)
        suggestion = (
            f"{format_suggestion(find_similar(args.command, names))} Available: {', '.join(names)}"
        )
        raise OperationError("NotFoundError", f"Command not found: {args.command}.{suggestion}")
    session = project.store.get_session(args.session_id)
    project.store.leases.check_free(session.id)
    # A command that is sent again after a lost connection must not run its shell lines twice.
    sent_prompt = find_sent_prompt(project, args)
    if sent_prompt is not None:
        return await wait_for_answer(project, sent_prompt, args)
    if command == COMPACT_COMMAND:
        return await _compact_now(project, args, session)
    # Commands that were written for Claude Code name a model by its family, such as `opus`.
    if command.model and "/" not in command.model:
        newest = find_newest_model(project.settings, project.providers, command.model)
        command = replace(command, model=format_model_ref(newest) if newest is not None else None)
    agent = choose_agent(project, session, command.agent or args.agent)
    message_id = args.message_id or new_id("msg")
    text = await _make_text(project, args, command, agent, message_id)
    parts = _make_parts(project, args, command, text, agent)
    await project.wait_for_extensions()
    if project.engine.hooks.runner is not None:
        from codeloop.app.handlers.session.prompt_hooks import run_command_hooks

        parts = await run_command_hooks(project, args, command, parts)
    parts = _add_typed_command(args, parts)
    # The agent of a subtask is for the subagent; the session keeps its own.
    is_subtask = any(isinstance(part, SubtaskPartInput) for part in parts)
    model = command.model or args.model
    if command.model:
        check_model(project, parse_model_ref(command.model), ("command", command.name, "model"))
    answer = await run_prompt(
        project,
        Prompt(
            session_id=args.session_id,
            parts=[*parts, *args.parts],
            message_id=message_id,
            model=parse_model_ref(model) if model else None,
            variant=command.variant or args.variant,
            agent=args.agent if is_subtask else agent.name,
            format=args.format,
            limits=args.limits,
        ),
    )
    executed_command = ExecutedCommand(
        name=command.name,
        session_id=args.session_id,
        arguments=args.arguments,
        message_id=answer.info.id,
    )
    project.store.publish_live(CommandExecuted(properties=executed_command))
    return answer


def _add_typed_command(args: InvokeCommand, parts: Sequence[PartInput]) -> list[PartInput]:
    """Return the parts: the typed command, which only users see, and its expansion,
    which only the model gets.
    """
    if not any(isinstance(part, TextPartInput) and not part.synthetic for part in parts):
        return list(parts)
    text_part = TextPartInput(text=f"/{args.command} {args.arguments}".strip(), ignored=True)
    return [
        text_part,
        *(
            replace(part, synthetic=True) if isinstance(part, TextPartInput) else part
            for part in parts
        ),
    ]


async def _compact_now(project: Project, args: InvokeCommand, session: Session) -> MessageWithParts:
    """Summarise the conversation, with the model of the request, else of the session,
    else of the configuration.
    """
    model = args.model or (
        f"{session.model.provider_id}/{session.model.id}" if session.model else None
    )
    ref = parse_model_ref(
        model or await project.models.choose_default(project.settings.config.model)
    )
    await summarize_session(
        project,
        Summarize(session_id=session.id, provider_id=ref.provider_id, model_id=ref.model_id),
    )
    entries = project.store.read_context(session.id).entries
    last = next(
        (entry for entry in reversed(entries) if isinstance(entry.info, AssistantMessage)),
        entries[-1],
    )
    return MessageWithParts(info=last.info, parts=list(last.parts), stop=TurnEnd(reason="done"))


async def _make_text(
    project: Project, args: InvokeCommand, command: Command, agent: Agent, message_id: str
) -> str:
    """Return the text of the prompt: the template with arguments and the output of
    its shell lines filled in.
    """
    if command.source == "skill":
        skill = format_skill(
            load_skill(project.settings.skills.by_name[command.name]),
            project.workspace.format_for_model,
        )
        return f"{skill}\n\n{args.arguments.strip()}".strip()
    if command.source == "mcp":
        context = _make_context(project, args, agent, message_id, "mcp")
        fetch_task = asyncio.create_task(
            _fetch_mcp_prompt(project, command.name, context, args.arguments)
        )
        return (await project.runs.run_before_turn(args.session_id, fetch_task)).strip()
    pieces = expand_template(command.template, args.arguments)
    shell_count = sum(isinstance(piece, ShellPiece) for piece in pieces)
    if shell_count > COMMAND_SHELLS.value:
        raise OperationError(
            "BadRequest",
            f"/{command.name} has {shell_count} shell lines, more than {COMMAND_SHELLS.value}.",
        )
    if not shell_count:
        return "".join(piece.text for piece in pieces if isinstance(piece, LiteralPiece)).strip()
    context = _make_context(project, args, agent, message_id, "bash")
    fill_task = asyncio.create_task(_fill_template(project, command.name, context, pieces))
    return (await project.runs.run_before_turn(args.session_id, fill_task)).strip()


def _make_context(
    project: Project, args: InvokeCommand, agent: Agent, message_id: str, tool: str
) -> CallContext:
    """Make the context of a tool call that does not exist,
    since questions for permission belong to calls.
    """
    part = ToolPart(
        id=new_id("prt"),
        session_id=args.session_id,
        message_id=message_id,
        call_id="command",
        tool=tool,
        state=ToolStatePending(input={}, raw=""),
    )
    return CallContext(project.engine, agent, part)


async def _fetch_mcp_prompt(
    project: Project, name: str, context: CallContext, arguments: str
) -> str:
    """Return the text of an MCP server's prompt. `arguments`: as typed. Raises OperationError."""
    try:
        return await fetch_prompt(open_mcp_servers(project).table, name, arguments, context)
    except (Denied, Rejected, ToolFailure, ServerFailed) as error:
        raise OperationError("BadRequest", f"/{name} was not sent: {error}") from error


async def _fill_template(
    project: Project, name: str, context: CallContext, pieces: tuple[Piece, ...]
) -> str:
    texts: list[str] = []
    for piece in pieces:
        match piece:
            case LiteralPiece(text=text):
                texts.append(text)
            case ShellPiece(line=line):
                texts.append(await _run_shell_line(project, name, context, line))
    return "".join(texts)


async def _run_shell_line(project: Project, name: str, context: CallContext, line: str) -> str:
    """Run a shell line as the tool `bash` does, in the project's directory; return its output."""
    params = BashParams(
        command=line, workdir=str(project.workspace.directory), description=f"/{name}"
    )
    try:
        return (await bash.run(params, context)).output.rstrip()
    except Denied as error:
        raise OperationError(
            "BadRequest", f"/{name} was not sent: its line `{line}` is denied. {error}"
        ) from error
    except Rejected as error:
        raise OperationError(
            "BadRequest", f"/{name} was not sent: its line `{line}` was rejected."
        ) from error
    except ToolFailure as error:
        raise OperationError(
            "BadRequest", f"/{name} was not sent: its line `{line}` failed: {error}"
        ) from error


def _make_parts(
    project: Project, args: InvokeCommand, command: Command, text: str, agent: Agent
) -> list[PartInput]:
    """Return the parts of the prompt: a task for a subagent,
    or the text with the files and agents that it mentions.

    Mentions are looked for in the template and the arguments alone: the output of a shell
    line is not the user's text.
    """
    if command.subtask or (agent.mode == "subagent" and command.subtask is not False):
        description = command.description or f"/{command.name}"
        subagent = agent.name if agent.mode != "primary" else "general"
        model = (
            replace(parse_model_ref(command.model), variant=command.variant)
            if command.model
            else None
        )
        return [
            SubtaskPartInput(
                prompt=text,
                description=description,
                agent=subagent,
                model=model,
                command=command.name,
            )
        ]
    if command.source in {"skill", "mcp"}:
        return [TextPartInput(text=text)]
    texts = (
        piece.text
        for piece in expand_template(command.template, args.arguments)
        if isinstance(piece, LiteralPiece)
    )
    return [TextPartInput(text=text), *_find_mentions(project, "\n".join(texts))]


def _find_mentions(project: Project, text: str) -> list[PartInput]:
    """Return parts for the files and subagents that a text mentions; other mentions stay text.

    Permission for a file outside the project, or for a secret, is asked when the prompt is stored.
    """
    parts: list[PartInput] = []
    for name in list_mentions(text):
        agent = project.engine.agents.get(name)
        if agent is not None and agent.mode != "primary":
            parts.append(AgentPartInput(name=name))
        elif len(parts) < COMMAND_FILES.value and (file := _find_file(project, name)) is not None:
            source = FileSource(path=name, text=locate_mention(name, text))
            parts.append(
                FilePartInput(
                    mime=guess_mime(file), url=file.as_uri(), filename=name, source=source
                )
            )
    return parts


def _find_file(project: Project, name: str) -> Path | None:
    try:
        target = project.workspace.resolve(name)
        return target.path if target.path.is_file() else None
    except (OSError, ValueError):
        return None


async def init_project(project: Project, args: InitSession) -> bool:
    """Have the model write the project's AGENTS.md; return True at the turn's end.
    Raises as `run_command` does.
    """
    model = f"{args.provider_id}/{args.model_id}"
    request = InvokeCommand(
        session_id=args.session_id, command="init", model=model, message_id=args.message_id
    )
    await run_command(project, request)
    return True
