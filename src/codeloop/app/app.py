"""The projects of one process, by directory: opened at first use, closed when idle."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from weakref import WeakSet

from codeloop.app.models.open_models import Source
from codeloop.app.project import Project, open_project
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import OPEN_PROJECTS, PROJECT_CHECK, PROJECT_IDLE
from codeloop.schema.live_events import DirectoryRef, GlobalDisposed, InstanceDisposed
from codeloop.schema.message import Session
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.queries import open_queries
from codeloop.store.shared_stores import SharedStores


class App:
    """The projects of one process. Close it: that closes them, with their turns and child processes.

    `startup`: what the process was started with; its directory is meant where a request names none. `models` replaces
    the provider table. `idle`: seconds after which a project that nobody asks for or follows is closed.
    """

    def __init__(self, startup: Startup, models: Source | None = None, *, idle: float = PROJECT_IDLE.seconds) -> None:
        self.startup = startup
        self.stores = SharedStores()
        self._watchers: list[Callable[[Path], bool]] = []
        self._watched_projects: WeakSet[Project] = WeakSet()
        self._models = models
        self.idle = idle
        self._opening: dict[Path, asyncio.Task[None]] = {}
        self._projects: dict[Path, Project] = {}
        self._used: dict[Project, float] = {}
        self._finishing: set[Project] = set()
        """Projects that were reopened while turns ran in them: each closes when its turns have ended."""
        self._tidying = asyncio.create_task(self._keep_tidy())

    @property
    def projects(self) -> tuple[Project, ...]:
        """The open projects, those that only finish their turns last."""
        return (*dict.fromkeys(self._projects.values()), *self._finishing)

    def directory(self, name: str | None) -> Path:
        """Return the absolute directory that a request names: relative to the process's own, which is also the default.

        Raises OperationError when the name can't be a path.
        """
        if name is not None and "\0" in name:
            raise OperationError("BadRequest", "The directory holds a NUL character.")
        return Path(os.path.normpath(self.startup.directory.resolve() / (name or "")))

    async def project(self, directory: Path) -> Project:
        """Return the project of a directory. Raises CodeloopError: missing directory, bad configuration, store."""
        while (project := self._projects.get(directory)) is None:  # one just opened may be closed before we have it
            if directory not in self._opening:
                self._opening[directory] = asyncio.create_task(self._open(directory))
            await asyncio.shield(self._opening[directory])
        if project.refresh():
            await self.renew(project.settings.project_root.directory)
            return await self.project(directory)
        self._used[project] = time.monotonic()
        return project

    async def _open(self, directory: Path) -> None:
        try:
            is_own = directory == self.startup.directory.resolve()  # what clients name is not trusted along with it
            startup = replace(self.startup, directory=directory, trust=self.startup.trust and is_own)
            settings: ProjectSettings = await asyncio.to_thread(find_settings, startup)
            real = settings.project_root.directory
            if real not in self._projects:
                await self._make_room()
            self._projects[directory] = self._projects.get(real) or await self._open_project(settings)
        finally:
            del self._opening[directory]

    async def _open_project(self, settings: ProjectSettings) -> Project:
        real = settings.project_root.directory
        project = await open_project(settings, self._models, stores=self.stores, renew=partial(self.renew, real))
        for old in self._finishing:
            if old.settings.project_root.directory == real and old.workspace.terminals.all():
                project.workspace.take_terminals(old.workspace.give_up_terminals())
                break
        self._projects[real] = project
        self._used[project] = time.monotonic()
        self.look_at_followers()
        return project

    async def project_of(self, session_id: str, directory: Path) -> Project:
        """Return the project that works on a session: that of the session's own directory, wherever it was asked for.

        Without such a session, or when its directory is gone, the project of `directory`: a directory that is there but
        can't be opened is an error, since the turn must not run elsewhere. Raises as `project` does.
        """
        for project in self._finishing:
            if project.runs.works_on(session_id):
                return project
        current = await self.project(directory)
        session = current.store.find_session(session_id) or await self._find_elsewhere(session_id)
        if session is None or session.directory == str(current.settings.project_root.directory):
            return current
        return await self.project(Path(session.directory)) if _is_there(session.directory) else current

    async def _find_elsewhere(self, session_id: str) -> Session | None:
        """Find a session that another project holds: in the open stores, then on the disk."""
        for store in self.stores.list_open_stores():
            session = store.find_session(session_id)
            if session is not None:
                return session
        open_ones = {store.path for store in self.stores.list_open_stores()}
        folder = self._list_databases()
        return await asyncio.to_thread(_find_session, [path for path in folder if path not in open_ones], session_id)

    def _list_databases(self) -> list[Path]:
        for project in self.projects:
            return sorted(project.settings.paths.get_project_folder("x").parent.glob("*/codeloop.db"))
        return []

    async def renew(self, directory: Path) -> None:
        """Read a directory's configuration again at the next request; turns that run there continue to their end."""
        project = self._projects.get(directory)
        if project is None:
            return
        self._retire(project)
        name = str(project.settings.project_root.directory)
        project.publish_live(InstanceDisposed(properties=DirectoryRef(directory=name)))
        await self._close_idle(self._finishing)

    async def renew_all(self) -> None:
        """As `renew`, for every directory."""
        event = GlobalDisposed()
        for project in set(self._projects.values()):
            self._retire(project)
            project.publish_live(event)
        await self._close_idle(self._finishing)

    def _retire(self, project: Project) -> None:
        self._projects = {path: each for path, each in self._projects.items() if each is not project}
        self._finishing.add(project)

    async def _close_idle(self, projects: set[Project]) -> None:
        for project in list(projects):
            if project in projects and not project.is_busy:  # others close some of them meanwhile
                projects.discard(project)
                self._used.pop(project, None)
                await project.close()

    def keep_open_while(self, is_watched: Callable[[Path], bool]) -> None:
        """Keep a directory's project open as long as `is_watched` says that somebody follows its events."""
        self._watchers.append(is_watched)

    def look_at_followers(self) -> None:
        """Watch the files of projects with followers. Call when followers have changed."""
        for project in self.projects:
            is_wanted = self._is_watched(project)
            if is_wanted != (project in self._watched_projects):
                project.watch(on=is_wanted)
                (self._watched_projects.add if is_wanted else self._watched_projects.discard)(project)

    def _is_watched(self, project: Project) -> bool:
        return any(is_watched(project.settings.project_root.directory) for is_watched in self._watchers)

    async def tidy(self) -> None:
        """Close projects unused for a while, and replaced ones that have finished their turns."""
        oldest = time.monotonic() - self.idle
        for project in {project for project in self._projects.values() if self._used.get(project, 0) <= oldest}:
            if not project.is_busy and not self._is_watched(project):
                self._retire(project)
        await self._close_idle(self._finishing)

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(PROJECT_CHECK.seconds)
            await self.tidy()

    async def _make_room(self) -> None:
        """Close the least recently used project that can be closed, when there are too many."""
        while len(set(self._projects.values())) >= OPEN_PROJECTS.value:
            free = [
                project
                for project in set(self._projects.values())
                if not project.is_busy and not self._is_watched(project)
            ]
            if not free:
                raise OperationError("BadRequest", f"{OPEN_PROJECTS.value} directories are at work. Try again later.")
            self._retire(min(free, key=lambda project: self._used.get(project, 0)))
            await self._close_idle(self._finishing)

    async def close(self) -> None:
        """Close every project."""
        self._tidying.cancel()
        for task in list(self._opening.values()):
            with suppress(CodeloopError):
                await task
        projects = set(self.projects)
        self._projects.clear()
        self._finishing.clear()
        for project in projects:
            await project.close()


def _find_session(paths: list[Path], session_id: str) -> Session | None:
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


def _is_there(directory: str) -> bool:
    """Return whether a directory exists; one that can't be looked at does not."""
    try:
        return Path(directory).is_dir()
    except OSError:
        return False
