"""Runs the hooks that prompts set off: those for prompts and commands,
and for the start and end of sessions.

Imported only if there are hooks.
"""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from codeloop.agent.hooks.extension_hooks import ExtensionHooks
from codeloop.app.models.open_models import SMALL_MODEL_HOOK
from codeloop.app.project import Project
from codeloop.schema.api.agents import Command
from codeloop.schema.api.session_inputs import InvokeCommand, PartInput
from codeloop.schema.errors import HookRefused, OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.message import UserMessage
from codeloop.schema.part import Part, TextPart
from codeloop.store.conversation import is_summary
from codeloop.tool.call_session import HookRunner

SESSION_END_HOOK = "session.end"
COMMAND_HOOK = "command.execute.before"


async def run_prompt_hooks(
    project: Project, message: UserMessage, parts: Sequence[Part]
) -> tuple[UserMessage, list[Part]]:
    """Return a prompt as extensions change it. Raises OperationError if an extension refuses it."""
    hooks, new_parts = project.engine.hooks, list(parts)
    if not isinstance(hooks, ExtensionHooks):
        return message, new_parts
    begun_sessions = _track_begun_sessions(project)
    source = _note_begin(project, begun_sessions, message.session_id)
    try:
        if hooks.runner.has_handler(SMALL_MODEL_HOOK):
            from codeloop.app.models.choose_small_model import choose_small_model

            await choose_small_model(project, message.model.provider_id)
        if source is not None:
            new_parts += [
                _make_text_part(message, text)
                for text in await hooks.list_start_texts(message.session_id, source)
            ]
        return await hooks.change_prompt(message, new_parts)
    except HookRefused as error:
        # The session has not begun, so the hooks for its start run again with the next prompt.
        if source in {"startup", "resume"}:
            begun_sessions.pop(message.session_id, None)
        raise OperationError("BadRequest", f"The prompt was not sent. {error}") from error


def _track_begun_sessions(project: Project) -> dict[str, None]:
    """Return the sessions that had a prompt since the project was opened;
    they are kept in its services.

    The first call starts the task that runs `session.end` for each of them
    when the project is closed.
    """
    begun_sessions = project.services.begun_sessions
    if begun_sessions is None:
        begun_sessions = project.services.begun_sessions = {}
        hooks = project.engine.hooks.runner
        if hooks is not None and hooks.has_handler(SESSION_END_HOOK):
            project.run_in_background(_end_sessions(hooks, begun_sessions))
    return begun_sessions


async def _end_sessions(hooks: HookRunner, begun_sessions: Iterable[str]) -> None:
    # A background task of the project: closing the project cancels it.
    try:
        await asyncio.Event().wait()
    finally:
        ended = [
            hooks.run(SESSION_END_HOOK, {"sessionID": each, "reason": "other"}, {})
            for each in begun_sessions
        ]
        # It is too late to refuse anything, so errors are dropped.
        await asyncio.gather(*ended, return_exceptions=True)


def _note_begin(project: Project, begun_sessions: dict[str, None], session_id: str) -> str | None:
    """Add a session to `begun_sessions`; return how it begins with this prompt,
    None if it only goes on.

    "startup": it is new. "resume": it has messages from before the project was opened. "compact": a
    summary was its last message.
    """
    entries = project.store.read_context(session_id).entries
    if session_id not in begun_sessions:
        begun_sessions[session_id] = None
        return "resume" if entries else "startup"
    return "compact" if entries and is_summary(entries[-1].info) else None


def _make_text_part(message: UserMessage, text: str) -> TextPart:
    return TextPart(
        id=new_id("prt"),
        session_id=message.session_id,
        message_id=message.id,
        text=text,
        synthetic=True,
    )


async def run_command_hooks(
    project: Project, args: InvokeCommand, command: Command, parts: Sequence[PartInput]
) -> list[PartInput]:
    """Return the parts of a command's prompt as extensions change them.

    Raises OperationError if an extension refuses the command.
    """
    hooks = project.engine.hooks.runner
    if hooks is None or not hooks.has_handler(COMMAND_HOOK):
        return list(parts)
    payload = {"command": command.name, "sessionID": args.session_id, "arguments": args.arguments}
    try:
        output = await hooks.run(COMMAND_HOOK, payload, {"parts": msgspec.to_builtins(parts)})
    except HookRefused as error:
        raise OperationError("BadRequest", f"/{command.name} was not sent. {error}") from error
    return msgspec.convert(output["parts"], list[PartInput])
