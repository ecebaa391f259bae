"""Confines what a sandboxed extension requests from the API: it restricts what a session may do,
and permits nothing.

An extension loads files that the model edits. So the profile, the agent, the goal and the rules of
a session are not its choice; a session that it makes is never allowed more than the default agent
and the sessions that are at work then.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from codeloop.agent.calls.call_rules import CEILINGS_KEY, Ceiling, collect_ceilings, set_ceilings
from codeloop.extend.host.host_callbacks import RunOperation
from codeloop.kit.guarded_paths import is_secret
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.api.config import CONFIG_GET
from codeloop.schema.api.files import FileQuery
from codeloop.schema.api.session_inputs import FilePartInput, InvokeCommand, Prompt, RunLimits
from codeloop.schema.api.session_requests import (
    SESSION_GET,
    SESSION_STATUS,
    CreateSession,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.message import GOAL_KEY, MOVED_KEY, Session
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.permission import PROFILE_KEY, PermissionRule, Profile, parse_profile
from codeloop.schema.wire import JSON, replace

_MADE_KEY = "madeBy"
"""The metadata key of a session that an extension made,
and whose agent its first prompt may choose.
"""
_RESERVED_KEYS = frozenset((PROFILE_KEY, GOAL_KEY, MOVED_KEY, CEILINGS_KEY, _MADE_KEY))


class NotPermitted(Exception):
    """The request would permit something; the message is that, as a verb phrase."""


async def confine_arguments(
    row: Operation[Any, Any], arguments: Any, run: RunOperation, root: Path
) -> Any:
    """Return the arguments with which an extension's request is carried out, by `run`.
    Raises OperationError.

    `root`: the top of the project, from which it may attach files.
    """
    try:
        match arguments:
            case CreateSession():
                return await _confine_new_session(arguments, run)
            case UpdateSession():
                return await _confine_update(arguments, run)
            case Prompt():
                return await _confine_prompt(arguments, run, root)
            case InvokeCommand():
                return await _confine_command(arguments, run, root)
            case FileQuery() if is_secret(arguments.path) or is_secret(
                str((root / arguments.path).resolve())
            ):
                raise NotPermitted(f"read {arguments.path}, which may hold keys")
            case _:
                return arguments
    except NotPermitted as error:
        raise OperationError(
            "BadRequest", f"{row.id}: an extension in a sandbox can't {error}."
        ) from error


async def _confine_new_session(args: CreateSession, run: RunOperation) -> CreateSession:
    metadata = _drop_reserved(args.metadata, None)
    _check_rules(args.permission, "allow")
    config: JSON = await run(CONFIG_GET, NoArguments())
    ceilings = [Ceiling(agent=config.get("default_agent") or "build")]
    if args.permission:
        # As rules of the session they would come after the user's,
        # and a question would lift a denial.
        ceilings.append(Ceiling(permission=tuple(args.permission)))
    async for each in _list_ceilings_at_work(config, run):
        if each not in ceilings:
            ceilings.append(each)
    metadata = set_ceilings({**(metadata or {}), _MADE_KEY: "extension"}, tuple(ceilings))
    return replace(args, metadata=metadata, permission=None)


async def _list_ceilings_at_work(config: JSON, run: RunOperation) -> AsyncIterator[Ceiling]:
    """Yield what bounds the sessions in which a turn runs: the extension's call
    may come from any of them.
    """

    def find_lineage_profile(lineage: Sequence[Session]) -> Profile:
        names: list[Any] = [(each.metadata or {}).get(PROFILE_KEY) for each in lineage]
        for name in (*names, config.get(PROFILE_KEY)):
            if (profile := parse_profile(name)) is not None:
                return profile
        return "auto"

    for session_id in await run(SESSION_STATUS, NoArguments()):
        lineage: list[Session] = [await run(SESSION_GET, SessionId(session_id=session_id))]
        while (parent := lineage[-1].parent_id) is not None and parent not in {
            each.id for each in lineage
        }:
            lineage.append(await run(SESSION_GET, SessionId(session_id=parent)))
        for each in collect_ceilings(
            (replace(lineage[0], metadata=None), *lineage), find_lineage_profile
        ):
            yield each


async def _confine_update(args: UpdateSession, run: RunOperation) -> UpdateSession:
    session = await _read_session(args.session_id, run)
    if args.metadata is not None:
        kept: JSON = {
            key: value for key, value in (session.metadata or {}).items() if key == _MADE_KEY
        }
        args = replace(args, metadata={**(_drop_reserved(args.metadata, session) or {}), **kept})
    if args.permission is None:
        return args
    own = list(session.permission or ())
    new = [each for each in args.permission if each not in own]
    # Appended behind the others, a denial is all that can't lift one.
    _check_rules(new, "allow", "ask")
    return replace(args, permission=[*own, *new])


async def _confine_prompt(args: Prompt, run: RunOperation, root: Path) -> Prompt:
    if any((args.tools or {}).values()):
        raise NotPermitted("allow tools")
    if args.goal is not None:
        raise NotPermitted("set a goal, whose checks are commands")
    _check_limits(args.limits)
    _check_attachments(args.parts, root)
    _check_agent(args.agent, await _read_session(args.session_id, run))
    return args


async def _confine_command(args: InvokeCommand, run: RunOperation, root: Path) -> InvokeCommand:
    _check_limits(args.limits)
    _check_attachments(args.parts, root)
    session = await _read_session(args.session_id, run)
    _check_agent(args.agent, session)
    for command in await run(COMMAND_LIST, NoArguments()):
        if command.name == args.command and not command.subtask:
            _check_agent(command.agent, session)
    return args


def _check_agent(agent: str | None, session: Session) -> None:
    """Raise NotPermitted if a prompt names another agent than the session's;
    the first one in its own session may.
    """
    is_first_of_own = session.agent is None and _MADE_KEY in (session.metadata or {})
    if agent is not None and agent != session.agent and not is_first_of_own:
        raise NotPermitted(f"choose the agent {agent} for a session of the user's")


def _check_limits(limits: RunLimits | None) -> None:
    if limits is not None and limits.directories:
        raise NotPermitted("open directories")


def _check_attachments(parts: Any, root: Path) -> None:
    if any(isinstance(part, FilePartInput) and not _may_read(part, root) for part in parts):
        raise NotPermitted("attach that file")


def _check_rules(rules: list[PermissionRule] | None, *actions: str) -> None:
    if any(rule.action in actions for rule in rules or ()):
        raise NotPermitted(
            "allow anything" if len(actions) == 1 else "set other rules than denials"
        )


def _drop_reserved(metadata: JSON | None, session: Session | None) -> JSON | None:
    """Return metadata without the keys that decide what a session may do.
    Raises NotPermitted if one is changed.
    """
    stored: JSON = (session.metadata if session is not None else None) or {}
    for key in _RESERVED_KEYS & (metadata or {}).keys():
        # As JSON: what was stored in this process may still have tuples for lists.
        new, old = (
            msgspec.json.encode(each, order="deterministic")
            for each in ((metadata or {})[key], stored.get(key))
        )
        if new != old:
            raise NotPermitted(f"set {key} of a session")
    return (
        None
        if metadata is None
        else {key: value for key, value in metadata.items() if key not in _RESERVED_KEYS}
    )


async def _read_session(session_id: str, run: RunOperation) -> Session:
    return msgspec.convert(await run(SESSION_GET, SessionId(session_id=session_id)), Session)


def _may_read(part: FilePartInput, root: Path) -> bool:
    """Return whether an extension may attach a part: a project's file without keys,
    or data that is not a file.
    """
    if not part.url.startswith("file:"):
        return True
    path = (root / unquote(urlsplit(part.url).path)).resolve()
    # The name is checked too: a link `notes.txt` may lead to `.env`,
    # and a link `.env` to another file.
    return (
        path.is_relative_to(root.resolve()) and not is_secret(str(path)) and not is_secret(part.url)
    )
