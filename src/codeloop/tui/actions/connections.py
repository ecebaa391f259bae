"""Commands that set up what the program connects to: providers of models, and MCP servers."""

from codeloop.tui.actions.show_dialog import make_context, show_dialog
from codeloop.tui.actions.sidebar import refresh_sidebar
from codeloop.tui.dialogs.mcp import McpPicker
from codeloop.tui.dialogs.providers.provider_picker import ProviderPicker
from codeloop.tui.ui import Ui

PROVIDER_QUESTION = "Where do your models come from?"


async def connect_provider(ui: Ui, _words: str) -> None:
    """Set up a provider of models, and take one of them for the next prompts."""
    model = await show_dialog(ui, ProviderPicker(make_context(ui)))
    await ui.choices.reload()
    if model is not None:
        ui.choices.use_model(ui.tab, model)
    ui.draw()


async def choose_provider(ui: Ui) -> bool:
    """Ask for a provider because no model is usable yet; return whether one is usable now.

    Text that was typed into the dialog's filter, but meant for the prompt, is moved there.
    """
    picker = ProviderPicker(make_context(ui), PROVIDER_QUESTION)
    model = await show_dialog(ui, picker)
    await ui.choices.reload()
    if model is not None:
        ui.choices.use_model(ui.tab, model)
    elif picker.filter_text and not picker.is_used:
        ui.tab.prompt.insert(picker.filter_text)
    ui.draw()
    return ui.choices.resolve_model(ui.tab) is not None


async def show_servers(ui: Ui, _words: str) -> None:
    """Show the MCP servers; connect them, and sign in."""
    await show_dialog(ui, McpPicker(make_context(ui)))
    await refresh_sidebar(ui)
