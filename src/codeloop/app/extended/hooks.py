"""Builds the hooks of a project: its extensions' handlers, and the rows of `hooks`."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from codeloop.agent.engine import Engine
from codeloop.agent.hooks.extension_hooks import ExtensionHooks
from codeloop.app.settings import ProjectSettings
from codeloop.extend.hooks.compose import HookNeeds, command_hooks, hooks_of
from codeloop.extend.hooks.hooks import Handler
from codeloop.store.store import Store
from codeloop.workspace.workspace import Workspace

T = TypeVar("T")
PROGRAMS = "programs"
"""Our folder with those of the user's hooks and extensions."""


class HookedProject(Protocol):
    """The part of `app.project.Project` that hooks need."""

    @property
    def settings(self) -> ProjectSettings:
        """What it was opened with."""
        ...

    @property
    def engine(self) -> Engine:
        """What its turns run on."""
        ...

    def warn(self, message: str) -> None:
        """Show a warning."""
        ...

    def shared(self, make: Callable[[Any], T]) -> T:
        """Return the one object that `make` makes for it."""
        ...


def hooks_for(project: HookedProject, store: Store, workspace: Workspace) -> ExtensionHooks:
    """Make the hooks of a project whose engine is about to be made."""
    return ExtensionHooks(hooks_of(project.settings.config, _needs(project, store, workspace)))


def rows_of(project: HookedProject) -> tuple[Handler, ...]:
    """Return the rows of `hooks`, each as a handler."""
    return command_hooks(project.settings.config, _needs(project, project.engine.store, project.engine.workspace))


def _needs(project: HookedProject, store: Store, workspace: Workspace) -> HookNeeds:
    async def judge(*asked: Any) -> Any:
        made: Callable[..., Awaitable[Any]] = project.shared(_judge)
        return await made(*asked)

    settings = project.settings
    own = settings.paths.data / PROGRAMS / "hooks"
    return HookNeeds(workspace, project.warn, store, settings.home, judge, own, settings.trusted)


def _judge(project: HookedProject) -> Any:
    from codeloop.agent.hooks.judge import HookJudge

    return HookJudge(lambda: project.engine, project.warn)
