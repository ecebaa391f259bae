"""Imports what the usual tools need while a model is waited for,
so that the first call waits for no import.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from codeloop.schema.installation import InstallationChanged

# Seconds until it begins: a model that answers sooner is not slowed down by it,
# and a text then needs none of this.
_DELAY = 0.2
_imported: set[str] = set()
"""The tools whose import has begun in this process."""


def import_while_waiting(tools: Collection[str]) -> asyncio.TimerHandle | None:
    """Import what the dearest of the offered tools need in a thread,
    unless the timer that is returned is cancelled.

    None: there is nothing to import.
    """
    new = [name for name in _LOADERS if name in tools and name not in _imported]
    return asyncio.get_running_loop().call_later(_DELAY, _begin, new) if new else None


def end_timer(timer: asyncio.TimerHandle | None) -> None:
    """Cancel a timer, if it is one: from here on nothing begins that has not begun."""
    if timer is not None:
        timer.cancel()


def _begin(tools: list[str]) -> None:
    _imported.update(tools)
    threading.Thread(target=_import_tools, args=(tools,), name="early-import", daemon=True).start()


def _import_tools(tools: list[str]) -> None:
    # Whoever needs a module reports why it can't be imported.
    with suppress(ImportError, InstallationChanged):
        _load_calls()
        for name in tools:
            _LOADERS[name]()


def _load_calls() -> object:
    """Import what every call needs."""
    from codeloop.agent.answer import cut_off_steps
    from codeloop.agent.calls import call_context, repeated_calls
    from codeloop.tool import truncate
    from codeloop.tool.repair import arguments, calls

    return call_context, repeated_calls, calls, arguments, truncate, cut_off_steps


def _load_bash() -> object:
    from codeloop.tool.builtin.shell.bash import bash

    _load_changes()
    # Where most lines end; the rows of rarer programs are imported by their own lines.
    from codeloop.permission import grants
    from codeloop.shell.programs import checks, files, git, shell, text
    from codeloop.workspace.git import ref_state
    from codeloop.workspace.sandbox.network import host_proxy, user_hosts

    return bash, (shell, files, text, git, checks), grants, ref_state, (host_proxy, user_hosts)


def _load_edit() -> object:
    from codeloop.agent.request import changed_files
    from codeloop.lsp import server_pool
    from codeloop.tool.builtin.files.edit import edit

    return edit, _load_changes(), changed_files, server_pool


def _load_changes() -> object:
    """Import what finds out what was changed, and whether it was checked."""
    from codeloop.agent.answer import end_facts
    from codeloop.agent.checks import turn_review, unfinished
    from codeloop.workspace.snapshot import scanner

    return scanner, turn_review, unfinished, end_facts


def _load_read() -> object:
    from codeloop.tool.builtin.files.read import read

    return read


def _load_grep() -> object:
    from codeloop.tool.builtin.search.grep import grep
    from codeloop.workspace.search import ripgrep

    return grep, ripgrep


# The tools whose first call would wait longest, the dearest first.
_LOADERS: Mapping[str, Callable[[], object]] = {
    "bash": _load_bash,
    "edit": _load_edit,
    "read": _load_read,
    "grep": _load_grep,
}
