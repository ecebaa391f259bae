"""The first start: choose and try a provider, then show a tour of five keys."""

from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import make_private, write_atomically
from codeloop.kit.terminal_text import one_line
from codeloop.tui.actions.dialogs import ask, make_context
from codeloop.tui.dialogs.providers.picker import ProviderPicker
from codeloop.tui.terminal.multiplexer import ask_tmux
from codeloop.tui.ui import Ui

TMUX = """tmux passes shift+enter on as enter: it would send a prompt instead of beginning a new line.
Add this line to ~/.tmux.conf, and start tmux anew:  set -s extended-keys on
Until then alt+enter and ctrl+j begin a new line. This is said once."""
TITLE = "Where do your models come from?"
FOUND = "{server} answers on this machine, so {model} is used. /models chooses another one, /connect another service."
LATER = "No model can be used yet. /connect sets one up; a prompt that you send before asks for it."


async def begin(ui: Ui) -> None:
    """Ask for a provider at the first start, without interrupting a user who is typing."""
    if ui.tab.prompt.entry.text or len(ui.screen_stack) > 1:
        ui.say(LATER, "warning")
    else:
        await connect(ui)


def name_server(ui: Ui, server: str) -> None:
    """Notify once that a local model server is used because nothing else was chosen."""
    model = ui.choices.answering(ui.tab)
    if model is not None and _is_first(ui.launch.state_folder / "local-server"):
        ui.say(FOUND.format(server=server, model=one_line(model.model_id, 60)))


async def connect(ui: Ui) -> bool:
    """Show the provider dialog; return whether a model is usable now. Text meant for the prompt goes there."""
    picker = ProviderPicker(make_context(ui), TITLE)
    model = await ask(ui, picker)
    await ui.choices.look()
    if model is not None:
        ui.choices.take(ui.tab, model)
    elif picker.typed and not picker.is_used:
        ui.tab.prompt.insert(picker.typed)
    ui.draw()
    return ui.choices.answering(ui.tab) is not None


async def offer_tour(ui: Ui) -> None:
    """Show the tour to a user who has not seen it yet."""
    if _is_first(ui.launch.state_folder / "tour"):
        await show_tour(ui, "")


async def check_tmux(ui: Ui) -> None:
    """Warn once per machine that tmux does not distinguish Shift+Enter from Enter."""
    seen = ui.launch.state_folder / "tmux-keys"
    if not seen.exists() and (await ask_tmux("#{extended-keys}")).strip() == "off" and _is_first(seen):
        ui.say(TMUX)


def _is_first(seen: Path) -> bool:
    """Return whether a notice is new, and remember that it was shown."""
    if seen.exists():
        return False
    with suppress(OSError):  # where nothing can be stored, it is shown each time
        make_private(seen.parent)
        write_atomically(seen, b"shown\n")
    return True


async def show_tour(ui: Ui, _words: str) -> None:
    """Show five keys to begin with, until something is sent or escape is pressed."""
    key_text = ui.keys.key_of
    rows = [
        (key_text("command_list"), f"every command, with its keys; {key_text('help') or '/help'} is the help"),
        ("@  /  !", "mention a file · run a command · run a shell command"),
        (key_text("agent_cycle"), "next agent: plan only reads and thinks, build changes files"),
        (f"{key_text('session_interrupt')} twice", "stop the turn"),
        (key_text("messages_undo"), "undo the last turn, with what it did to files"),
    ]
    width = max(len(keys) for keys, _ in rows)
    lines = [f"{keys:{width}}  {what}" for keys, what in rows if keys]
    end = f"{key_text('session_interrupt') or 'esc'} hides this; /tour shows it again"
    ui.say("\n".join(["Five keys to begin with", *lines, end]))
