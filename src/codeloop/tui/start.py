"""Starts the terminal UI and gives the terminal back."""

import asyncio
import sys

from codeloop.kit.terminal_text import inert
from codeloop.tui.app import TerminalUI
from codeloop.tui.choices import Choices
from codeloop.tui.commands import BY_SLASH, COMMANDS
from codeloop.tui.prompt.completion import PromptCommand
from codeloop.tui.settings.keys import Keymap
from codeloop.tui.settings.launch import UiLaunch
from codeloop.tui.settings.look import Appearance
from codeloop.tui.settings.settings import read_settings


def run_terminal_ui(launch: UiLaunch) -> int:
    """Show the UI until the person leaves; return the exit code."""
    return asyncio.run(_run(launch))


def made(launch: UiLaunch) -> TerminalUI:
    """Return the UI as the person has set it up."""
    sources = read_settings(launch.settings_files)
    settings = sources.settings
    defaults = {command.id: command.keys for command in COMMANDS}
    keys = Keymap(defaults, settings.keybinds, settings.leader_timeout / 1000)
    appearance = Appearance(settings, launch.theme_folders)
    own = [PromptCommand(name, row.arguments, row.title) for name, row in BY_SLASH.items()]
    ui = TerminalUI(launch, appearance, keys, Choices(launch, settings, own))
    ui.problems = [*sources.problems, *keys.problems, *filter(None, [appearance.problem])]
    return ui


async def _run(launch: UiLaunch) -> int:
    ui = made(launch)
    try:
        await ui.run_async(mouse=ui.choices.settings.mouse)
    finally:
        await ui.closed()
    session = ui.shown.session if ui.shown is not None else None
    if session is not None:
        sys.stdout.write(inert(f"Resume with: {launch.command} {session.id}") + "\n")
    return ui.return_code or 0
