"""`Picker`: the list dialog that most dialogs build on, with a filter,
actions on rows and a preview.

It stays fast with thousands of rows: only visible rows are drawn,
and slow work waits for a pause in typing.
"""

from asyncio import sleep
from collections.abc import Sequence
from functools import partial
from typing import Generic

from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import CodeloopError
from codeloop.tui.dialogs.parts.dialog import Dialog, GetStyles
from codeloop.tui.dialogs.parts.dialog_rows import draw_keys, draw_text, draw_title
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource, T
from codeloop.tui.dialogs.parts.pick_list import PickList
from codeloop.tui.dialogs.parts.pick_preview import TYPING_PAUSE, PickPreview
from codeloop.tui.widgets.line_input import LineInput
from codeloop.tui.widgets.rows_view import RowsView

PLAIN_WIDTH = 92
"""Cells of the box without a preview."""
PREVIEW_WIDTH = 150
"""Cells of the box with a preview."""
PREVIEW_MIN_WIDTH = 110
"""Cells of the screen from which there is a preview."""
_FRAME_ROWS = 10
"""Rows of the screen for margins, title and filter."""
_SMALL_FRAME_ROWS = 3
"""The same on a small screen."""
_MAX_NOTE = 250
"""Characters of a row's note that are shown."""
_MIN_SEARCH_LENGTH = 3
"""Characters of the filter from which the source is searched: fewer would
match almost everything.
"""
_ROWS_BY_KEY = {"up": -1, "ctrl+p": -1, "down": 1, "ctrl+n": 1}
"""The keys that move the cursor, and by how many rows."""
_LIST_KEYS = frozenset({"enter", "escape", "pageup", "pagedown", "ctrl+home", "ctrl+end"})
LOADING_MESSAGE = "Loading…"
NO_MATCH_MESSAGE = "Nothing matches what you typed."


class FilterInput(LineInput):
    """The filter's input; keys that act on the list go to the picker."""

    async def on_key(self, event: events.Key) -> None:
        """Offer keys to the picker first."""
        # The input has the focus and would use enter, pageup and others itself.
        if isinstance(self.screen, Picker) and self.screen.press(event.key):
            event.stop()
            event.prevent_default()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter."""
        event.stop()
        if isinstance(self.screen, Picker):
            self.screen.apply_filter()


class Picker(Dialog[T | None], Generic[T]):
    """A list of rows to choose from. Closes with the value of one, or None when it is cancelled."""

    DEFAULT_CSS = """
    Picker #picker-body { height: auto; }
    Picker #picker-preview { margin-left: 2; display: none; }
    """

    def __init__(self, source: PickSource[T], get_styles: GetStyles) -> None:
        super().__init__(get_styles)
        self.source = source
        self.filter_text = ""
        """The text by which the shown rows are filtered; it is kept after the picker is closed."""
        self._list = PickList[T](finds_groups=source.finds_groups)
        self._preview = PickPreview(self, source)
        self._message = LOADING_MESSAGE
        self._applied_filter = ""
        """The text for which `apply_filter` has started the source's search;
        reloading filters without that.
        """
        self._chooses_when_loaded = False
        """Whether Enter was pressed before the rows were loaded: then the one
        under the cursor is chosen.
        """

    def compose(self) -> ComposeResult:
        """Yield the title, the filter, the list with its preview, and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("picker-title")
            yield FilterInput(placeholder="Type to filter", id="picker-filter")
            with Horizontal(id="picker-body"):
                yield RowsView("picker-list")
                yield RowsView("picker-preview")
            yield RowsView("picker-keys")

    def on_mount(self) -> None:
        """Focus the filter, and start loading the rows."""
        self.query_one(FilterInput).focus()
        self.reload()

    @property
    def current(self) -> T | None:
        """The value under the cursor."""
        return None if (pick := self._list.current) is None else pick.value

    def reload(self) -> None:
        """Start reloading the rows; the cursor stays on its value."""
        self.run_worker(self._load, exclusive=True, group="load")

    async def _load(self) -> None:
        # After the first load, the cursor stays where the user has moved it.
        kept_value = self.current if self._list.picks else self.source.start
        picks: Sequence[Pick[T]] = ()
        try:
            picks, self._message = await self.source.load(), self.source.empty_message
        except CodeloopError as error:
            self._message = f"{escape_controls(str(error))}\n\nEnter tries again."
        self._list.set_picks(picks)
        self._filter(kept_value)
        if self._chooses_when_loaded and self._list.matches:
            self._choose()
        self._chooses_when_loaded = False

    def _filter(self, kept_value: T | None = None) -> None:
        """Show the matching rows; the cursor goes to the row with the value `kept_value`,
        else to the first row.
        """
        query = self.filter_text = self.query_one(FilterInput).value
        self._list.filter(query, kept_value)
        if query.strip() and self._list.picks and not self._list.matches:
            self._message = NO_MATCH_MESSAGE
        self.draw()
        self._report_cursor()

    def draw(self) -> None:
        """Redraw everything."""
        styles = self.get_styles()
        has_preview = self.source.preview is not None and self.size.width >= PREVIEW_MIN_WIDTH
        outer = self.compute_box_width(PREVIEW_WIDTH if has_preview else PLAIN_WIDTH)
        width = outer - 4
        self.query_one("#dialog-box").styles.width = outer
        self.query_one("#picker-title", RowsView).show(
            [draw_title(self.source.title, styles, width)], 1
        )
        keys = [
            ("enter", self.source.choose_label),
            *((action.key, action.title) for action in self.source.actions),
        ]
        note = pick.note if (pick := self._list.current) is not None else ""
        note_rows = (
            [*draw_text(one_line(note, _MAX_NOTE), styles, width, "text_muted"), list[Segment]()]
            if note
            else []
        )
        foot = [*note_rows, *draw_keys(keys, styles, width)]
        self.query_one("#picker-keys", RowsView).show([[], *foot], len(foot) + 1)
        room = max(
            self.size.height - (_SMALL_FRAME_ROWS if self.is_small else _FRAME_ROWS) - len(foot), 3
        )
        view, preview = (
            self.query_one("#picker-list", RowsView),
            self.query_one("#picker-preview", RowsView),
        )
        if self._preview.fit(styles, is_visible=has_preview):
            # The preview knows its size only after the layout.
            self.call_after_refresh(self._report_cursor)
        list_width = width * 4 // 9 if has_preview else width
        view.styles.width = list_width
        preview.styles.width = width - list_width - 2
        rows = self._list.rows
        rows.styles = styles
        # Two cells less if there is a scroll bar.
        rows.width = list_width - (2 if len(rows) > room else 0)
        view.is_choice = lambda row: (
            bool(self._list.matches) and self._list.rows.find_position(row) is not None
        )
        if self._list.matches:
            view.show(rows, room if has_preview else min(len(rows), room))
            row = rows.find_row(rows.cursor)
            # At the first pick, the heading above it is shown as well.
            view.scroll_to_row(max(row - 1, 0) if rows.cursor == 0 else row, row)
        else:
            message = draw_text(self._message, styles, list_width, "text_muted")
            view.show(message, room if has_preview else len(message))
        preview.styles.height = room

    def press(self, key: str) -> bool:
        """Handle a key; return whether it acts on the list."""
        actions = {action.key: action for action in self.source.actions}
        # Keys that arrive after the end of the dialog are not for its input either.
        if self.is_over:
            return True
        if key not in _ROWS_BY_KEY and key not in _LIST_KEYS and key not in actions:
            return False
        # A letter typed just before this key may not be applied yet.
        self.apply_filter()
        page = max(self.query_one("#picker-list", RowsView).size.height - 1, 1)
        match key:
            case "escape":
                self.cancel()
            case "enter":
                self._choose()
            case "pageup" | "pagedown":
                self._move_to(self._list.rows.cursor + (page if key == "pagedown" else -page))
            case "ctrl+home" | "ctrl+end":
                self._move_to(len(self._list.matches) if key == "ctrl+end" else 0)
            case _ if key in _ROWS_BY_KEY:
                self._move_to(
                    (self._list.rows.cursor + _ROWS_BY_KEY[key]) % max(len(self._list.matches), 1)
                )
            case _:
                self.perform(partial(self._perform_action, actions[key]))
        return True

    def cancel(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def _move_to(self, position: int) -> None:
        self._list.move_to(position)
        self.draw()
        self._report_cursor()

    def _choose(self) -> None:
        # The filter may not be applied yet if Enter came right after the last letter.
        if self.query_one(FilterInput).value != self.filter_text:
            self._filter()
        pick = self._list.current
        if pick is None:
            # Enter without a row: wait for the rows, or try again to load them.
            self._chooses_when_loaded = self._message == LOADING_MESSAGE
            if not self._chooses_when_loaded:
                self.reload()
            return
        # A row that can't be chosen stays in the list, so that the user learns why.
        if pick.problem:
            self.notify(escape_controls(pick.problem), severity="warning", markup=False)
        else:
            self.choose(pick.value)

    def choose(self, value: T) -> None:
        """Close with the chosen value; subclasses may do something else with it."""
        self.dismiss(value)

    async def _perform_action(self, action: PickAction[T]) -> None:
        if await action.run(self.current):
            await self._load()

    def apply_filter(self) -> None:
        """Apply the filter, if its text has changed."""
        if self.is_over or (text := self.query_one(FilterInput).value) == self._applied_filter:
            return
        self._applied_filter, self._chooses_when_loaded = text, False
        self._list.drop_results()
        self._filter()
        if self.source.search is not None:
            self.run_worker(partial(self._search_source, text), exclusive=True, group="search")

    async def _search_source(self, text: str) -> None:
        """Add the results of the source's search, once the user pauses."""
        await sleep(TYPING_PAUSE)
        if self.source.search is None or len(text.strip()) < _MIN_SEARCH_LENGTH:
            return
        # A result that the list shows already is left out, so that nothing is listed twice.
        shown_values = [self._list.picks[index].value for index in self._list.matches]
        try:
            results = [
                pick
                for pick in await self.source.search(text.strip())
                if pick.value not in shown_values
            ]
        except CodeloopError as error:
            self.notify(escape_controls(str(error)), severity="warning", markup=False)
            return
        kept_value = self.current
        self._list.set_picks(self._list.picks, results)
        self._filter(kept_value)

    def _report_cursor(self) -> None:
        """Report the value under the cursor, and show its preview."""
        value = self.current
        if self.source.on_move is not None:
            self.source.on_move(value)
        self._preview.show(value)

    @on(RowsView.Pressed)
    def _press_row(self, event: RowsView.Pressed) -> None:
        event.stop()
        is_row = event.view.id == "picker-list" and bool(self._list.matches)
        position = self._list.rows.find_position(event.row) if is_row else None
        if position is not None:
            self._move_to(position)
            self._choose()
