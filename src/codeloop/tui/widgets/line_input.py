"""An input of one line, for the search bar, the request panel and dialogs,
that handles keys strictly in order.
"""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input

from codeloop.tui.widgets.base_widgets import get_app


class LineInput(Input):
    """An `Input` whose editing keys act at once.

    As bubbling bindings they would run after letters typed later,
    when keys arrive in a burst (busy loop, slow connection).
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+b,alt+left", "cursor_left_word", show=False),
        Binding("alt+f,alt+right", "cursor_right_word", show=False),
        Binding("alt+d", "delete_right_word", show=False),
    ]

    async def on_key(self, event: events.Key) -> None:
        """Run the binding of a key at once, before any later key."""
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await get_app(self).run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
