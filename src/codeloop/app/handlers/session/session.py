"""Handlers of sessions: create, list, read, change and delete them."""

import asyncio
from contextlib import closing, suppress
from datetime import UTC, datetime

from codeloop import __version__
from codeloop.agent.calls.call_rules import read_ceilings, set_ceilings
from codeloop.agent.title import UNTITLED_PREFIX
from codeloop.app.handlers.session.turn_settings import check_model
from codeloop.app.project import Project
from codeloop.config.project_root import GLOBAL_PROJECT_ID
from codeloop.kit import fault_injection
from codeloop.schema.api.session_requests import (
    CreateSession,
    ListAllSessions,
    ListSessions,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.event import make_session_created, make_session_deleted
from codeloop.schema.ids import make_slug, new_id, now_ms
from codeloop.schema.live_events import Status
from codeloop.schema.message import (
    GOAL_KEY,
    MOVED_KEY,
    NO_TOKENS,
    OWN_PREFIX,
    ModelRef,
    Session,
    SessionTime,
    Todo,
    drop_own_keys,
)
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_KEY
from codeloop.schema.wire import JSON, replace
from codeloop.store.database import StoreError
from codeloop.store.queries import NO_LIMIT, SessionFilter, open_queries


async def create_session(project: Project, args: CreateSession) -> Session:
    """Create a session in the project's directory. Raises OperationError for an unknown parent,
    agent or model.
    """
    return await create_named_session(project, args, new_id("ses"))


async def create_named_session(project: Project, args: CreateSession, session_id: str) -> Session:
    """Create a session with an id that a client has chosen; else as `create_session`."""
    project_root = project.settings.project_root
    if args.parent_id is not None:
        project.store.get_session(args.parent_id)
    if args.agent is not None:
        project.engine.get_agent(args.agent)
    if args.model is not None:
        check_model(project, ModelRef(provider_id=args.model.provider_id, model_id=args.model.id))
    now = now_ms()
    session = Session(
        id=session_id,
        slug=make_slug(),
        project_id=project_root.project_id,
        directory=project_root.directory_name,
        path=project_root.relative_path,
        title=args.title or make_first_title(now),
        version=__version__,
        parent_id=args.parent_id,
        agent=args.agent,
        model=args.model,
        metadata=None if args.metadata is None else drop_own_keys(args.metadata),
        permission=args.permission,
        cost=0.0,
        tokens=NO_TOKENS,
        time=SessionTime(created=now, updated=now),
    )
    await fault_injection.pass_point_async("session.create")
    project.store.append(make_session_created(session))
    return session


def make_first_title(now: int) -> str:
    """Return the title of a new session, until the model makes a better one.
    `now`: in ms since the epoch.
    """
    return UNTITLED_PREFIX + datetime.fromtimestamp(now / 1000, UTC).isoformat(
        timespec="milliseconds"
    ).replace("+00:00", "Z")


async def list_sessions(project: Project, args: ListSessions) -> list[Session]:
    """Return sessions, newest change first. Raises OperationError when `limit` is below 1."""
    if args.limit < 1:
        raise OperationError("BadRequest", f"limit is {args.limit}; it must be at least 1.")
    below_path = (args.path or "").strip("/") or None
    directory = args.directory if args.path is None and args.scope is None else None
    if directory is not None and _is_top(project, directory):
        directory = None
    return project.store.queries.find_sessions(
        SessionFilter(
            directory=directory,
            below_path=None if args.scope else below_path,
            only_roots=args.roots,
            changed_since=args.start,
            search=args.search,
            limit=min(args.limit, NO_LIMIT),
        )
    )


def _is_top(project: Project, directory: str) -> bool:
    """Return whether a directory is the top of the work tree,
    which stands for the sessions of the whole project.
    """
    project_root = project.settings.project_root
    return (
        project_root.vcs is not None
        and project_root.project_id != GLOBAL_PROJECT_ID
        and directory.rstrip("/") == project_root.root_name
    )


async def list_all_sessions(project: Project, args: ListAllSessions) -> list[Session]:
    """Return the sessions of every project, newest change first;
    databases that can't be read are left out.
    """

    def read_sessions() -> list[Session]:
        sessions: list[Session] = []
        for path in project.settings.paths.find_databases():
            with suppress(StoreError), closing(open_queries(path)) as queries:
                sessions += queries.find_sessions(
                    SessionFilter(search=args.search, limit=min(args.limit, NO_LIMIT))
                )
        return sorted(sessions, key=lambda each: -each.time.updated)[: args.limit]

    return await asyncio.to_thread(read_sessions)


async def get_session(project: Project, args: SessionId) -> Session:
    """Return a session."""
    return project.store.get_session(args.session_id)


async def update_session(project: Project, args: UpdateSession) -> Session:
    """Rename a session, archive it, or change its metadata and rules.
    Its time of change, and so its order, stays.
    """
    if args.title is not None and not args.title.strip():
        raise OperationError("BadRequest", "A title can't be empty.")
    fields = {"title": args.title, "permission": args.permission}
    changes = {name: value for name, value in fields.items() if value is not None}

    def apply_update(session: Session) -> Session:
        time = (
            session.time
            if args.time is None
            else replace(session.time, archived=args.time.archived)
        )
        metadata = session.metadata
        if args.metadata is not None:
            metadata = merge_metadata(session, args.metadata)
        return replace(session, **changes, metadata=metadata, time=time)

    return project.store.update_session(args.session_id, apply_update)


def merge_metadata(session: Session, metadata: JSON) -> JSON | None:
    """Return the new metadata of a session: that of a client, and the values that only
    codeloop sets.

    These are the profile, the ceilings, the state of the goal, the session that this one was
    moved to, and the keys of `OWN_PREFIX`; a client may remove the moving with null.
    """
    kept: JSON = {
        name: value
        for name, value in (session.metadata or {}).items()
        if name in {PROFILE_KEY, MOVED_KEY, GOAL_KEY} or name.startswith(OWN_PREFIX)
    }
    merged = kept | drop_own_keys(metadata)
    if MOVED_KEY in merged and merged[MOVED_KEY] is None:
        del merged[MOVED_KEY]
    return set_ceilings(merged, read_ceilings(session))


async def list_children(project: Project, args: SessionId) -> list[Session]:
    """Return the sessions of a session's subagents, newest change first."""
    return project.store.list_sessions(
        parent=project.store.get_session(args.session_id).id, limit=NO_LIMIT
    )


async def get_todos(project: Project, args: SessionId) -> list[Todo]:
    """Return the task list that the model keeps."""
    return project.store.list_todos(project.store.get_session(args.session_id).id)


async def get_statuses(project: Project, _args: NoArguments) -> dict[str, Status]:
    """Return the state of each session that is not idle in this process, by id."""
    return dict(project.store.statuses)


async def delete_session(project: Project, args: SessionId) -> bool:
    """Delete a session and its subagents' sessions.
    Raises OperationError while a turn runs in one of them.
    """
    family = project.store.list_family(project.store.get_session(args.session_id))
    for each in family:
        project.store.leases.check_free(each.id)
        if each.id in project.store.statuses or project.runs.is_working_on(each.id):
            raise OperationError(
                "SessionBusyError", f"Session {each.id} is busy. Abort its turn first."
            )
    # Subagents first: no event leaves a session without its parent.
    project.store.append(*(make_session_deleted(each) for each in reversed(family)))
    # Imported late: a run creates a session, and deletes none.
    from codeloop.extend.hooks.configured.transcript import remove_transcripts

    remove_transcripts(project.settings.home, [each.id for each in family])
    return True


async def refuse_sharing(project: Project, args: SessionId) -> Session:
    """Refuse: a session never leaves this machine by itself. Raises OperationError."""
    project.store.get_session(args.session_id)
    raise OperationError(
        "BadRequest", "Sharing is not offered: `codeloop export` writes a session to a file."
    )
