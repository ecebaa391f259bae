"""`Dialog`: the base of all dialogs, a box above the conversation;
`DialogContext`: what the app provides to them.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

from msgspec import Struct
from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen
from textual.theme import Theme

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.tui.keys.key_order import MAX_HOLD_SECONDS
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import get_app

Result = TypeVar("Result")
GetStyles = Callable[[], Styles]
"""A function that returns the styles of the current theme."""

BOX_CSS = """
    align: center top;
    background: $background 60%;
    #dialog-box { height: auto; max-width: 100%; background: $background-panel; padding: 1 2; margin-top: 2; }
    #dialog-box Input { height: 1; border: none; padding: 0; background: $background-element; margin-bottom: 1; }
    #dialog-box Input:focus { border: none; background-tint: transparent; }
    &.-small #dialog-box { margin-top: 0; padding: 0 1; }
    &.-small #dialog-box Input { margin-bottom: 0; }
"""
SMALL_SCREEN_ROWS = 20
"""Rows below which a screen is small: the box then has no margin,
so that more of the list is shown.
"""


class Dialog(ModalScreen[Result]):
    """A screen above the others. Escape closes it."""

    DEFAULT_CSS = f"Dialog {{ {BOX_CSS} &.-opaque {{ background: $background; }} }}"

    def __init__(self, get_styles: GetStyles) -> None:
        super().__init__()
        self.get_styles = get_styles
        self.is_over = False
        """Whether the dialog is closing: messages that arrive later are dropped,
        since its children may be gone.
        """
        self._acts_since: float | None = None
        """When an action that may open another dialog started (monotonic seconds)."""

    @property
    def takes_keys(self) -> bool:
        """Whether typed keys are for this dialog: it is mounted, not closing,
        and not about to open another dialog.
        """
        is_acting = (
            self._acts_since is not None and time.monotonic() - self._acts_since < MAX_HOLD_SECONDS
        )
        return self.is_mounted and not self.is_over and not is_acting

    def perform(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run an action that may open another dialog;
        keys typed meanwhile are held back for that one.

        A CodeloopError of it is shown, its start if it is long: of a text that fills the screen,
        the end alone is seen.
        """

        async def run_work() -> None:
            try:
                await work()
            except CodeloopError as error:
                self.notify(one_line(str(error), 400), severity="error", timeout=15, markup=False)
            finally:
                self._acts_since = None

        self._acts_since = time.monotonic()
        self.run_worker(run_work, exclusive=True, group="act")

    def on_mount(self) -> None:
        """Follow the theme."""
        self._fit_background()
        cast("Any", self).app.theme_changed_signal.subscribe(self, self._follow_theme)

    def on_unmount(self) -> None:
        """Unsubscribe from theme changes, which would keep the dialog in memory."""
        cast("Any", self).app.theme_changed_signal.unsubscribe(self)

    def _follow_theme(self, _theme: Theme) -> None:
        if not self.is_over:
            self._fit_background()
            self.draw()

    def _fit_background(self) -> None:
        """Dim the conversation behind the box, or cover it.

        It is covered if another dialog is there, or if the theme has the terminal's own colours,
        which are unknown and so can't be dimmed.
        """
        # The main screen and this dialog are two.
        is_above_another = len(get_app(self).screen_stack) > 2
        self.set_class(
            is_above_another or not self.get_styles().theme.background.startswith("#"), "-opaque"
        )

    def draw(self) -> None:
        """Redraw the dialog; called after a change of the size or the theme.
        Subclasses override it.
        """

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the box into the screen."""
        if not self.is_over:
            self.set_class(self.is_small, "-small")
            self.draw()

    @property
    def is_small(self) -> bool:
        """Whether the screen has little room."""
        return self.size.height < SMALL_SCREEN_ROWS

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close the dialog, and cancel its workers.
        If it is closed twice, the first result counts.
        """
        if self.is_over:
            return AwaitComplete()
        self.is_over = True
        # A worker that ends later would draw into widgets that are gone.
        workers: Any = self.workers
        workers.cancel_node(self)
        return super().dismiss(result)

    def compute_box_width(self, max_width: int) -> int:
        """Return the width of the box, in cells: at most `max_width`,
        with a margin on wide screens.
        """
        return min(self.size.width - (6 if self.size.width > 60 else 0), max_width)


class AskScreen(Protocol):
    """Shows a screen above the others and returns its result, like `App.push_screen_wait`."""

    async def __call__(self, screen: Screen[Result]) -> Result:
        """Show a screen and wait."""
        ...


class DialogContext(Struct, frozen=True):
    """What the app provides to dialogs: `client` reaches the project,
    `ask` shows another dialog above the first.
    """

    client: Client
    get_styles: GetStyles
    ask: AskScreen
