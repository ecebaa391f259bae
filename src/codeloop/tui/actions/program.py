"""Commands of the program itself: the palette and the help, which list all commands;
suspending and quitting.
"""

import time

from codeloop.schema.jobs import count_running_jobs
from codeloop.schema.wire import replace
from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.palette import PaletteRow, create_help, create_palette
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.keys.prompt_bindings import PROMPT_BINDINGS
from codeloop.tui.ui import Ui

ALL_KEYS_MIN_WIDTH = 60
"""Cells of the screen from which all keys of a command are listed, not only the first."""
QUIT_QUESTION = "Press again to leave and stop the turn"
JOBS_QUESTION = "Press again to leave and end what runs in the background ({count})"
STOP_GRACE_SECONDS = 1.0
"""Seconds after the end of a turn in which the key that quits may still
be meant to stop the turn.
"""


def _list_commands(ui: Ui) -> list[PaletteRow]:
    """Return the commands as the palette lists them."""
    return [
        PaletteRow(row.id, row.title, row.group, ui.keymap.format_key(row.id), row.slash)
        for row in ui.commands
    ]


async def show_palette(ui: Ui, _words: str) -> None:
    """Choose a command and run it."""
    command_id = await show_dialog(
        ui, create_palette(_list_commands(ui), lambda: ui.appearance.styles)
    )
    if command_id:
        ui.run_command(next(row for row in ui.commands if row.id == command_id))


async def show_help(ui: Ui, _words: str) -> None:
    """Show all commands with their keys, and the keys of the prompt."""
    prompt_keymap = Keymap(
        {row.id: row.keys for row in PROMPT_BINDINGS}, ui.choices.settings.keybinds
    )
    commands = {row.id: row for row in ui.commands}

    def format_keys(command_id: str) -> str:
        names = (ui.keymap if command_id in commands else prompt_keymap).format_keys(command_id)
        return ", ".join(names if ui.size.width >= ALL_KEYS_MIN_WIDTH else names[:1])

    rows = [replace(row, keys=format_keys(row.id)) for row in _list_commands(ui)]
    rows += [
        PaletteRow(row.id, row.description, "In the prompt", format_keys(row.id))
        for row in PROMPT_BINDINGS
        if row.id not in commands
    ]
    command_id = await show_dialog(ui, create_help(rows, lambda: ui.appearance.styles))
    if command_id in commands:
        ui.run_command(commands[command_id])
    elif command_id:
        ui.tab.prompt.run(command_id)


async def suspend_program(ui: Ui, _words: str) -> None:
    """Suspend the program (Ctrl+Z)."""
    ui.action_suspend_process()


async def quit_program(ui: Ui, key: str) -> None:
    """Quit the program; the key must be pressed again while a turn runs, or has only just ended.

    `key`: the name of the pressed key if it must always be pressed twice, as ctrl+c must; else "".
    """
    views = [tab.view for tab in ui.tabs if tab.view is not None]
    # Turns on a server go on without this program.
    if any(view.is_busy for view in views) and not ui.launch.server:
        question = QUIT_QUESTION
    elif (
        count := count_running_jobs((tab.session for tab in ui.tabs), on_server=False)
    ) and not ui.launch.server:
        question = JOBS_QUESTION.format(count=count)
    elif any(
        not view.is_busy and time.monotonic() - view.status_changed_at < STOP_GRACE_SECONDS
        for view in views
    ):
        # The press was perhaps meant to stop the turn, which ended just before.
        question = "The turn is over: again to leave"
    else:
        question = f"Press {key} again to exit" if key else ""
    if not question or ui.repeated_key.confirm(question, QUIT_QUESTION):
        ui.exit(0)
