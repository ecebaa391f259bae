"""A Textual app that reaches the desktop (clipboard, links, notifications), draws pictures, and writes less."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from operator import methodcaller
from typing import Any, Protocol

from rich.console import RenderableType
from textual.app import App, ScreenStackError
from textual.css.query import QueryError
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import MountError
from textual.worker import WorkerFailed

from codeloop.kit.terminal_text import escape_controls
from codeloop.tui.terminal.desktop import (
    TerminalWindow,
    find_copy_programs,
    find_opener,
    make_clipboard_sequence,
    open_link,
    write_clipboard,
)
from codeloop.tui.terminal.screen_updates import Changes, ScreenPart
from codeloop.tui.terminal.sequences import HIDE_CURSOR, SHOW_CURSOR, UNDERLINE_CURSOR, needs_cursor
from codeloop.tui.terminal.textual_private import ChopsUpdate, LayoutUpdate, resume_signal

TERMINAL_FIRST = 0.2
"""Seconds that the terminal needs to take the clipboard: some complain when a program takes it meanwhile."""


class PicturePainter(Protocol):
    """Draws pictures above the text."""

    def erase(self, update: Any) -> None:
        """Note that an update of the screen is written, which erases the pictures that it covers."""
        ...

    def frame(self) -> str:
        """Return the output that draws the visible pictures that are not on the screen yet."""
        ...


class TerminalApp(App[int], inherit_bindings=False):
    """Textual's app with what it lacks: a clipboard that works everywhere, pictures, a terminal that can be lent."""

    painter: PicturePainter | None = None
    """Draws pictures above the text; None: there are none, or they are text themselves."""
    farewell = ""
    """Output to write before leaving the terminal: it frees pictures there."""
    _has_cursor = needs_cursor(os.environ)
    _is_cursor_shown = False
    is_lent = False
    """Whether another program has the terminal, which then gets typed interrupts."""

    @cached_property
    def window(self) -> TerminalWindow:
        """The terminal's window title, and attention requests."""
        return TerminalWindow(self.tell_terminal, self.bell)

    @contextmanager
    def suspend(self) -> Generator[None]:
        """Lend the terminal to another program. Unlike Textual's, it takes it back even after errors."""
        lending = super().suspend()
        lending.__enter__()
        self.is_lent = True
        try:
            yield
        finally:
            self.is_lent = False
            lending.__exit__(None, None, None)

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
        """Wait until the keys that were held back are handled; the UI's app does."""

    @property
    def is_stalled(self) -> bool:
        """Whether the terminal reads no output, so that nothing more should be written."""
        return bool(getattr(self._driver, "is_stalled", False))

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text by every way that may reach the user's desktop."""
        self._clipboard = text
        self.tell_terminal(make_clipboard_sequence(text, os.environ))
        if programs := find_copy_programs(os.environ):
            self.run_worker(write_clipboard(text, programs, TERMINAL_FIRST), exit_on_error=False)

    async def visit(self, link: str) -> None:
        """Open a link on the user's desktop, or copy it if that fails."""
        program = find_opener(link, os.environ)
        if not program or not await open_link(program):
            self.copy_to_clipboard(link)
            self.notify("No program opens links here: the link is copied.")

    def notify(self, message: str, *, title: str = "", markup: bool = False, **how: Any) -> None:
        """Show a message for a while, without interpreting markup."""
        del markup
        super().notify(escape_controls(message), title=escape_controls(title), markup=False, **how)

    async def on_mount(self) -> None:
        """Subscribe to the end of a stop or a suspension."""
        resume_signal(self).subscribe(self, self._redraw_everything)

    def _redraw_everything(self, _app: object) -> None:
        """Redraw everything on the terminal's new screen."""
        self.window.rename_again()
        self.refresh(layout=True)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Write an update of the screen in our own form, and note which pictures it erases."""
        if isinstance(renderable, ChopsUpdate):
            renderable = Changes(renderable.chops, renderable.spans, renderable.chop_ends)
        elif isinstance(renderable, LayoutUpdate):
            renderable = ScreenPart(renderable.strips, renderable.region)
        if self.painter is not None and renderable is not None:
            self.painter.erase(renderable)
        if (offset := self.text_cursor) is not None:
            self.cursor_position = offset
        methodcaller("_display", screen, renderable)(super())  # the library leaves its type open

    @property
    def text_cursor(self) -> Offset | None:
        """The cell of the text cursor; None: no text is being edited.

        The terminal's cursor is moved there, for input methods.
        """
        offset: object = getattr(self.focused, "cursor_screen_offset", None)
        return offset if isinstance(offset, Offset) else None

    def _begin_update(self) -> None:
        """Hide the terminal's cursor while a frame is written, where it would jump about."""
        super()._begin_update()
        if self._is_cursor_shown and self._driver is not None:
            self._is_cursor_shown = False
            self._driver.write(HIDE_CURSOR)

    def _end_update(self) -> None:
        """Draw pictures in the same frame as the text around them."""
        if self._driver is not None:
            if self.painter is not None and (drawings := self.painter.frame()):
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

    def tell_terminal(self, sequence: str) -> None:
        """Write a control sequence."""
        if self._driver is not None and sequence:
            self._driver.write(sequence)
            self._driver.flush()
