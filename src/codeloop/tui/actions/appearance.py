"""Commands that change how the conversation is shown: the theme and its mode, thinking,
and details of calls.
"""

from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.themes import ThemePicker
from codeloop.tui.ui import Ui


async def choose_theme(ui: Ui, words: str) -> None:
    """Choose a theme, which is shown while the cursor is on it, or take the named one."""

    def show(name: str) -> None:
        ui.appearance.use_theme(name)
        ui.restyle()

    if words:
        show(words)
        theme: str | None = words
    else:
        appearance = ui.appearance
        theme = await show_dialog(
            ui,
            ThemePicker(
                appearance.list_themes(), appearance.theme_name, show, lambda: appearance.styles
            ),
        )
    if theme:
        ui.choices.save("theme", theme)


async def switch_colour_mode(ui: Ui, _words: str) -> None:
    """Show the theme's light colours instead of the dark ones, or the dark ones again."""
    ui.appearance.switch_mode()
    ui.restyle()


async def toggle_thinking(ui: Ui, _words: str) -> None:
    """Show or hide the model's thinking."""
    ui.appearance.thinking = not ui.appearance.thinking
    ui.restyle()
    ui.notify(f"Thinking is {_name_state(ui.appearance.thinking)}.", timeout=2)


async def toggle_details(ui: Ui, _words: str) -> None:
    """Show or hide the outputs of calls."""
    ui.appearance.details = not ui.appearance.details
    ui.restyle()
    ui.notify(f"Details of calls are {_name_state(ui.appearance.details)}.", timeout=2)


def _name_state(is_on: bool) -> str:
    return "shown" if is_on else "hidden"


async def toggle_lowest_call(ui: Ui, _words: str) -> None:
    """Show all of the lowest call, thinking or summary on the screen,
    or only a part of it again.
    """
    if not ui.tab.transcript.toggle_first(reversed(range(ui.tab.transcript.size.height))):
        ui.notify("No tool call on the screen can be opened.")


async def toggle_everything(ui: Ui, _words: str) -> None:
    """Show all of every call, thinking, summary and long prompt, or only a part of each again."""
    view = ui.tab.view
    if view is None:
        ui.notify("There is nothing to open yet.")
        return
    is_open = view.toggle_all()
    ui.tab.sync()
    ui.notify("Everything is open." if is_open else "Long outputs are folded.", timeout=2)
