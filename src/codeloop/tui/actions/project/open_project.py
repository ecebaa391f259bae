"""Opens the project while the first screen is already shown, keeps it open,
and closes it when the user quits.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from codeloop.client.target import Target
from codeloop.kit.small_files import create_private_folder, write_atomically
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import Event
from codeloop.schema.wire import replace
from codeloop.tui.actions.connections import choose_provider
from codeloop.tui.actions.send import send_prompt
from codeloop.tui.settings.ui_launch import AskTrust
from codeloop.tui.state.open_sessions import OpenSessions
from codeloop.tui.terminal.multiplexer import query_tmux
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
    ui.launch.ask = partial(_ask_user, ui)
    session = await ui.launch.choose_session(target)
    ui.sessions = sessions
    await ui.choices.connect(target)
    for note in target.notes:
        # Notes are worded for the command line, where the name of the program comes first.
        ui.say(note.removeprefix("codeloop: "), "warning")
    if session is not None:
        await ui.open_tab(session)
        # What the command line names takes precedence over what the session had.
        ui.tab.agent, ui.tab.model = ui.launch.agent, ui.launch.model
    if ui.launch.variant and (model := ui.choices.resolve_model(ui.tab)) is not None:
        ui.tab.model = replace(model, variant=ui.launch.variant)
    # What was sent before goes to this session.
    ui.opened_event.set()
    ui.draw()
    if ui.launch.prompt:
        ui.start_task(send_prompt(ui, ui.tab, PromptEntry(ui.launch.prompt), "queue"))
    else:
        ui.start_task(_welcome(ui))
    if os.environ.get("TMUX"):
        # Imported late, here and below: most starts need none of it.

        ui.start_task(_check_tmux(ui))
    await ui.quit_event.wait()


async def _ask_user(ui: Ui, question: str) -> bool:
    """Ask the user a question of the start, and return whether the answer is yes."""
    # Imported late: most starts ask nothing.
    from codeloop.tui.actions.show_dialog import show_dialog
    from codeloop.tui.dialogs.parts.confirm import Confirm

    confirm = Confirm(
        "Sessions of a folder that is gone", question, "yes", lambda: ui.appearance.styles
    )
    return bool(await show_dialog(ui, confirm))


async def _welcome(ui: Ui) -> None:
    """Help a new user to a model and the main keys."""
    if ui.choices.resolve_model(ui.tab) is None:
        await _offer_provider(ui)
    elif server := ui.choices.find_local_server(ui.tab):
        _announce_server(ui, server)
    if ui.tab.session is None:
        await _offer_tour(ui)
    _offer_import(ui)


_TMUX_HINT = """tmux passes shift+enter on as enter: it would send a prompt instead of beginning a new line.
Add this line to ~/.tmux.conf, and start tmux anew:  set -s extended-keys on
Until then alt+enter and ctrl+j begin a new line. This notice is shown once."""
_LOCAL_SERVER_NOTE = (
    "{server} answers on this machine, so {model} is used. /models chooses "
    "another one, /connect another service."
)
_NO_MODEL_NOTE = (
    "No model can be used yet. /connect sets one up; a prompt that you send before asks for it."
)


async def _offer_provider(ui: Ui) -> None:
    """Ask for a provider at a start without a usable model;
    a user who is typing gets a notice instead.
    """
    # A dialog now would take the keys of a user who is typing.
    if ui.tab.prompt.entry.text or len(ui.screen_stack) > 1:
        ui.say(_NO_MODEL_NOTE, "warning")
    else:
        await choose_provider(ui)


def _announce_server(ui: Ui, server: str) -> None:
    """Say once that a local model server is used because nothing else was chosen."""
    model = ui.choices.resolve_model(ui.tab)
    if model is not None and _record_first_time(ui.launch.state_folder / "local-server"):
        ui.say(_LOCAL_SERVER_NOTE.format(server=server, model=one_line(model.model_id, 60)))


def _offer_import(ui: Ui) -> None:
    """Say once that what the user has in other agents can be taken over."""
    marker = ui.launch.state_folder / "other-agents"
    if marker.exists():
        return
    agents = ui.launch.find_other_agents()
    if agents and _record_first_time(marker):
        *others, last = agents.values()
        names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        lines = [
            f"{names} in use here, too. What you have there can be taken over; nothing is yet:"
        ]
        lines += [f"  codeloop import --from {agent}" for agent in agents]
        ui.say("\n".join([*lines, "shows it first, and asks. This notice is shown once."]))


async def _offer_tour(ui: Ui) -> None:
    """Show the tour to a user who has not seen it yet."""
    if _record_first_time(ui.launch.state_folder / "tour"):
        await show_tour(ui, "")


async def _check_tmux(ui: Ui) -> None:
    """Warn a user once that tmux does not distinguish Shift+Enter from Enter."""
    marker = ui.launch.state_folder / "tmux-keys"
    if (
        not marker.exists()
        and (await query_tmux("#{extended-keys}")).strip() == "off"
        and _record_first_time(marker)
    ):
        ui.say(_TMUX_HINT)


def _record_first_time(marker: Path) -> bool:
    """Record in a marker file that a notice is shown now;
    return whether this user has not seen it before.
    """
    if marker.exists():
        return False
    # Where nothing can be stored, it is shown each time.
    with suppress(OSError):
        create_private_folder(marker.parent)
        write_atomically(marker, b"shown\n")
    return True


async def show_tour(ui: Ui, _words: str) -> None:
    """Show five keys to begin with, until something is sent or escape is pressed."""
    key_text, stop_key = ui.keymap.format_key, ui.keymap.format_key("session_interrupt")
    hints = [
        (
            key_text("command_list"),
            f"every command, with its keys; {key_text('help') or '/help'} is the help",
        ),
        ("@  /  !", "mention a file · run a command · run a shell command"),
        (key_text("agent_cycle"), "next agent: plan only reads and thinks, build changes files"),
        (f"{stop_key} twice" if stop_key else "", "stop the turn"),
        (key_text("messages_undo") or "/undo", "undo the last turn, with what it did to files"),
    ]
    width = max(len(keys) for keys, _ in hints)
    lines = [f"{keys:{width}}  {meaning}" for keys, meaning in hints if keys]
    end = f"{stop_key} hides this; /tour shows it again" if stop_key else "/tour shows it again"
    ui.say("\n".join(["Five keys to begin with", *lines, end]))
