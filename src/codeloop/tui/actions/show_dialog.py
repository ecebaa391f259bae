"""Shows a dialog and waits for its result, which is how commands use dialogs."""

import asyncio
import time
from typing import Any, TypeVar

from textual.screen import Screen

from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.ui import Ui

T = TypeVar("T")


async def show_dialog(ui: Ui, screen: Screen[T]) -> T | None:
    """Show a dialog and return its result, or None; then the prompt gets the focus back."""
    future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
    ui.push_screen(screen, future.set_result)
    result = await future
    ui.tab.take_focus()
    # The command may open another dialog now. Keys wait for a dialog that is about to open,
    # counted from this time.
    if (task := asyncio.current_task()) is not None and ui.tasks.get(task) is not None:
        ui.tasks[task] = time.monotonic()
    return result


def make_context(ui: Ui) -> DialogContext:
    """Make the context that dialogs need. Raises UsageProblem while the project
    is still being opened.
    """

    async def ask_screen(screen: Screen[Any]) -> Any:
        return await show_dialog(ui, screen)

    return DialogContext(ui.client, lambda: ui.appearance.styles, ask_screen)
