"""Finds the sessions, messages, agents and models that a user names,
and prepares the session for a turn.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

from codeloop.cli.option_values import Options
from codeloop.cli.output.streams import can_ask_user
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.agents import AGENT_LIST
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import (
    SESSION_ADOPT,
    SESSION_CREATE,
    SESSION_EVERYTHING,
    SESSION_FORK,
    SESSION_GET,
    SESSION_LIST,
    SESSION_MOVED,
    SESSION_UPDATE,
    AdoptFolder,
    CreateSession,
    ForkSession,
    ListAllSessions,
    ListSessions,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.ids import is_id
from codeloop.schema.message import ModelRef, Session, UserMessage, parse_model_name
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import CompactionPart, TextPart
from codeloop.schema.permission import PROFILE_KEY, PermissionQuery, Profile

# Practically all sessions; the operations need a number.
MAX_SESSIONS = 100_000
# Typing errors in an id: with more, ids of the same day are near each other by chance.
MAX_ID_EDITS = 2

_MODELS_HINT = "`codeloop models` lists them, as PROVIDER/MODEL."


async def find_session(client: Client, name: str | None) -> Session:
    """Return the session with this id, start or end of an id, or slug;
    without a name, the directory's latest.

    Raises UsageProblem if there is none, or more than one.
    """
    from codeloop.schema.api.project import PATH_GET

    if name is None:
        return await find_latest_session(
            client, (await client.call(PATH_GET, NoArguments())).directory
        )
    if is_id(name, "ses"):
        # An id may still be unknown here, and be that of another project's session.
        with suppress(OperationError):
            return await client.call(SESSION_GET, SessionId(session_id=name))
    sessions = await client.call(SESSION_LIST, ListSessions(scope="project", limit=MAX_SESSIONS))
    matching_sessions = _filter_by_name(sessions, name)
    if len(matching_sessions) > 1:
        ids = ", ".join(session.id for session in matching_sessions[:3])
        raise UsageProblem(
            f"{name} matches {len(matching_sessions)} sessions: {ids}. Give more of the id."
        )
    if matching_sessions:
        return matching_sessions[0]
    problem = f"There is no session {name} in this project."
    elsewhere = _filter_by_name(
        await client.call(SESSION_EVERYTHING, ListAllSessions(limit=MAX_SESSIONS)), name
    )
    if elsewhere:
        moved = await describe_moved_folders(client, elsewhere[0].directory)
        way = (
            f" {moved}"
            if moved
            else f" {elsewhere[0].id} belongs to {elsewhere[0].directory}: go there."
        )
        raise UsageProblem(f"{problem}{way}")
    raise UsageProblem(
        f"{problem}{_suggest_sessions(sessions, name)} `codeloop session list` shows them."
    )


async def find_local_session(client: Client, name: str | None) -> Session:
    """Find a session of the current directory, for commands that change its files.

    `name`: as for `find_session`. Raises UsageProblem also for a session of another directory.
    """
    from codeloop.schema.api.project import PATH_GET

    session = await find_session(client, name)
    paths = await client.call(PATH_GET, NoArguments())
    if session.directory != paths.directory:
        way = await describe_moved_folders(client, session.directory) or "Go there."
        problem = f"Session {session.id} belongs to {session.directory}, not to {paths.directory}."
        raise UsageProblem(f"{problem} Nothing was changed. {way}")
    return session


async def describe_moved_folders(client: Client, directory: str = "") -> str:
    """Return the words on the newest folder that is gone and may be this one; "": there is none.

    `directory`: the one of a session; then only that folder counts, and its being gone is enough.
    """
    folders = await client.call(SESSION_MOVED, NoArguments())
    notices = (
        each.notice
        for each in folders
        if not directory or f"{directory}/".startswith(f"{each.directory}/")
    )
    return next(notices, "")


async def find_latest_session(client: Client, directory: str) -> Session:
    """Return the session of a directory that was changed last and is not archived.

    Raises UsageProblem if there is none; its message names the one of the whole project,
    if there is one.
    """
    sessions = await client.call(
        SESSION_LIST, ListSessions(scope="project", roots=True, limit=MAX_SESSIONS)
    )
    active = [session for session in sessions if not session.time.archived]
    session_here = next((session for session in active if session.directory == directory), None)
    if session_here is not None:
        return session_here
    problem = f"There is no session in this directory, {directory}."
    if any(session.directory == directory for session in sessions):
        raise UsageProblem(f"{problem} `codeloop session list --archived` shows the archived ones.")
    if moved := await describe_moved_folders(client):
        raise UsageProblem(f"{problem} {moved}")
    if not active:
        raise UsageProblem(f"{problem} `codeloop run MESSAGE` starts one.")
    title = one_line(active[0].title, 50)
    raise UsageProblem(
        f"{problem} The latest one, {active[0].id}, “{title}”, belongs to {active[0].directory}."
    )


async def choose_session(
    target: Target, options: Options, ask: Callable[[str], Awaitable[bool]] | None = None
) -> Session | None:
    """Return the session that `--continue` or `--session` names; None without either.
    Raises UsageProblem.

    `ask`: asks whether a folder that is gone is this one;
    None: at the terminal, where there is one.
    """
    if options.session is not None:
        if options.continue_latest:
            raise UsageProblem("--continue and --session name two sessions. Leave one of them out.")
        return await find_session(target.client, options.session)
    if not options.continue_latest:
        return None
    try:
        return await find_latest_session(target.client, target.directory)
    except UsageProblem as error:
        ask = ask or (_ask_at_terminal if can_ask_user() else None)
        if ask is not None and await _offer_adoption(target.client, ask):
            return await find_latest_session(target.client, target.directory)
        # A command at the end has a line of its own.
        separator = " " if str(error).endswith((".", "?")) else "\n"
        raise UsageProblem(f"{error}{separator}Leave --continue out to start a new one.") from None


async def _ask_at_terminal(question: str) -> bool:
    import click

    try:
        return await asyncio.to_thread(click.confirm, question, default=False, err=True)
    except click.Abort:
        # Ctrl-D at the question is a no; the line that it was asked on is still open.
        click.echo(err=True)
        return False


async def _offer_adoption(client: Client, ask: Callable[[str], Awaitable[bool]]) -> bool:
    """Ask whether a folder that is gone is this one;
    if so, take its sessions over, and return True.
    """
    for folder in await client.call(SESSION_MOVED, NoArguments()):
        belong = (
            "1 session belongs" if folder.sessions == 1 else f"{folder.sessions} sessions belong"
        )
        question = f"{belong} to {escape_controls(folder.directory)}, which is gone. Is that folder this one now?"
        if await ask(question):
            await client.call(SESSION_ADOPT, AdoptFolder(directory=folder.directory))
            return True
    return False


async def prepare_session(client: Client, options: Options, session: Session | None) -> Session:
    """Return the session to work in: `session`, with `--fork` a copy of it, or a new one.
    Raises UsageProblem.
    """
    if options.at is not None and not options.fork:
        raise UsageProblem("--at says where a fork begins. Add --fork, or leave it out.")
    if not options.fork:
        if session is not None:
            return await set_profile(client, session, options.profile)
        metadata = {PROFILE_KEY: options.profile} if options.profile else None
        return await client.call(
            SESSION_CREATE, CreateSession(title=options.title, metadata=metadata)
        )
    if session is None:
        raise UsageProblem("--fork copies a session: choose one with --continue or --session ID.")
    copy = await set_profile(
        client, await fork_session(client, session, options.at), options.profile
    )
    if not options.title:
        return copy
    return await client.call(SESSION_UPDATE, UpdateSession(session_id=copy.id, title=options.title))


async def set_profile(client: Client, session: Session, profile: Profile | None) -> Session:
    """Set the profile of a session, and return it; None leaves the profile that it has."""
    if profile is None:
        return session
    metadata = {**(session.metadata or {}), PROFILE_KEY: profile}
    return await client.call(
        SESSION_UPDATE, UpdateSession(session_id=session.id, metadata=metadata)
    )


async def fork_session(client: Client, session: Session, at: str | None) -> Session:
    """Copy a session. `at`: the message before which the copy ends, as for `find_message`.
    Raises UsageProblem.
    """
    until = None if at is None else (await find_message(client, session, at)).info.id
    return await client.call(SESSION_FORK, ForkSession(session_id=session.id, message_id=until))


async def find_message(client: Client, session: Session, at: str) -> MessageWithParts:
    """Return a message of a session, by its id, the end of its id,
    or the number of a prompt from 1 on.

    Raises UsageProblem if there is none.
    """
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    # More digits than that are the end of an id.
    if at.isdecimal() and len(at) < 8:
        prompts = [message for message in messages if _is_prompt(message)]
        number = int(at)
        # Number 0 would be the slice from the last prompt on.
        matching_messages = prompts[number - 1 : number] if number else []
        hint = f"It has {len(prompts)} prompt{'' if len(prompts) == 1 else 's'}."
    else:
        matching_messages = [
            message
            for message in messages
            if message.info.id == at or (len(at) >= 4 and message.info.id.endswith(at))
        ]
        hint = f"`codeloop export {session.id}` shows their ids."
    if len(matching_messages) != 1:
        raise UsageProblem(f"There is no message {at} in {session.id}. {hint}")
    return matching_messages[0]


async def check_agent(client: Client, name: str | None) -> None:
    """Raise UsageProblem, listing the agents, if none has this name."""
    if name is None or any(
        agent.name == name for agent in await client.call(AGENT_LIST, NoArguments())
    ):
        return
    from codeloop.schema.api.answers import PERMISSION_RULES

    # The project knows why there is none.
    try:
        await client.call(PERMISSION_RULES, PermissionQuery(agent=name))
    except OperationError as error:
        raise UsageProblem(str(error)) from error


async def resolve_model(client: Client, name: str | None) -> str | None:
    """Return the `PROVIDER/MODEL` that a name means: its id,
    or a word of it that only one usable model has.

    A name with a slash, and None, are returned as they are. Raises UsageProblem.
    """
    from codeloop.kit.text.suggest import MAX_SUGGESTIONS, find_similar, format_suggestion

    if name is None or "/" in name:
        return name
    # Imported late: most models are named in full.
    from codeloop.schema.api.providers import CONFIG_PROVIDERS

    usable = await client.call(CONFIG_PROVIDERS, NoArguments())
    ids_by_ref = {
        f"{provider.id}/{model_id}": model_id
        for provider in usable.providers
        for model_id in provider.models
    }
    matches = [ref for ref, model_id in ids_by_ref.items() if model_id == name] or [
        ref
        for ref, model_id in ids_by_ref.items()
        if name.lower() in re.split(r"[-_./:@]", model_id.lower())
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = ", ".join(matches[:MAX_SUGGESTIONS]) + (
            ", ..." if len(matches) > MAX_SUGGESTIONS else ""
        )
        raise UsageProblem(
            f"{len(matches)} models are called {name}: {listed}. Name one as PROVIDER/MODEL."
        )
    near_ids = find_similar(name, ids_by_ref.values(), parts=True)
    suggestion = format_suggestion(
        [ref for ref, model_id in ids_by_ref.items() if model_id in near_ids]
    )
    raise UsageProblem(f"No usable model is called {name}.{suggestion} {_MODELS_HINT}")


async def check_model(client: Client, name: str | None) -> None:
    """Raise CodeloopError, naming similar models, if `PROVIDER/MODEL` names none."""
    from codeloop.schema.api.project import TOOL_LIST, ToolListQuery

    if (model := parse_model(name)) is not None:
        # Called for its error, which is raised for an unknown model.
        await client.call(
            TOOL_LIST, ToolListQuery(provider=model.provider_id, model=model.model_id)
        )


def parse_model(name: str | None) -> ModelRef | None:
    """Return the model that `PROVIDER/MODEL` names.
    Raises UsageProblem for a name of another form.
    """
    if name is None:
        return None
    if (model := parse_model_name(name)) is None:
        raise UsageProblem(f"A model is named PROVIDER/MODEL, not {name}. {_MODELS_HINT}")
    return model


def _filter_by_name(sessions: list[Session], name: str) -> list[Session]:
    """Return the sessions with this id or slug, else those whose id begins or ends with it."""
    exact_matches = [session for session in sessions if name in {session.id, session.slug}]
    # A few letters would match ids by chance.
    # Subagents have the slug of the session that they work for.
    roots = [session for session in exact_matches if session.parent_id is None]
    if exact_matches or len(name) < 4:
        return roots if len(roots) == 1 else exact_matches
    return [
        session for session in sessions if session.id.startswith(name) or session.id.endswith(name)
    ]


def _suggest_sessions(sessions: list[Session], query: str) -> str:
    """Return a suggestion of the sessions whose id, slug or title is similar,
    "" if there are none.
    """
    from codeloop.kit.text.suggest import MAX_SUGGESTIONS, find_similar, format_suggestion

    # Reversed, so that the last changed of several sessions with one title is kept.
    ids_by_name = {
        name.lower(): session.id
        for session in reversed(sessions)
        for name in (session.title, session.slug)
    }
    similar_ids = find_similar(query, [session.id for session in sessions], most_edits=MAX_ID_EDITS)
    similar_ids += [ids_by_name[name] for name in find_similar(query, ids_by_name)]
    return format_suggestion(list(dict.fromkeys(similar_ids))[:MAX_SUGGESTIONS])


def _is_prompt(message: MessageWithParts) -> bool:
    """Return whether a user wrote this message: it is not a request for a summary,
    and not made by codeloop.
    """
    parts = (part for part in message.parts if not (isinstance(part, TextPart) and part.synthetic))
    return isinstance(message.info, UserMessage) and any(
        not isinstance(part, CompactionPart) for part in parts
    )
