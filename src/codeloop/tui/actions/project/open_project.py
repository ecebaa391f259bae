"""Opens the project while the first screen is already shown, keeps it open, and closes it when the user quits."""

import os
from collections.abc import Callable

from codeloop.client.target import Target
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import Event
from codeloop.tui.actions.send import send_prompt
from codeloop.tui.settings.ui_launch import AskTrust
from codeloop.tui.state.open_sessions import OpenSessions
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry


async def run_project(ui: Ui, ask_trust: AskTrust, on_event: Callable[[Event], object]) -> None:
    """Open the project of the UI, and keep it open until the user quits. An error ends the program.

    `on_event` is called with every event of the project.
    """
    try:
        async with ui.launch.open_project(ask_trust) as target:
            sessions = OpenSessions(target, on_event, ui.choices.report_connection)
            await sessions.start()
            try:
                await _start_session_and_wait(ui, target, sessions)
            finally:
                await sessions.stop()
    except CodeloopError as error:
        ui.exit(1, return_code=1, message=str(error))


async def _start_session_and_wait(ui: Ui, target: Target, sessions: OpenSessions) -> None:
    """Show the chosen session, send the first prompt, and wait until the user quits."""
    session = await ui.launch.choose_session(target)
    ui.sessions = sessions
    await ui.choices.connect(target)
    for note in target.notes:
        # Notes are worded for the command line, where the name of the program comes first.
        ui.say(note.removeprefix("codeloop: "), "warning")
    if session is not None:
        await ui.open_tab(session)
    # What was sent before goes to this session.
    ui.opened_event.set()
    ui.draw()
    if ui.launch.prompt:
        ui.start_task(send_prompt(ui, ui.tab, PromptEntry(ui.launch.prompt), "queue"))
    else:
        ui.start_task(_welcome(ui))
    if os.environ.get("TMUX"):
        # Imported late, here and below: most starts need none of it.
        from codeloop.tui.actions.project.first_run import check_tmux

        ui.start_task(check_tmux(ui))
    await ui.quit_event.wait()


async def _welcome(ui: Ui) -> None:
    """Help a new user to a model and the main keys."""
    if ui.choices.resolve_model(ui.tab) is None:
        from codeloop.tui.actions.project.first_run import offer_provider

        await offer_provider(ui)
    elif server := ui.choices.find_local_server(ui.tab):
        from codeloop.tui.actions.project.first_run import announce_server

        announce_server(ui, server)
    if ui.tab.session is None:
        from codeloop.tui.actions.project.first_run import offer_tour

        await offer_tour(ui)
