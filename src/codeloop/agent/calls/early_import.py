"""Imports what commands and edits need while a model is waited for, so that the first call waits for no import."""

import asyncio
import sys
import threading
from collections.abc import Collection
from contextlib import suppress

from codeloop.kit.lazy import import_module

# Seconds until it begins: a model that answers sooner is not slowed down by it, and a text then needs none of this.
_DELAY = 0.2
_MODULES_BY_TOOL = {"bash": "tool.builtin.shell.bash", "edit": "tool.builtin.files.edit"}


def import_while_waiting(tools: Collection[str]) -> asyncio.TimerHandle | None:
    """Import the dearest of the offered tools in a thread, unless the timer that is returned is cancelled before.

    None: there is nothing to import.
    """
    modules = [
        module for tool, module in _MODULES_BY_TOOL.items() if tool in tools and f"codeloop.{module}" not in sys.modules
    ]
    if not modules:
        return None
    thread = threading.Thread(target=_import_modules, args=(modules,), name="early-import", daemon=True)
    return asyncio.get_running_loop().call_later(_DELAY, thread.start)


def _import_modules(modules: Collection[str]) -> None:
    # Whoever needs the module reports why it can't be imported.
    with suppress(ImportError):
        for module in modules:
            import_module(module)


def end_timer(timer: asyncio.TimerHandle | None) -> None:
    """Cancel a timer, if it is one: from here on nothing begins that has not begun."""
    if timer is not None:
        timer.cancel()
