"""Handler that lists the sessions of all projects on this machine."""

import asyncio
from contextlib import closing, suppress

from msgspec.structs import asdict

from codeloop.app.handlers.project.project import list_projects
from codeloop.app.project import Project
from codeloop.schema.api.server_operations import GlobalSession, ListGlobalSessions, SessionProject
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import ProjectInfo
from codeloop.store.database import StoreError
from codeloop.store.queries import NO_LIMIT, SessionFilter, open_queries


async def list_sessions_of_all_projects(
    project: Project, args: ListGlobalSessions
) -> list[GlobalSession]:
    """Return the sessions of every project with their projects, newest change first."""
    projects = {each.id: each for each in await list_projects(project, NoArguments())}
    session_filter = SessionFilter(
        only_roots=args.roots, changed_since=args.start, search=args.search, limit=NO_LIMIT
    )

    def read_sessions() -> list[Session]:
        sessions: list[Session] = []
        for path in project.settings.paths.find_databases():
            with suppress(StoreError), closing(open_queries(path)) as queries:
                sessions += queries.find_sessions(session_filter)
        return sorted(sessions, key=lambda each: -each.time.updated)

    def is_requested(session: Session) -> bool:
        # The cursor is the time of the last session of the page before.
        is_earlier = args.cursor is None or session.time.updated < args.cursor
        return is_earlier and (args.archived or session.time.archived is None)

    sessions = [each for each in await asyncio.to_thread(read_sessions) if is_requested(each)][
        : args.limit
    ]
    return [
        GlobalSession(**asdict(each), project=_describe_project(projects.get(each.project_id)))
        for each in sessions
    ]


def _describe_project(info: ProjectInfo | None) -> SessionProject | None:
    return (
        None if info is None else SessionProject(id=info.id, worktree=info.worktree, name=info.name)
    )
