"""The projects of one process: `App` opens them at the first request for their directory,
and closes idle ones.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from weakref import WeakSet

from codeloop.app.models.open_models import ModelSource
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.config.project_root import ProjectRoot
from codeloop.kit.text.undecodable import find_undecodable
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import OPEN_PROJECTS, PROJECT_CHECK, PROJECT_IDLE
from codeloop.schema.live_events import DirectoryRef, GlobalDisposed, InstanceDisposed
from codeloop.schema.message import Session
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.queries import open_queries
from codeloop.store.store import SharedStores


class App:
    """The projects of one process, by directory. Closing it closes them,
    with their turns and child processes.

    `startup`: the start parameters of the process; requests that name no directory are for its
    directory. `models` replaces the provider table. `idle_seconds`: the time until a project
    without requests and followers is closed.
    """

    def __init__(
        self,
        startup: Startup,
        models: ModelSource | None = None,
        *,
        idle_seconds: float = PROJECT_IDLE.seconds,
    ) -> None:
        self.startup = startup
        self.stores = SharedStores()
        self._follower_checks: list[Callable[[Path], bool]] = []
        """Each returns whether a directory's project has followers."""
        self._watched_projects: WeakSet[Project] = WeakSet()
        """Projects whose files are watched, since they have followers."""
        self._models = models
        self.idle_seconds = idle_seconds
        self._opening: dict[Path, asyncio.Task[None]] = {}
        """The tasks that open projects, by directory."""
        self._projects: dict[Path, Project] = {}
        self._roots: dict[Path, ProjectRoot] = {}
        """The root that each directory was opened with last."""
        self._last_used: dict[Project, float] = {}
        """The times of the last requests, by `time.monotonic`."""
        self._retired: set[Project] = set()
        """Projects that requests do not reach any more: each is closed when
        its turns have ended.
        """
        self._cleanup_task = asyncio.create_task(self._close_unused_periodically())

    @property
    def projects(self) -> tuple[Project, ...]:
        """The open projects, then the retired ones."""
        return (*dict.fromkeys(self._projects.values()), *self._retired)

    def resolve_directory(self, name: str | None) -> Path:
        """Return the absolute directory that a request names: relative to the process's own,
        which is also the default.

        Raises OperationError when the name can't be a path.
        """
        if name is not None and "\0" in name:
            raise OperationError("BadRequest", "The directory holds a NUL character.")
        return Path(
            find_undecodable(os.path.normpath(self.startup.directory.resolve() / (name or "")))
        )

    async def get_project(self, directory: Path) -> Project:
        """Return the project of a directory, opened if necessary.

        Raises CodeloopError: missing directory, bad configuration, unusable store.
        """
        # In a loop: a project that was just opened may be closed again before this task runs.
        while (project := self._projects.get(directory)) is None:
            if directory not in self._opening:
                self._opening[directory] = asyncio.create_task(self._open_directory(directory))
            # Other requests wait for the same opening, so one that is cancelled must not cancel it.
            await asyncio.shield(self._opening[directory])
        if project.refresh():
            await self.reload(project.settings.project_root.directory)
            return await self.get_project(directory)
        self._last_used[project] = time.monotonic()
        return project

    async def _open_directory(self, directory: Path) -> None:
        try:
            # `--trust` is for the directory that the user started in,
            # not for those that clients name.
            is_own = directory == self.startup.directory.resolve()
            startup = replace(
                self.startup, directory=directory, trust=self.startup.trust and is_own
            )
            settings: ProjectSettings = self._keep_root(
                await asyncio.to_thread(find_settings, startup)
            )
            real = settings.project_root.directory
            # Several names, by links, may lead to one directory; its project is open only once.
            if real not in self._projects:
                await self._close_least_recently_used()
            self._projects[directory] = self._projects.get(real) or await self._open_project(
                settings
            )
        finally:
            del self._opening[directory]

    def _keep_root(self, settings: ProjectSettings) -> ProjectSettings:
        """Keep a directory in its project, whose id may be another one by now,
        while its sessions are followed here.
        """
        earlier = self._roots.setdefault(settings.project_root.directory, settings.project_root)
        path = settings.paths.get_project_folder(earlier.project_id) / "codeloop.db"
        directory = str(earlier.directory)
        stores = (store for store in self.stores.list_open_stores() if store.path == path)
        if earlier != settings.project_root and any(
            store.list_sessions(directory=directory) for store in stores
        ):
            return replace(settings, project_root=earlier)
        self._roots[settings.project_root.directory] = settings.project_root
        return settings

    async def _open_project(self, settings: ProjectSettings) -> Project:
        real = settings.project_root.directory
        project = await open_project(
            settings, self._models, stores=self.stores, reload=partial(self.reload, real)
        )
        # Terminals outlive a change of the configuration: the new project takes them over.
        for old in self._retired:
            if (
                old.settings.project_root.directory == real
                and old.workspace.terminals.list_terminals()
            ):
                project.workspace.take_terminals(old.workspace.give_up_terminals())
                break
        self._projects[real] = project
        self._last_used[project] = time.monotonic()
        self.update_file_watches()
        return project

    async def find_session_project(self, session_id: str, directory: Path) -> Project:
        """Return the project of a session's own directory, whatever `directory` the request names.

        If there is no such session, or its directory is gone, return the project of `directory`. A
        directory that exists but can't be opened is an error, since the turn must not run
        elsewhere. Raises as `get_project` does.
        """
        # A turn that began before its project was retired ends there,
        # so requests about its session go there too.
        for project in self._retired:
            if project.runs.is_working_on(session_id):
                return project
        current = await self.get_project(directory)
        session = current.store.find_session(session_id) or await self._find_session_elsewhere(
            session_id
        )
        if session is None or session.directory == current.settings.project_root.directory_name:
            return current
        own_directory = find_undecodable(session.directory)
        return (
            await self.get_project(Path(own_directory)) if _is_directory(own_directory) else current
        )

    async def _find_session_elsewhere(self, session_id: str) -> Session | None:
        """Find a session in the store of another project: in the open stores, then on the disk."""
        for store in self.stores.list_open_stores():
            session = store.find_session(session_id)
            if session is not None:
                return session
        open_paths = {store.path for store in self.stores.list_open_stores()}
        closed_paths = [path for path in self._list_databases() if path not in open_paths]
        return await asyncio.to_thread(_find_stored_session, closed_paths, session_id)

    def _list_databases(self) -> list[Path]:
        projects = self.projects
        return projects[0].settings.paths.find_databases() if projects else []

    async def reload(self, directory: Path) -> None:
        """Have the next request open a directory's project again, with a newly read configuration.

        Turns that run in the present project continue to their end.
        """
        project = self._projects.get(directory)
        if project is None:
            return
        self._retire(project)
        name = project.settings.project_root.directory_name
        project.publish_live(InstanceDisposed(properties=DirectoryRef(directory=name)))
        await self._close_retired()

    async def reload_all(self) -> None:
        """Have every directory's project opened again, as `reload` does for one."""
        # One event for all directories: the streams recognise it by its id,
        # and send it to each client once.
        event = GlobalDisposed()
        for project in set(self._projects.values()):
            self._retire(project)
            project.publish_live(event)
        await self._close_retired()

    def _retire(self, project: Project) -> None:
        """Have no request reach a project any more;
        `_close_retired` closes it when its turns have ended.
        """
        self._projects = {
            path: each for path, each in self._projects.items() if each is not project
        }
        self._retired.add(project)

    async def _close_retired(self) -> None:
        """Close the retired projects in which nothing runs any more."""
        for project in list(self._retired):
            # While one is closed, another task may close the next.
            if project in self._retired and not project.is_busy:
                self._retired.discard(project)
                self._last_used.pop(project, None)
                await project.close()

    def add_follower_check(self, has_followers: Callable[[Path], bool]) -> None:
        """Keep a directory's project open, and watch its files,
        while `has_followers` returns True for it.
        """
        self._follower_checks.append(has_followers)

    def update_file_watches(self) -> None:
        """Watch the files of projects with followers. Call when followers have changed."""
        for project in self.projects:
            is_wanted = self._has_followers(project)
            if is_wanted == (project in self._watched_projects):
                continue
            project.watch_files(on=is_wanted)
            if is_wanted:
                self._watched_projects.add(project)
            else:
                self._watched_projects.discard(project)

    def _has_followers(self, project: Project) -> bool:
        return any(
            has_followers(project.settings.project_root.directory)
            for has_followers in self._follower_checks
        )

    async def close_unused_projects(self) -> None:
        """Close projects that were unused for `idle_seconds`,
        and retired ones whose turns have ended.

        One that has followers stays open for them, without its processes.
        """
        unused_since = time.monotonic() - self.idle_seconds
        for project in set(self._projects.values()):
            if self._last_used.get(project, 0) > unused_since or project.is_busy:
                continue
            if self._has_followers(project):
                await project.rest()
            else:
                self._retire(project)
        await self._close_retired()

    async def _close_unused_periodically(self) -> None:
        while True:
            await asyncio.sleep(PROJECT_CHECK.seconds)
            await self.close_unused_projects()

    async def _close_least_recently_used(self) -> None:
        """Close the least recently used project that can be closed, when there are too many."""
        while len(set(self._projects.values())) >= OPEN_PROJECTS.value:
            closable = [
                project
                for project in set(self._projects.values())
                if not project.is_busy and not self._has_followers(project)
            ]
            if not closable:
                raise OperationError(
                    "BadRequest", f"{OPEN_PROJECTS.value} directories are at work. Try again later."
                )
            self._retire(min(closable, key=lambda project: self._last_used.get(project, 0)))
            await self._close_retired()

    async def close(self) -> None:
        """Close every project."""
        self._cleanup_task.cancel()
        # A project that is opened after this would never be closed.
        for task in list(self._opening.values()):
            with suppress(CodeloopError):
                await task
        projects = set(self.projects)
        self._projects.clear()
        self._retired.clear()
        for project in projects:
            await project.close()


def _find_stored_session(paths: list[Path], session_id: str) -> Session | None:
    """Find a session in databases that are not open, skipping those that can't be read. Blocks."""
    for path in paths:
        with suppress(StoreError):
            queries = open_queries(path)
            try:
                session = queries.find_session(session_id)
            finally:
                queries.close()
            if session is not None:
                return session
    return None


def _is_directory(directory: str) -> bool:
    """Return whether a directory exists; False if it can't be read."""
    try:
        return Path(directory).is_dir()
    except OSError:
        return False
