"""Imports what commands and edits need while a model is waited for,
so that the first call waits for no import.
"""

import asyncio
import threading
from collections.abc import Collection
from contextlib import suppress

from codeloop.schema.installation import InstallationChanged

# Seconds until it begins: a model that answers sooner is not slowed down by it,
# and a text then needs none of this.
_DELAY = 0.2
_TOOLS = frozenset({"bash", "edit"})
"""The tools whose imports take longest."""
_imported: set[str] = set()
"""The tools whose import has begun in this process."""


def import_while_waiting(tools: Collection[str]) -> asyncio.TimerHandle | None:
    """Import what the dearest of the offered tools need in a thread,
    unless the timer that is returned is cancelled.

    None: there is nothing to import.
    """
    new = _TOOLS.intersection(tools) - _imported
    return asyncio.get_running_loop().call_later(_DELAY, _begin, new) if new else None


def end_timer(timer: asyncio.TimerHandle | None) -> None:
    """Cancel a timer, if it is one: from here on nothing begins that has not begun."""
    if timer is not None:
        timer.cancel()


def _begin(tools: frozenset[str]) -> None:
    _imported.update(tools)
    threading.Thread(target=_import_tools, args=(tools,), name="early-import", daemon=True).start()


def _import_tools(tools: frozenset[str]) -> None:
    # Whoever needs a module reports why it can't be imported.
    with suppress(ImportError, InstallationChanged):
        if "bash" in tools:
            _load_bash()
        if "edit" in tools:
            _load_edit()


def _load_bash() -> object:
    from codeloop.tool.builtin.shell.bash import bash

    return bash


def _load_edit() -> object:
    from codeloop.tool.builtin.files.edit import edit

    return edit
