"""Makes the hooks of a project: the rows of `hooks` in its configuration;
its extensions add their handlers later.
"""

from functools import cache
from typing import TYPE_CHECKING

from codeloop.agent.hooks.extension_hooks import ExtensionHooks
from codeloop.app.services import OpenProject
from codeloop.extend.hooks.hooks import HookHandler, Hooks
from codeloop.schema.config import HookConfig
from codeloop.schema.wire import JSON
from codeloop.store.store import Store
from codeloop.workspace.workspace import Workspace

if TYPE_CHECKING:
    from codeloop.agent.hooks.hook_judge import HookJudge

PROGRAMS_FOLDER = "programs"
"""The folder, below codeloop's data, in which sandboxed hooks and extensions may write."""


def make_hooks(project: OpenProject, store: Store, workspace: Workspace) -> ExtensionHooks:
    """Make the hooks of a project. Its engine, which needs them,
    is made afterwards: handlers find it when they run.
    """
    config = project.settings.config
    handlers = _make_handlers(project, store, workspace) if config.hooks else ()
    project.services.extensions.configured_handlers = handlers
    seconds = config.hook_timeout / 1000 if config.hook_timeout is not None else None
    return ExtensionHooks(Hooks(handlers, project.warn, seconds))


def _make_handlers(
    project: OpenProject, store: Store, workspace: Workspace
) -> tuple[HookHandler, ...]:
    """Return a handler for each row of `hooks`. The modules for that are imported
    only if there are rows.
    """
    from codeloop.extend.hooks.configured.configured_hook import ConfiguredHook
    from codeloop.extend.hooks.configured.run_hook import HookScope, HookVerdict
    from codeloop.extend.hooks.configured.transcript import Transcripts

    settings, services = project.settings, project.services

    @cache
    def make_judge() -> "HookJudge":
        from codeloop.agent.hooks.hook_judge import HookJudge

        return HookJudge(lambda: project.engine, project.warn)

    async def judge(
        row: HookConfig, session_id: str, model: JSON | None, prompt: str, /
    ) -> HookVerdict:
        return await make_judge()(row, session_id, model, prompt)

    def map_server_tools() -> dict[str, tuple[str, str]]:
        table = services.mcp
        server_tools = table.name_tools(table.listings) if table is not None else {}
        return {name: (each.server, each.listed.name) for name, each in server_tools.items()}

    scope = HookScope(
        workspace=workspace,
        own_folder=settings.paths.data / PROGRAMS_FOLDER / "hooks",
        is_trusted=settings.trusted,
        tell=project.warn,
        map_server_tools=map_server_tools,
        transcripts=Transcripts(store, settings.home, workspace.directory),
        judge=judge,
    )
    return tuple(ConfiguredHook(row, scope) for row in settings.config.hooks)
