"""Builds the hooks of a project from its configuration."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.extend.hooks.hooks import Handler, Hooks
from codeloop.schema.config import Config
from codeloop.store.store import Store
from codeloop.workspace.workspace import Workspace


class HookNeeds(Struct, frozen=True):
    """What the rows of `hooks` need of their project. `home`: its own folder; `judge`: a `commands.asking.AskJudge`.

    `own`: the folder of the user's commands.

    The rows' modules are imported only if there are rows.
    """

    workspace: Workspace
    tell: Callable[[str], None]
    store: Store
    home: Path
    judge: Any
    own: Path
    is_trusted: bool


def hooks_of(config: Config, needs: HookNeeds) -> Hooks:
    """Return the rows of `hooks` as one list to be asked."""
    seconds = config.hook_timeout / 1000 if config.hook_timeout is not None else None
    return Hooks(command_hooks(config, needs), needs.tell, seconds)


def command_hooks(config: Config, needs: HookNeeds) -> tuple[Handler, ...]:
    """Return the rows of `hooks`, each as a handler."""
    if not config.hooks:
        return ()
    from codeloop.extend.hooks.commands.asking import HookScope
    from codeloop.extend.hooks.commands.command_hook import CommandHook
    from codeloop.extend.hooks.commands.transcript import Transcripts

    workspace = needs.workspace
    transcripts = Transcripts(needs.store, needs.home, workspace.directory)
    scope = HookScope(
        workspace, needs.own, needs.is_trusted, needs.tell, lambda: _servers(workspace), transcripts, needs.judge
    )
    return tuple(CommandHook(row, scope) for row in config.hooks)


def _servers(workspace: Workspace) -> Mapping[str, tuple[str, str]]:
    """Return MCP servers and their tools by the names that models call them by."""
    table = workspace.made("McpTable")
    return (
        {name: (each.server, each.listed.name) for name, each in table.tools(table.listings).items()} if table else {}
    )
