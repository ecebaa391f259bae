"""`UiCommand`: a command of the terminal UI; the table of them is `tui/commands.py`."""

from msgspec import Struct


class UiCommand(Struct, frozen=True):
    """A command of the UI. `id`: its name in `keybinds`; `keys`: its default keys;
    `slash`: its name after `/`.

    `run`: `module:function` below `codeloop.tui`, loaded at the first call; the function is called
    with the app and the words typed after the name. `arguments`: the usage of those words, "" if it
    takes none. `aliases`: other names after `/`. `precedes_widget`: its keys are handled before the
    focused widget gets them.
    """

    id: str
    title: str
    group: str
    run: str
    keys: str = "none"
    slash: str = ""
    arguments: str = ""
    aliases: tuple[str, ...] = ()
    precedes_widget: bool = False
