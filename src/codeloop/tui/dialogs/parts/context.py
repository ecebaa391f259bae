"""The dependencies of dialogs, provided by the app."""

from typing import Protocol, TypeVar

from msgspec import Struct
from textual.screen import Screen

from codeloop.client.client import Client
from codeloop.tui.dialogs.parts.dialog import Colours

Result = TypeVar("Result")


class AskScreen(Protocol):
    """Shows a screen above the others and returns its result, like `App.push_screen_wait`."""

    async def __call__(self, screen: Screen[Result]) -> Result:
        """Show a screen and wait."""
        ...


class DialogContext(Struct, frozen=True):
    """`client` reaches the project, `colours` returns the styles in use, `ask` shows a further screen."""

    client: Client
    colours: Colours
    ask: AskScreen
