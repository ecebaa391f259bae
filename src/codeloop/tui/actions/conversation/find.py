"""`/find`: searches the shown conversation for a text,
including messages that are not loaded yet.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

from codeloop.schema.api.session_search import SESSION_FIND, FindInSession, TextMatch
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import SESSION_SEARCH_TEXT
from codeloop.tui.actions.scrolling import load_messages_until
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.session_tab import SessionTab

TYPING_PAUSE = 0.15
"""Seconds without a key before the search starts."""
SHARE_ABOVE_MATCH = 1 / 3
"""The share of the screen above a match, if the view has to scroll to it."""


async def find_in_conversation(ui: Ui, words: str) -> None:
    """Open the search bar, and find the words in the conversation if there are any."""
    # Raises UsageProblem if there is none yet.
    _ = ui.session
    bar = ui.tab.find_bar
    search = ConversationSearch(ui, ui.tab)
    bar.open(search, words.strip())
    search.search(words.strip())


class ScrollPosition(NamedTuple):
    """Where a conversation is scrolled to, relative to an item,
    so that it stays right when older items are loaded.
    """

    key: str
    """The key of the item at the top of the screen; "": there is none."""
    rows_above: int
    """Rows of that item that are above the screen."""
    follows_end: bool


class ConversationSearch:
    """The search in a tab: its matches and the current one.
    A new step cancels the one that still runs.
    """

    def __init__(self, ui: Ui, tab: SessionTab) -> None:
        self._ui = ui
        self._tab = tab
        self._query = ""
        self._matches: list[TextMatch] = []
        self._is_complete = True
        self._current = 0
        self._open_items: dict[str, str] = {}
        """The item that was opened to show the current match, with its message;
        none if it was open already.
        """
        self._start_position = _get_scroll_position(tab)
        self._task: asyncio.Task[Any] | None = None

    def search(self, text: str) -> None:
        """Find a text, and show the last match in the message where the search began,
        else the last of all.
        """
        if text != self._query:
            self._restart(self._search_text(text))

    def step(self, by: int) -> None:
        """Show the next match above (-1) or below (1), wrapping around."""
        if self._matches:
            self._current = (self._current + by) % len(self._matches)
            self._restart(self._show_match())

    def close(self, *, keeps_position: bool) -> None:
        """Close the bar; unless `keeps_position`, scroll back to where the search began."""
        if self._task is not None:
            self._task.cancel()
        self._tab.find_bar.close()
        self._tab.transcript.highlights.show("")
        if not keeps_position:
            self._close_items()
            _restore_position(self._tab, self._start_position)
        self._tab.transcript.refresh()
        self._tab.take_focus()

    def _restart(self, work: Coroutine[Any, Any, None]) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = self._ui.start_task(work)

    async def _search_text(self, text: str) -> None:
        # The next key cancels this task during the pause,
        # so that only the last text is searched for.
        # The first text, such as the words after `/find`, is searched for at once.
        await asyncio.sleep(TYPING_PAUSE if self._query else 0)
        self._query, self._matches = text, []
        bar, view = self._tab.find_bar, self._tab.view
        if not text.strip() or view is None:
            bar.show_status("")
            self._tab.transcript.highlights.show("")
            self._tab.transcript.refresh()
            return
        query = FindInSession(session_id=view.session.id, query=text[: SESSION_SEARCH_TEXT.value])
        try:
            result = await self._ui.client.call(SESSION_FIND, query)
        except CodeloopError as error:
            bar.show_status(str(error))
            return
        self._matches, self._is_complete = result.found, result.complete
        if not self._matches:
            bar.show_status("not found")
            self._tab.transcript.highlights.show("")
            self._tab.transcript.refresh()
            return
        self._current = self._choose_initial_match()
        await self._show_match()

    def _choose_initial_match(self) -> int:
        """Return the index of the last match in the message that was at the top of the
        screen when the search began.

        If there is none, or the view followed the end: of the last match.
        """
        top_key = self._start_position.key
        ids = (
            each.message_id for each in self._matches if top_key in {each.message_id, each.part_id}
        )
        top_message_id = next(ids, "")
        if self._start_position.follows_end or not top_message_id:
            return len(self._matches) - 1
        return max(
            index for index, each in enumerate(self._matches) if each.message_id == top_message_id
        )

    async def _show_match(self) -> None:
        """Scroll to the current match: load its message, open its item, highlight it."""
        match, tab = self._matches[self._current], self._tab
        # The server stops at a bound, so that there may be more matches than it has listed.
        plus = "" if self._is_complete else "+"
        tab.find_bar.show_status(f"{self._current + 1} of {len(self._matches)}{plus}")
        await load_messages_until(self._ui, match.message_id)
        self._open_item(match)
        transcript = tab.transcript
        found = transcript.blocks.find_drawn_block(
            match.part_id
        ) or transcript.blocks.find_drawn_block(match.message_id)
        if found is None:
            transcript.highlights.show(self._query)
            transcript.refresh()
            return
        block, rows, top = found
        transcript.highlights.show(self._query, block.item.key, match.ordinal)
        # The rows may show fewer matches than the text has,
        # such as in a shortened output: then the last one is shown.
        row, shown_ordinal = transcript.highlights.find_match_row(block, rows, match.ordinal)
        transcript.highlights.show(self._query, block.item.key, shown_ordinal)
        first_row, height = round(transcript.scroll_y), transcript.size.height
        if not first_row <= top + row < first_row + height - 1:
            transcript.scroll_rows(
                top + row - int(height * SHARE_ABOVE_MATCH) - transcript.scroll_y
            )
        transcript.refresh()

    def _open_item(self, match: TextMatch) -> None:
        """Open the item of a match if it is folded; close the one opened for another match."""
        view = self._tab.view
        key = match.message_id if match.kind in {"prompt", "summary"} else match.part_id
        if view is None or key in self._open_items:
            return
        self._close_items()
        # Answers are never folded.
        if match.kind != "answer" and not view.is_open(key):
            view.toggle(key, match.message_id)
            self._open_items[key] = match.message_id
        self._tab.sync()

    def _close_items(self) -> None:
        for key, message_id in self._open_items.items():
            if self._tab.view is not None and self._tab.view.is_open(key):
                self._tab.view.toggle(key, message_id)
        self._open_items.clear()
        self._tab.sync()


def _get_scroll_position(tab: SessionTab) -> ScrollPosition:
    transcript = tab.transcript
    top_row = round(transcript.scroll_y)
    block = transcript.blocks.find_block(top_row)
    if block is None:
        return ScrollPosition("", top_row, transcript.follows)
    rows_above = top_row - (transcript.blocks.find_top_row(block.item.key) or 0)
    return ScrollPosition(block.item.key, rows_above, transcript.follows)


def _restore_position(tab: SessionTab, position: ScrollPosition) -> None:
    top_row = tab.transcript.blocks.find_top_row(position.key)
    if position.follows_end or top_row is None:
        tab.transcript.scroll_to_end()
    else:
        tab.transcript.scroll_rows(top_row + position.rows_above - tab.transcript.scroll_y)
