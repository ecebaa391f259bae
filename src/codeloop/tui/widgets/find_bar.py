"""The search bar of the conversation: an input, and the matches that
`tui/actions/conversation/find.py` counts.
"""

from collections.abc import Callable
from typing import Protocol

from rich.cells import cell_len
from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.strip import Strip
from textual.widgets import Input

from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import CachedWidget, get_app
from codeloop.tui.widgets.line_input import LineInput

MATCH_STEPS_BY_KEY = {
    "enter": -1,
    "up": -1,
    "ctrl+p": -1,
    "shift+enter": 1,
    "alt+enter": 1,
    "down": 1,
    "ctrl+n": 1,
}
"""The keys that show another match, and in which direction: -1 above, 1 below."""
KEY_HINTS = "enter above · down below · tab stay · esc back"
_HINTS_MIN_WIDTH = 80
"""Cells of the screen from which the keys are shown."""


class FindActions(Protocol):
    """The callbacks of the bar; a protocol, since the module of the search imports this one."""

    def search(self, text: str) -> None:
        """Find a text, and show a match."""
        ...

    def step(self, by: int) -> None:
        """Show the next match above (-1) or below (1)."""
        ...

    def close(self, *, keeps_position: bool) -> None:
        """Close the bar; unless `keeps_position`, scroll back to where the search began."""
        ...


class FindInput(LineInput):
    """The bar's input; keys that step through matches go to the bar."""

    DEFAULT_CSS = """
    FindInput { height: 1; width: 1fr; border: none; padding: 0; background: $background-panel; }
    FindInput:focus { border: none; background-tint: $background-panel 0%; }
    """

    async def on_key(self, event: events.Key) -> None:
        """Offer keys to the bar first."""
        # Stopped here: in the app the same keys have other meanings, such as Tab,
        # which switches the agent.
        if isinstance(self.parent, FindBar) and self.parent.press(event.key):
            event.stop()
            event.prevent_default()


class FindLabel(CachedWidget):
    """A text beside the input: the bar's title, or the number of matches."""

    DEFAULT_CSS = """
    FindLabel { height: 1; width: auto; background: $background-panel; }
    """

    def __init__(self, get_styles: Callable[[], Styles]) -> None:
        super().__init__()
        self._get_styles = get_styles
        self._text = ""

    def show(self, text: str) -> None:
        """Show a text."""
        self._text = text
        self.styles.width = cell_len(text)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        del y
        style = self._get_styles().of("text_muted", on="background_panel")
        return Strip([Segment(self._text, style)]).adjust_cell_length(self.size.width, style)


class FindBar(Horizontal):
    """The title, the input and the number of matches; hidden while nothing is searched for."""

    DEFAULT_CSS = """
    FindBar { height: 1; width: 1fr; display: none; background: $background-panel; }
    """

    def __init__(self, get_styles: Callable[[], Styles]) -> None:
        super().__init__()
        self._title, self._status = FindLabel(get_styles), FindLabel(get_styles)
        self._actions: FindActions | None = None

    def compose(self) -> ComposeResult:
        """Yield the title, the input, and the number of matches."""
        yield self._title
        yield FindInput(placeholder="Text to find", select_on_focus=False)
        yield self._status

    def open(self, actions: FindActions, text: str) -> None:
        """Start a search with `text`."""
        self._actions = actions
        self.display = True
        self._title.show("  Find ")
        line = self.query_one(FindInput)
        line.value, line.cursor_position = text, len(text)
        line.focus()
        self.show_status("")

    def close(self) -> None:
        """End the search."""
        self._actions = None
        self.display = False

    def show_status(self, text: str) -> None:
        """Show the state of the search, such as the number of matches;
        if there is room, also the keys.
        """
        has_room = get_app(self).size.width >= _HINTS_MIN_WIDTH
        self._status.show(f" {text}  {KEY_HINTS} " if has_room else f" {text} ")

    def press(self, key: str) -> bool:
        """Handle a key; return whether it has a meaning here."""
        actions = self._actions
        if actions is None:
            return False
        if key in MATCH_STEPS_BY_KEY:
            actions.step(MATCH_STEPS_BY_KEY[key])
        elif key in {"escape", "ctrl+c"}:
            actions.close(keeps_position=False)
        elif key == "tab":
            actions.close(keeps_position=True)
        else:
            return False
        return True

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        if self._actions is not None:
            self._actions.search(event.value)
