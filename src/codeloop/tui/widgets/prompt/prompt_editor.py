"""The text field of the prompt: draws the visible rows,
and passes keys and the mouse to the buffer of `tui/editor`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal
from unicodedata import category

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.geometry import Offset, Size
from textual.strip import Strip

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.chips import adopt_chips, expand_chips, find_chips, is_chip
from codeloop.tui.editor.edit_actions import EDIT_ACTIONS
from codeloop.tui.editor.line_layout import LineLayout
from codeloop.tui.editor.vim.vim import Vim
from codeloop.tui.editor.words import find_word_span
from codeloop.tui.keys.key_names import normalise_key
from codeloop.tui.terminal.textual_private import request_layout
from codeloop.tui.widgets.base_widgets import CachedWidget, find_faint_style, get_app
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt
from codeloop.tui.widgets.prompt.prompt_entry import Mode

_ClickUnit = Literal["character", "word", "line"]
"""How much a click selects."""


class _MouseTextWidget(CachedWidget):
    """Calls `move_cursor_to` for clicks and drags, `scroll_rows` for the wheel;
    subclasses define both.
    """

    # Textual's own selection would be drawn over the editor's.
    ALLOW_SELECT = False

    def move_cursor_to(self, at: Offset, *, select: bool, unit: _ClickUnit = "character") -> None:
        """Move the cursor to a cell; `select`: extend the selection to it.

        `unit`: select the word or line there.
        """
        raise NotImplementedError

    def scroll_rows(self, step: int) -> bool:
        """Scroll; return whether there is more than is shown."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Move the cursor to the pointer."""
        if event.button == 1:
            self.move_cursor_to(event.get_content_offset_capture(self), select=event.shift)
            # Captured, so that a selection can be dragged beyond the edges of the editor.
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select while the button is held."""
        if get_app(self).mouse_captured is self:
            self.move_cursor_to(event.get_content_offset_capture(self), select=True)

    def on_mouse_up(self) -> None:
        """End a selection."""
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Select a word with a double click, the line with a triple click, and so on by turns."""
        if event.chain > 1 and event.button == 1:
            unit = "line" if event.chain % 2 else "word"
            self.move_cursor_to(event.get_content_offset_capture(self), select=True, unit=unit)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up, or let the parent scroll."""
        if self.scroll_rows(-1):
            event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down, or let the parent scroll."""
        if self.scroll_rows(1):
            event.stop()


_CURSOR_STYLE = Style(reverse=True)
SHELL_HINT = "A shell command; esc leaves"


class PromptEditor(_MouseTextWidget, can_focus=True):
    """Edits `buffer`.

    `actions_by_key`: the ids of actions; the first one that has an effect is used.
    `run_other_action` runs an action that is not an edit, and returns whether it had an effect.
    `on_change` is called after each change of the text or the cursor.
    """

    status = ""
    """A text at the end of the first row, such as that the history is searched."""
    COMPONENT_CLASSES = {"editor--selection", "editor--chip", "editor--placeholder"}
    DEFAULT_CSS = """
    PromptEditor {
        height: auto;
        width: 1fr;
        padding: 0 1;
        background: $panel;
        border-left: outer $primary;
        &.-shell { border-left: double $warning; }
        & > .editor--selection {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
        & > .editor--chip { color: $accent; text-style: bold; }
        & > .editor--placeholder { color: $text-muted; }
    }
    """

    def __init__(
        self,
        actions_by_key: Mapping[str, tuple[str, ...]],
        run_other_action: Callable[[str], bool],
        on_change: Callable[[], None],
    ) -> None:
        super().__init__()
        self.buffer = Buffer()
        self.text_layout = LineLayout(lambda: self.buffer.chips)
        self.mode: Mode = "prompt"
        self.placeholder = ""
        self.vim: Vim | None = None
        self.insert_paste: Callable[[str], None] = self.buffer.insert
        """Handles a pasted text; the prompt replaces it."""
        self.actions_by_key = actions_by_key
        self._run_other_action = run_other_action
        self._on_change = on_change
        self._first_row = 0
        """The row at the top of the widget; above it, rows are scrolled away."""
        self._width = 0
        self._visible_rows = 0
        """The height of the widget at its last layout."""

    def on_key(self, event: events.Key) -> None:
        """Handle a key, or let it bubble to the parent if it has no effect here."""
        if self.press(normalise_key(event.key), get_typed_character(event)):
            event.stop()
            event.prevent_default()

    def press(self, key: str, character: str | None) -> bool:
        """Handle a key; return whether it had an effect.
        `character`: the one that it types, if any.
        """
        if self.vim is not None and self.vim.press(key, character):
            self.update()
            return True
        for action in self.actions_by_key.get(key, ()):
            if self.run_key_action(action):
                return True
        if character is None:
            return False
        if character == "!" and self.buffer.cursor == 0 and self.mode == "prompt":
            self.switch_mode("shell")
            return True
        # In an empty prompt, as in many terminal programs, ? is help.
        if (
            character == "?"
            and not self.buffer.text
            and self.mode == "prompt"
            and self._run_other_action("help")
        ):
            return True
        self.buffer.type_text(character)
        self.update()
        return True

    def run_key_action(self, action: str) -> bool:
        """Run an action by its id; return whether it had an effect."""
        if (edit := EDIT_ACTIONS.get(action)) is None:
            return self._run_other_action(action)
        # In an empty prompt their keys have other meanings: Ctrl+D leaves the program,
        # Ctrl+F searches.
        if action in {"input_delete", "input_move_right"} and not self.buffer.text:
            return False
        edit(self.buffer, self.text_layout)
        self.update()
        return True

    def update(self) -> None:
        """Redraw after a change of the buffer, and call `on_change`."""
        self._lay_out()
        self._on_change()

    @property
    def is_writing(self) -> bool:
        """Whether typed letters are inserted: always, except in vi's modes other than insert."""
        return self.vim is None or self.vim.mode == "insert"

    @property
    def selection(self) -> tuple[int, int]:
        """The start and end of the selected text; equal when nothing is."""
        return self.buffer.selection if self.vim is None else self.vim.find_selection()

    @property
    def stored_prompt(self) -> StoredPrompt:
        """The content in its stored form."""
        text = self.buffer.text
        return StoredPrompt(
            text, self.mode, find_chips(self.buffer.chips, text), cursor=self.buffer.cursor
        )

    def load(self, prompt: StoredPrompt) -> None:
        """Replace the content; undo restores the text."""
        text = adopt_chips(self.buffer.chips, prompt.text, prompt.chips)
        self.buffer.replace(0, len(self.buffer.text), text)
        if prompt.cursor is not None:
            self.buffer.move(prompt.cursor)
        self.switch_mode(prompt.mode)

    def switch_mode(self, mode: Mode) -> None:
        """Switch between prompts and shell lines."""
        self.mode = mode
        self.set_class(mode == "shell", "-shell")
        self.update()

    def _lay_out(self) -> None:
        # Not laid out yet; `get_content_height` tells the width.
        if not self._width:
            return
        self.text_layout.update(self.buffer.text, self._width)
        height = self._fit_height()
        row, _ = self.text_layout.locate(self.buffer.cursor)
        self._first_row = max(
            min(self._first_row, row, self.text_layout.row_count - height), row - height + 1, 0
        )
        # Only another height needs a layout of the whole screen.
        if height != self._visible_rows:
            self._visible_rows = height
            request_layout(self)
        else:
            self.refresh()

    @property
    def cursor_screen_offset(self) -> Offset:
        """The cursor's cell on the screen."""
        row, column = self.text_layout.locate(self.buffer.cursor)
        return self.content_region.offset + Offset(column, row - self._first_row)

    def _fit_height(self) -> int:
        return max(1, min(self.text_layout.row_count, self.screen.size.height // 3))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return as many rows as the text has, up to a third of the screen."""
        del container, viewport
        if width != self._width:
            self._width = width
            self.text_layout.update(self.buffer.text, width)
        self._visible_rows = self._fit_height()
        return self._visible_rows

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._lay_out()

    @on(events.Focus)
    @on(events.Blur)
    def _redraw_cursor(self) -> None:
        """Show the cursor, or hide it."""
        self._lay_out()

    def on_paste(self, event: events.Paste) -> None:
        """Handle a paste."""
        event.stop()
        self.insert_paste(event.text)

    def move_cursor_to(self, at: Offset, *, select: bool, unit: _ClickUnit = "character") -> None:
        """Move the cursor to a cell, or select what is there."""
        buffer, offset = self.buffer, self.text_layout.find_offset(self._first_row + at.y, at.x)
        if unit != "character":
            if unit == "line":
                start, offset = buffer.find_line_start(offset), buffer.find_line_end(offset)
            else:
                start, offset = find_word_span(buffer.text, offset)
            buffer.move(start)
        buffer.move(offset, select=select)
        self.update()

    def scroll_rows(self, step: int) -> bool:
        """Scroll the text; return whether there is more of it than is shown."""
        if self.text_layout.row_count <= self._visible_rows:
            return False
        self._first_row = max(
            0, min(self._first_row + step, self.text_layout.row_count - self._visible_rows)
        )
        self.refresh()
        return True

    def render_line(self, y: int) -> Strip:
        """Draw a row; at the end of the first, the mode."""
        base, cells = self.rich_style, self.content_size.width
        row = self._first_row + y
        faint = find_faint_style(self, "editor--placeholder", base)
        mode = "" if y else _format_mode(self)
        if not self.buffer.text:
            hint = SHELL_HINT if self.mode == "shell" else self.placeholder
            is_first = y == 0
            hint_segments = _draw_hint(
                hint if is_first else "", faint, has_focus=self.has_focus and is_first
            )
            return _draw_row(hint_segments, cells, base, Segment(mode, faint))
        if row >= self.text_layout.row_count:
            return Strip.blank(cells, base)
        offset, text = self.text_layout.get_row(row)
        cursor = self.buffer.cursor - offset if self.has_focus else -1
        start, end = (position - offset for position in self.selection)
        chip = base + self.get_component_rich_style("editor--chip", partial=True)
        selection_style = self.get_component_rich_style("editor--selection", partial=True)
        segments: list[Segment] = []
        for glyph in self.text_layout.split_glyphs(text):
            style = chip if is_chip(text[glyph.start : glyph.end]) else base
            if start <= glyph.start < end:
                style += selection_style
            if glyph.start <= cursor < glyph.end:
                style += _CURSOR_STYLE
            segments.append(Segment(glyph.label, style))
        # At the end of the text the cursor is on a blank;
        # at the end of a wrapped row it is on the next one.
        if cursor == len(text) and self.text_layout.locate(self.buffer.cursor)[0] == row:
            segments.append(Segment(" ", base + _CURSOR_STYLE))
        return _draw_row(Segment.simplify(segments), cells, base, Segment(mode, faint))


def _format_mode(editor: PromptEditor) -> str:
    """Return the text at the end of the first row: the status,
    else the shell mode and vi's mode.
    """
    shell = "shell" if editor.mode == "shell" and editor.buffer.text else ""
    return editor.status or " ".join(
        filter(None, (shell, editor.vim.status if editor.vim is not None else ""))
    )


def _draw_row(segments: Iterable[Segment], cells: int, base: Style, end: Segment) -> Strip:
    """Return a row with its end text, if there is room."""
    strip, room = Strip(segments), cells - len(end.text)
    if not end.text or strip.cell_length >= room:
        return strip.adjust_cell_length(cells, base)
    return Strip([*strip.adjust_cell_length(room, base), end])


def _draw_hint(text: str, style: Style, *, has_focus: bool) -> list[Segment]:
    """Return the placeholder row of an empty prompt."""
    under_cursor = Segment(text[:1] or " ", style + _CURSOR_STYLE if has_focus else style)
    return [under_cursor, Segment(text[1:], style)]


def get_typed_character(event: events.Key) -> str | None:
    """Return the character that a key types; None: it types none."""
    char = event.character
    if char is None or any(
        event.key.startswith(f"{modifier}+")
        for modifier in ("alt", "ctrl", "super", "hyper", "meta")
    ):
        return None
    # Format characters (Cf) are not printable, but joiners among them are needed by some scripts,
    # and by emoji.
    return char if char.isprintable() or category(char) == "Cf" else None


def set_vim_mode(editor: PromptEditor, *, is_wanted: bool) -> None:
    """Switch vi mode on or off."""
    if is_wanted != (editor.vim is not None):
        editor.vim = (
            Vim(editor.buffer, editor.run_key_action, lambda text: copy_text(editor, text))
            if is_wanted
            else None
        )


def copy_text(editor: PromptEditor, text: str) -> bool:
    """Copy a piece of the editor's text to the clipboard, with expanded chips.
    Return True: the key is used up.
    """
    get_app(editor).copy_to_clipboard(expand_chips(editor.buffer.chips, text))
    return True
