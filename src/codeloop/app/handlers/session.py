"""Sessions: make, list, read, delete."""

from datetime import UTC, datetime

from codeloop import __version__
from codeloop.agent.title import UNTITLED
from codeloop.app.names import slug
from codeloop.app.project import Project
from codeloop.kit import fault
from codeloop.schema.errors import OperationError
from codeloop.schema.event import SessionCreated, SessionDeleted, SessionInfo, StoredEvent
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import NO_TOKENS, Session, SessionTime
from codeloop.schema.operation import CreateSession, ListSessions, MessageWithParts, OfOneSession


async def create(project: Project, args: CreateSession) -> Session:
    """Make a session in the project's directory."""
    place = project.setting.place
    if args.parent_id is not None:
        project.store.session(args.parent_id)
    if args.agent is not None:
        project.engine.agent(args.agent)
    now = now_ms()
    path = place.directory.relative_to(place.root)
    session = Session(
        id=new_id("ses"),
        slug=slug(),
        project_id=place.project_id,
        directory=str(place.directory),
        path="" if path == path.parent else str(path),
        title=args.title or untitled(now),
        version=__version__,
        parent_id=args.parent_id,
        agent=args.agent,
        model=args.model,
        metadata=args.metadata,
        permission=args.permission,
        cost=0.0,
        tokens=NO_TOKENS,
        time=SessionTime(created=now, updated=now),
    )
    await fault.reach("session.create")
    project.store.append(SessionCreated(properties=SessionInfo(session_id=session.id, info=session)))
    return session


def untitled(now: int) -> str:
    """Give the title that a session has until one is made; `now` in ms since the epoch."""
    return UNTITLED + datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def listed(project: Project, args: ListSessions) -> list[Session]:
    """Give sessions, newest change first."""
    return project.store.sessions(directory=args.directory, limit=args.limit)


async def get(project: Project, args: OfOneSession) -> Session:
    """Give a session."""
    return project.store.session(args.session_id)


async def delete(project: Project, args: OfOneSession) -> bool:
    """Delete a session and its children, with everything they hold."""
    session = project.store.session(args.session_id)
    if project.runs.is_running(session.id):
        raise OperationError("SessionBusyError", f"Session {session.id} is busy. Abort its turn first.")
    project.store.append(*_deletions(project, session))
    return True


def _deletions(project: Project, session: Session) -> list[StoredEvent]:
    events: list[StoredEvent] = []
    for child in project.store.sessions(parent=session.id, limit=100_000):
        events += _deletions(project, child)
    events.append(SessionDeleted(properties=SessionInfo(session_id=session.id, info=session)))
    return events


async def messages(project: Project, args: OfOneSession) -> list[MessageWithParts]:
    """Give the messages of a session, oldest first."""
    view = project.store.conversation(args.session_id)
    return [MessageWithParts(info=entry.info, parts=list(entry.parts)) for entry in view.entries]
