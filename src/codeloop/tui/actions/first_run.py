"""The way to a first model: a provider is chosen, tried, and answers from then on."""

from codeloop.tui.actions.dialogs import ask, context_of
from codeloop.tui.dialogs.providers.picker import ProviderPicker
from codeloop.tui.ui import Ui

TITLE = "Where do your models come from?"
LATER = "No model can be used yet. /connect sets one up; a prompt that you send before asks for it."


async def begin(ui: Ui) -> None:
    """Ask for a provider of models at the first start; who is already writing is not interrupted."""
    if ui.tab.prompt.entry.text or len(ui.screen_stack) > 1:
        ui.say(LATER, "warning")
    else:
        await connect(ui)


async def connect(ui: Ui) -> bool:
    """Let a provider be chosen; return whether a model can be used now. Words for the prompt go there."""
    picker = ProviderPicker(context_of(ui), TITLE)
    chosen = await ask(ui, picker)
    await ui.choices.look()
    if chosen is not None:
        ui.choices.take(ui.tab, chosen)
    elif picker.typed and not picker.is_used:
        ui.tab.prompt.insert(picker.typed)
    ui.draw()
    return ui.choices.answering(ui.tab) is not None
