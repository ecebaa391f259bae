"""A Textual app that reaches the desktop (clipboard, links, notifications), draws pictures,
and writes less.
"""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from operator import methodcaller
from typing import Any, Protocol

from rich.console import Console, RenderableType
from textual.app import App, ScreenStackError
from textual.css.query import QueryError
from textual.geometry import Offset
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import MountError
from textual.worker import WorkerFailed

from codeloop.kit.child_process import ChildProcess
from codeloop.kit.desktop_programs import make_desktop_launch
from codeloop.kit.text.terminal_text import escape_answer_controls, escape_controls, one_line
from codeloop.schema.wire import replace
from codeloop.tui.terminal.clipboard import find_copy_commands, make_copy_sequence, write_clipboard
from codeloop.tui.terminal.multiplexer import pass_through
from codeloop.tui.terminal.screen_updates import ChangedPartsUpdate, RectangleUpdate
from codeloop.tui.terminal.sequences import (
    HIDE_CURSOR,
    PLAIN_TERMINALS,
    SHOW_CURSOR,
    UNDERLINE_CURSOR,
    needs_visible_cursor,
)
from codeloop.tui.terminal.shown_screen import ShownScreen, erases_in_colour
from codeloop.tui.terminal.textual_private import (
    ChopsUpdate,
    CompositorUpdate,
    LayoutUpdate,
    resume_signal,
)

_MAX_TITLE_LENGTH, _MAX_TEXT_LENGTH = 60, 200
"""Characters of a notification's title and text."""
_MAX_WINDOW_TITLE_LENGTH = 80
_RXVT_TERMS = ("foot", "rxvt", "contour")
"""Prefixes of `TERM` of terminals that have rxvt's sequence for notifications."""


def find_opener(
    link: str, environment: Mapping[str, str], platform: str = sys.platform
) -> tuple[str, ...]:
    """Return the command that opens a link on the user's desktop;
    empty: the link is invalid, or no desktop in reach.

    Python's `webbrowser` is not used: it might run a browser in this terminal, and takes a link
    that begins with a dash for an option.
    """
    if not link.startswith(("http://", "https://", "mailto:")):
        return ()
    # On a remote machine a browser would open where nobody sees it.
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return ()
    if platform == "darwin":
        return ("open", link)
    if environment.get("WSL_DISTRO_NAME"):
        return ("wslview", link)
    return ("xdg-open", link) if _has_any(environment, "WAYLAND_DISPLAY", "DISPLAY") else ()


async def run_opener(command: tuple[str, ...]) -> bool:
    """Run a command of `find_opener`, detached from this terminal; return whether it started."""
    try:
        ChildProcess(replace(make_desktop_launch(command), is_apart=True))
    except OSError:
        return False
    return True


def make_notification(title: str, text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that shows a desktop notification; "": the terminal has none."""
    # A semicolon ends a field of these sequences.
    title = one_line(title, _MAX_TITLE_LENGTH).replace(";", ",")
    text = one_line(text, _MAX_TEXT_LENGTH).replace(";", ",")
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("KITTY_WINDOW_ID") or term == "xterm-kitty":
        sequence = f"\x1b]99;i=codeloop:d=0;{title}\x1b\\\x1b]99;i=codeloop:p=body;{text}\x1b\\"
    elif term.startswith(_RXVT_TERMS) or _has_any(
        environment, "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION"
    ):
        sequence = f"\x1b]777;notify;{title};{text}\x1b\\"
    elif _has_any(environment, "ITERM_SESSION_ID") or program in {
        "iTerm.app",
        "mintty",
        "WarpTerminal",
    }:
        sequence = f"\x1b]9;{title}: {text}\x07"
    else:
        return ""
    return pass_through(sequence, environment)


def _has_any(environment: Mapping[str, str], *names: str) -> bool:
    """Return whether one of the variables is set, and not empty."""
    return any(environment.get(name) for name in names)


class _TerminalWindow:
    """The title of the terminal's window, and its attention requests.

    `write` writes a sequence to the terminal; `bell` rings its bell.
    """

    def __init__(self, write: Callable[[str], None], bell: Callable[[], None]) -> None:
        self._write = write
        self._bell = bell
        self._title = ""
        """The title that was set last."""

    def set_title(self, title: str) -> None:
        """Set the title of the window or tab."""
        if title != self._title and os.environ.get("TERM") not in PLAIN_TERMINALS:
            self._title = title
            self._write(
                f"\x1b]2;{one_line(title, _MAX_WINDOW_TITLE_LENGTH, escape_answer_controls)}\x1b\\"
            )

    def restore_title(self) -> None:
        """Set the title again, after another program had the terminal."""
        title, self._title = self._title, ""
        self.set_title(title)

    def alert(self, title: str, text: str, *, has_bell: bool, has_notification: bool) -> None:
        """Alert a user who is looking elsewhere, with the bell and a desktop notification."""
        if has_notification:
            self._write(make_notification(title, text, os.environ))
        if has_bell:
            self._bell()


# Some terminals complain if a program takes the clipboard while they do.
CLIPBOARD_DELAY = 0.2
"""Seconds in which the terminal takes the clipboard, before programs do."""


class PicturePainter(Protocol):
    """Draws pictures above the text."""

    def mark_erased(self, update: Any) -> None:
        """Note that an update of the screen is written,
        which erases the pictures that it covers.
        """
        ...

    def draw_missing(self) -> str:
        """Return the output that draws the visible pictures which are not on the screen yet."""
        ...


_FRAME_WAIT_SECONDS = 0.01
"""Between two checks whether the terminal has taken a frame."""


class _Frame(CompositorUpdate):
    """The changes of a screen; they are taken when they are rendered."""

    def __init__(self, shown_screen: ShownScreen) -> None:
        self._shown_screen = shown_screen

    def render_segments(self, console: Console) -> str:
        """Return the terminal output of the changes."""
        del console
        return self._shown_screen.write_changes()


class TerminalApp(App[int], inherit_bindings=False):
    """Textual's app with a clipboard that works everywhere, pictures,
    and a terminal that can be lent to programs.
    """

    _frame_timer: Timer | None = None
    """Runs while a frame waits until the terminal has taken the one before."""
    _written_cursor = Offset(-1, -1)
    """Where the terminal's cursor was put last."""
    painter: PicturePainter | None = None
    """Draws pictures above the text; None: there are none, or they are drawn as text."""
    exit_sequence = ""
    """The output that is written before the UI leaves the terminal: it frees the pictures
    that the terminal holds.
    """
    _has_cursor = needs_visible_cursor(os.environ)
    """Whether the terminal's cursor is shown while a text is edited."""
    _is_cursor_shown = False
    is_suspended = False
    """Whether another program has the terminal, for which interrupts are then meant."""

    @cached_property
    def window(self) -> _TerminalWindow:
        """The terminal's window title, and attention requests."""
        return _TerminalWindow(self.write_sequence, self.bell)

    @cached_property
    def _shown_screen(self) -> ShownScreen:
        return ShownScreen(erases=erases_in_colour(os.environ))

    @contextmanager
    def suspend(self) -> Generator[None]:
        """Lend the terminal to another program while the block runs."""
        # Textual's context manager does not take the terminal back if the block raises,
        # so it never sees the error.
        suspension = super().suspend()
        suspension.__enter__()
        self.is_suspended = True
        try:
            yield
        finally:
            self.is_suspended = False
            suspension.__exit__(None, None, None)

    @property
    def is_ending(self) -> bool:
        """Whether the program is ending: widgets may be gone, and nothing more can be shown."""
        return self._exit or not self._running

    def _handle_exception(self, error: Exception) -> None:
        """End because of an error, but ignore missing widgets while the program is ending."""
        # A task or a timer may come to a widget that is gone by then.
        cause = error.error if isinstance(error, WorkerFailed) else error
        if not (self.is_ending and isinstance(cause, QueryError | ScreenStackError | MountError)):
            super()._handle_exception(error)

    async def wait_for_keys(self) -> None:
        """Wait until the keys that were held back are handled;
        here none are, subclasses may hold some back.
        """

    @property
    def is_stalled(self) -> bool:
        """Whether the terminal reads no output, so that none should be written."""
        return bool(getattr(self._driver, "is_stalled", False))

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text to the user's desktop, by the terminal and by all
        programs that can do that.
        """
        self._clipboard = text
        self.write_sequence(make_copy_sequence(text, os.environ))
        commands = find_copy_commands(os.environ)
        if commands:
            self.run_worker(write_clipboard(text, commands, CLIPBOARD_DELAY), exit_on_error=False)

    async def open_link(self, link: str) -> None:
        """Open a link on the user's desktop, or copy it if that fails."""
        command = find_opener(link, os.environ)
        if not command or not await run_opener(command):
            self.copy_to_clipboard(link)
            self.notify("No program opens links here: the link is copied.")

    def notify(
        self, message: str, *, title: str = "", markup: bool = False, **options: Any
    ) -> None:
        """Show a message for a while. Its markup is never interpreted,
        since it may hold texts of others.
        """
        del markup
        super().notify(
            escape_controls(message), title=escape_controls(title), markup=False, **options
        )

    async def on_mount(self) -> None:
        """Subscribe to the end of suspensions."""
        resume_signal(self).subscribe(self, self._redraw_everything)

    def _redraw_everything(self, _app: object) -> None:
        """Redraw everything after a suspension."""
        self.window.restore_title()
        self.redraw()

    def redraw(self) -> None:
        """Redraw everything: it is not known what the terminal shows."""
        self._shown_screen.forget()
        self.refresh(layout=True)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Write what an update of the screen changes on the terminal;
        where there are pictures, all of the update.
        """
        if isinstance(renderable, ChopsUpdate):
            renderable = ChangedPartsUpdate(
                renderable.chops, renderable.spans, renderable.chop_ends
            )
        elif isinstance(renderable, LayoutUpdate):
            renderable = RectangleUpdate(renderable.strips, renderable.region)
        if (offset := self.text_cursor) is not None:
            self.cursor_position = offset
        if self.painter is not None:
            # Rows with pictures are not moved, and an update says which pictures it erases.
            self._shown_screen.forget()
            if renderable is not None:
                self.painter.mark_erased(renderable)
        elif isinstance(renderable, ChangedPartsUpdate | RectangleUpdate) and not self.is_headless:
            self._shown_screen.resize(self.size.width, self.size.height)
            self._shown_screen.change(renderable.list_parts(), self.console)
            self._write_frame()
            return
        # Called by name, since Textual does not type the method.
        methodcaller("_display", screen, renderable)(super())

    def _write_frame(self) -> None:
        """Write what has changed, once the terminal has taken the frame before."""
        if self._frame_timer is not None or not (
            self._shown_screen.has_changes or self.cursor_position != self._written_cursor
        ):
            return
        if getattr(self._driver, "is_writing", False):
            self._frame_timer = self.set_timer(_FRAME_WAIT_SECONDS, self._write_waiting_frame)
            return
        self._written_cursor = self.cursor_position
        with suppress(ScreenStackError):
            methodcaller("_display", self.screen, _Frame(self._shown_screen))(super())

    def _write_waiting_frame(self) -> None:
        self._frame_timer = None
        self._write_frame()

    @property
    def text_cursor(self) -> Offset | None:
        """The cell of the text cursor; None: no text is being edited.

        The terminal's cursor is moved there, since input methods show their text at it.
        """
        offset: object = getattr(self.focused, "cursor_screen_offset", None)
        return offset if isinstance(offset, Offset) else None

    def _begin_update(self) -> None:
        """Hide the terminal's cursor while a frame is written, in which it would jump about."""
        super()._begin_update()
        if self._is_cursor_shown and self._driver is not None:
            self._is_cursor_shown = False
            self._driver.write(HIDE_CURSOR)

    def _end_update(self) -> None:
        """Draw pictures in the same frame as the text around them,
        and show the terminal's cursor again.
        """
        if self._driver is not None:
            if self.painter is not None and (drawings := self.painter.draw_missing()):
                self._driver.write(drawings)
            if self._has_cursor and self.text_cursor is not None:
                self._is_cursor_shown = True
                self._driver.write(UNDERLINE_CURSOR + SHOW_CURSOR)
        super()._end_update()

    def paint(self) -> None:
        """Draw the visible pictures that are not on the screen yet."""
        if self._driver is not None and self.is_running:
            self._begin_update()
            self._end_update()
            self._driver.flush()

    def write_sequence(self, sequence: str) -> None:
        """Write a control sequence to the terminal at once."""
        if self._driver is not None and sequence:
            self._driver.write(sequence)
            self._driver.flush()
