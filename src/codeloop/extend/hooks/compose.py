"""What extensions of a project are asked by, put together from its configuration."""

from collections.abc import Callable, Iterable, Mapping

from codeloop.extend.hooks.hooks import Handler, Hooks
from codeloop.kit.lazy import load
from codeloop.schema.config import Config
from codeloop.workspace.workspace import Workspace


def hooks_of(config: Config, workspace: Workspace, tell: Callable[[str], None], more: Iterable[Handler] = ()) -> Hooks:
    """Return the commands of `hooks`, then `more` handlers, as one list to be asked."""
    seconds = config.hook_timeout / 1000 if config.hook_timeout is not None else None
    return Hooks((*command_hooks(config, workspace, tell), *more), tell, seconds)


def command_hooks(config: Config, workspace: Workspace, tell: Callable[[str], None]) -> tuple[Handler, ...]:
    """Return the commands of `hooks`, each as a handler."""
    if not config.hooks:
        return ()
    scope = load("extend.hooks.commands.command_hook:HookScope")(workspace, tell, lambda: _servers(workspace))
    command: Callable[..., Handler] = load("extend.hooks.commands.command_hook:CommandHook")
    return tuple(command(row, scope) for row in config.hooks)


def _servers(workspace: Workspace) -> Mapping[str, tuple[str, str]]:
    """Return MCP servers and their tools by the names that models call them by."""
    table = workspace.made("McpTable")
    return (
        {name: (each.server, each.listed.name) for name, each in table.tools(table.listings).items()} if table else {}
    )
