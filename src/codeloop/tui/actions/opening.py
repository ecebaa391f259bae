"""The project behind the screen: opened while the first screen is shown, closed when the person leaves."""

import os
from collections.abc import Callable

from codeloop.client.target import Target
from codeloop.kit.lazy import load
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import Event
from codeloop.tui.actions.sending import send
from codeloop.tui.prompt.entry import PromptEntry
from codeloop.tui.settings.launch import AskTrust
from codeloop.tui.state.open_sessions import OpenSessions
from codeloop.tui.ui import Ui


async def open_target(ui: Ui, ask_trust: AskTrust, changed: Callable[[Event], object]) -> None:
    """Open what the UI was started with, and keep it until the person leaves. An error ends the program.

    `changed`: called when sessions have changed.
    """
    try:
        async with ui.launch.opened(ask_trust) as target:
            sessions = OpenSessions(target, changed, ui.choices.heard)
            await sessions.start()
            try:
                await _serve(ui, target, sessions)
            finally:
                await sessions.stop()
    except CodeloopError as error:
        ui.exit(1, return_code=1, message=str(error))


async def _serve(ui: Ui, target: Target, sessions: OpenSessions) -> None:
    """Show the session that was chosen, send the first prompt, and wait until the person leaves."""
    found = await ui.launch.chosen(target)
    ui.sessions = sessions
    await ui.choices.connect(target)
    ui.is_open.set()
    for note in target.notes:
        ui.say(note.removeprefix("codeloop: "), "warning")
    if found is not None:
        await ui.open_tab(found)
    ui.draw()
    if ui.launch.prompt:
        ui.aside(send(ui, ui.tab, PromptEntry(ui.launch.prompt), "queue"))
    else:
        ui.aside(_welcome(ui))
    if os.environ.get("TMUX"):
        ui.aside(load("tui.actions.first_run:check_tmux")(ui))
    await ui.is_leaving.wait()


async def _welcome(ui: Ui) -> None:
    """Help who is here for the first time to a model, and to the keys that matter."""
    if ui.choices.needs_setup(ui.tab):
        await load("tui.actions.first_run:begin")(ui)
    if ui.tab.session is None:
        await load("tui.actions.first_run:offer_tour")(ui)
