"""Starts the terminal UI, connects it with the process's signals, and ends it;
`cli/terminal_ui.py` calls it.
"""

import asyncio
import gc
import os
import signal
import sys
from contextlib import suppress

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.tui.app import TerminalUI
from codeloop.tui.choices import Choices
from codeloop.tui.commands import COMMANDS, COMMANDS_BY_SLASH
from codeloop.tui.keys.keybind_problems import find_keybind_problems
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.settings.appearance import Appearance
from codeloop.tui.settings.ui_launch import UiLaunch
from codeloop.tui.settings.ui_settings import read_settings
from codeloop.tui.terminal.terminal_colours import TerminalColours, read_colours
from codeloop.tui.terminal.terminal_driver import TerminalDriver
from codeloop.tui.terminal.textual_private import set_colour_system
from codeloop.tui.widgets.prompt.completion.completer import PromptCommand


def run_terminal_ui(launch: UiLaunch) -> int:
    """Show the UI until the user leaves; return the exit code."""
    return asyncio.run(_run_ui(launch))


def create_ui(launch: UiLaunch, terminal: TerminalColours | None = None) -> TerminalUI:
    """Create the UI with the user's settings, for a terminal with these
    colours (None: the default).
    """
    if terminal is not None:
        # Textual knows no system without colours: there the colourless theme leaves them out.
        set_colour_system("standard" if terminal.depth == "none" else terminal.depth)
    sources = read_settings(launch.settings_files)
    settings = sources.settings
    defaults = {command.id: command.keys for command in COMMANDS}
    keymap = Keymap(defaults, settings.keybinds, settings.leader_timeout / 1000)
    appearance = Appearance(settings, launch.theme_folders, terminal)
    # An option of the command line precedes the settings.
    if launch.thinking is not None:
        appearance.thinking = launch.thinking
    appearance.child_key = keymap.format_key("session_child_first")
    appearance.open_key = keymap.format_key("calls_toggle")
    commands = [
        PromptCommand(name, row.arguments, row.title, aliases=row.aliases)
        for name, row in COMMANDS_BY_SLASH.items()
    ]
    ui = TerminalUI(launch, appearance, keymap, Choices(launch, settings, commands))
    ui.problems = [
        *sources.problems,
        *keymap.problems,
        *find_keybind_problems(settings.keybinds),
        *filter(None, [appearance.problem]),
    ]
    return ui


async def _run_ui(launch: UiLaunch) -> int:
    ui = create_ui(launch, read_colours(os.environ))
    ui.driver_class = TerminalDriver
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A signal that the parent process has set to be ignored, as `nohup` does, stays ignored.
        if signal.getsignal(signal_number) is not signal.SIG_IGN:
            loop.add_signal_handler(
                signal_number, ui.interrupt if signal_number == signal.SIGINT else ui.quit
            )
    collection_task = asyncio.create_task(_enable_garbage_collection(ui))
    try:
        await ui.run_async(mouse=ui.choices.settings.mouse)
    finally:
        collection_task.cancel()
        await ui.wait_for_close()
    session = ui.shown_tab.session if ui.shown_tab is not None else None
    if session is not None and launch.command and not ui.is_stalled:
        # The terminal may be closed, and writing to it fail.
        with suppress(OSError):
            sys.stdout.write(escape_controls(f"Resume with: {launch.command} {session.id}") + "\n")
            sys.stdout.flush()
    # Raised only now that the terminal is restored, so that the report stays on the screen.
    if ui.failure is not None:
        raise ui.failure
    return ui.return_code or 0


async def _enable_garbage_collection(ui: TerminalUI) -> None:
    """Enable garbage collection once the project is open;
    `cli/terminal_ui.py` has disabled it for the start.
    """
    await ui.opened_event.wait()
    # Objects of the start live as long as the program: scanning them again and
    # again would only delay keys.
    gc.freeze()
    gc.enable()
