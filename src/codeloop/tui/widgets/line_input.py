"""A line that takes keys in the order in which they are typed."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input

from codeloop.tui.widgets.base import app_of


class LineInput(Input):
    """An `Input` whose editing keys act at once.

    Left to bubble, as bindings are, they come after the letters that were typed behind them when keys come in a burst:
    from a busy loop, or over a slow line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+b,alt+left", "cursor_left_word", show=False),
        Binding("alt+f,alt+right", "cursor_right_word", show=False),
        Binding("alt+d", "delete_right_word", show=False),
    ]

    async def on_key(self, event: events.Key) -> None:
        """Do what a key is bound to here, before any later key is looked at."""
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await app_of(self).run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
