"""Handlers of version 2: sessions (list, create, change, fork, move)."""

from codeloop.agent.calls.call_rules import Ceiling, read_ceilings, set_ceilings
from codeloop.app.handlers.session.session import create_named_session, merge_metadata
from codeloop.app.handlers.session.turn_settings import check_model
from codeloop.schema.api.session_requests import (
    SESSION_EVERYTHING,
    SESSION_FORK,
    SESSION_STATUS,
    SESSION_UPDATE,
    ArchiveTime,
    CreateSession,
    ForkSession,
    ListAllSessions,
    UpdateSession,
)
from codeloop.schema.ids import is_id, new_id, now_ms
from codeloop.schema.message import ENVIRONMENT_KEY, ModelRef, Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, encode_json, replace
from codeloop.server.version2 import session_arguments as takes
from codeloop.server.version2.pages import select_page
from codeloop.server.version2.request import Request2, TaggedError, make_refusal
from codeloop.server.version2.session_forms import (
    ENTRIES_KEY,
    VIEWED_KEY,
    read_rules,
    translate_session,
)
from codeloop.shell.tree_reader import steers_programs

_MAX_SESSIONS = 10_000
"""Sessions that are read at most, to filter and sort them here."""
_MAX_ENTRY = 64 * 1024
"""Bytes of the JSON of an instruction."""


async def list_sessions(request: Request2, args: takes.ListSessions2) -> JSON:
    """Return a page of the sessions of all projects."""
    sessions = await request.call(SESSION_EVERYTHING, ListAllSessions(limit=_MAX_SESSIONS))
    matching = [each for each in sessions if _is_wanted(each, args)]
    # Of sessions of one millisecond the later one has the smaller id.
    matching.sort(key=lambda each: each.id, reverse=True)
    matching.sort(key=lambda each: each.time.created)
    ids = [each.id for each in matching]
    page, cursor = select_page(matching, ids, args.limit, args.order, args.cursor)
    return {"data": [translate_session(each) for each in page], "cursor": cursor}


def _is_wanted(session: Session, args: takes.ListSessions2) -> bool:
    parent_id = None if args.parent_id == "null" else args.parent_id
    return (
        (args.project is None or session.project_id == args.project)
        and (args.directory is None or session.directory == args.directory)
        and (args.subpath is None or (session.path or "") == args.subpath)
        and (args.search is None or args.search.casefold() in session.title.casefold())
        and (args.parent_id is None or session.parent_id == parent_id)
        and (args.archived is None or (session.time.archived is not None) == args.archived)
    )


async def create_session(request: Request2, args: takes.CreateSession2) -> JSON:
    """Create a session in the given location; a session that has the id already is returned."""
    if args.location is not None:
        request = request.at(args.location.directory)
    if args.id is not None:
        if not is_id(args.id, "ses") or len(args.id) > 64 or not args.id.replace("_", "").isalnum():
            raise make_refusal("A session's id is `ses_` and letters or digits, 64 at most.")
        project = await request.get_project(args.id)
        if (before := project.store.find_session(args.id)) is not None:
            return translate_session(before)
    created = CreateSession(
        parent_id=args.parent_id,
        title=args.title,
        agent=args.agent,
        model=args.model,
        metadata=_restrict(args.metadata, read_rules(args.permissions)),
    )
    project = await request.get_project()
    with project.track_request():
        return translate_session(
            await create_named_session(project, created, args.id or new_id("ses"))
        )


def _restrict(
    metadata: JSON | None,
    rules: list[PermissionRule] | None,
    ceilings: tuple[Ceiling, ...] = (),
) -> JSON | None:
    """Return the metadata of a session whose client's rules are `rules` from now on. They are
    a ceiling: they restrict what the session may do, and allow nothing that is denied otherwise.
    """
    kept = tuple(each for each in ceilings if not each.is_from_client)
    own = (Ceiling(permission=tuple(rules), is_from_client=True),) if rules else ()
    return set_ceilings(metadata, (*kept, *own))


async def update_session(request: Request2, args: takes.UpdateSession2) -> None:
    """Change a session."""
    time = None
    if args.archived is not None:
        time = ArchiveTime(archived=now_ms() if args.archived else None)
    project, session = await request.find_session(args.session_id)
    if args.title is not None or time is not None:
        change = UpdateSession(session_id=session.id, title=args.title, time=time)
        await request.call(SESSION_UPDATE, change)
    if args.metadata is None and args.permissions is None:
        return

    def change_metadata(one: Session) -> Session:
        metadata = one.metadata
        if args.metadata is not None:
            metadata = merge_metadata(one, args.metadata)
        if args.permissions is not None:
            metadata = _restrict(metadata, read_rules(args.permissions), read_ceilings(one))
        return replace(one, metadata=metadata)

    project.store.update_session(session.id, change_metadata)


async def list_active_sessions(request: Request2, _args: NoArguments) -> JSON:
    """Return the sessions in which a turn runs."""
    active_sessions: JSON = {}
    for project in request.app.projects:
        here = request.at(str(project.settings.project_root.directory))
        states = await here.call(SESSION_STATUS, NoArguments())
        active_sessions |= {session_id: {"type": "running"} for session_id in states}
    return active_sessions


async def fork_session(request: Request2, args: takes.ForkSession2) -> JSON:
    """Copy a session, or its messages before one."""
    fork = ForkSession(session_id=args.session_id, message_id=args.before)
    await request.find_session(args.session_id)
    return translate_session(await request.call(SESSION_FORK, fork))


async def move_session(request: Request2, args: takes.MoveSession2) -> None:
    """Move a session to another folder of its work tree, in which its undo history holds."""
    project, session = await request.find_session(args.session_id)
    target = await request.app.get_project(request.app.resolve_directory(args.directory))
    new, old = target.settings.project_root, project.settings.project_root
    if (new.project_id, new.root) != (old.project_id, old.root):
        raise make_refusal(
            "A session stays in the work tree that its rules and its undo history belong to. "
            "Export it, and import it there."
        )
    project.runs.check_free(session.id)
    project.store.update_session(
        session.id,
        lambda one: replace(one, directory=new.directory_name, path=new.relative_path),
    )


async def switch_agent(request: Request2, args: takes.SwitchAgent) -> None:
    """Choose the agent of the next turns."""
    project = await request.get_project(args.session_id)
    project.engine.get_agent(args.agent)
    project.store.update_session(
        args.session_id, lambda session: replace(session, agent=args.agent)
    )


async def switch_model(request: Request2, args: takes.SwitchModel) -> None:
    """Choose the model of the next turns."""
    project = await request.get_project(args.session_id)
    check_model(project, ModelRef(provider_id=args.model.provider_id, model_id=args.model.id))
    project.store.update_session(
        args.session_id, lambda session: replace(session, model=args.model)
    )


async def note_view(request: Request2, args: takes.View2) -> None:
    """Note that a client has shown the end of a session."""
    await _change_metadata(request, args.session_id, VIEWED_KEY, args.idle)


async def set_environment(request: Request2, args: takes.Environment2) -> None:
    """Set the variables of a session's commands."""
    for name, value in args.variables.items():
        if not (name.isascii() and name.isidentifier()) or "\0" in value:
            raise make_refusal(f"{name!r} is not a variable with a value.")
        # The rules judge a line by its text and the PATH that codeloop was started with.
        if steers_programs(name):
            raise make_refusal(
                f"{name} decides which code other programs run, so a session's commands have "
                "codeloop's own. Set it where codeloop is started."
            )
    await _change_metadata(request, args.session_id, ENVIRONMENT_KEY, args.variables)


async def list_instructions(request: Request2, args: takes.SessionId2) -> list[JSON]:
    """Return the instructions that clients have set for a session."""
    _, session = await request.find_session(args.session_id)
    return [{"key": key, "value": value} for key, value in read_entries(session).items()]


async def put_instruction(request: Request2, args: takes.PutInstruction) -> None:
    """Set an instruction, which the model gets with the next prompts."""
    _, session = await request.find_session(args.session_id)
    size = len(encode_json(args.value))
    if size > _MAX_ENTRY:
        raise TaggedError(
            "InstructionEntryValueTooLargeError",
            413,
            f"An instruction has at most {_MAX_ENTRY} bytes, this one {size}.",
            actualBytes=size,
            maxBytes=_MAX_ENTRY,
        )
    entries = {**read_entries(session), args.key: args.value}
    await _change_metadata(request, args.session_id, ENTRIES_KEY, entries)


async def remove_instruction(request: Request2, args: takes.InstructionKey) -> None:
    """Take an instruction out."""
    _, session = await request.find_session(args.session_id)
    entries = {key: value for key, value in read_entries(session).items() if key != args.key}
    await _change_metadata(request, args.session_id, ENTRIES_KEY, entries)


def read_entries(session: Session) -> JSON:
    """Return the instructions of a session by their keys."""
    entries: JSON = (session.metadata or {}).get(ENTRIES_KEY) or {}
    return entries


async def _change_metadata(request: Request2, session_id: str, key: str, value: object) -> None:
    project, _ = await request.find_session(session_id)
    project.store.update_session(
        session_id,
        lambda session: replace(session, metadata={**(session.metadata or {}), key: value}),
    )
