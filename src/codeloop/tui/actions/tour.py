"""Five keys to begin with: shown once, below the first prompt, until something is sent or escape is pressed."""

from contextlib import suppress

from codeloop.kit.small_files import make_private, write_atomically
from codeloop.tui.ui import Ui


async def once(ui: Ui) -> None:
    """Show them to who has not seen them yet."""
    seen = ui.launch.state_folder / "tour"
    if not seen.exists():
        with suppress(OSError):  # where nothing can be kept, they are shown each time
            make_private(seen.parent)
            write_atomically(seen, b"shown\n")
        await show(ui, "")


async def show(ui: Ui, _words: str) -> None:
    """Show them."""
    shown = ui.keys.shown
    rows = [
        (shown("command_list"), f"every command, with its keys; {shown('help') or '/help'} is the help"),
        ("@  /  !", "mention a file · run a command · run a shell command"),
        (shown("agent_cycle"), "next agent: plan only reads and thinks, build changes files"),
        (f"{shown('session_interrupt')} twice", "stop the turn"),
        (shown("messages_undo"), "undo the last turn, with what it did to files"),
    ]
    width = max(len(keys) for keys, _ in rows)
    lines = [f"{keys:{width}}  {what}" for keys, what in rows if keys]
    end = f"{shown('session_interrupt') or 'esc'} hides this; /tour shows it again"
    ui.say("\n".join(["Five keys to begin with", *lines, end]))
