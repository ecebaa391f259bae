"""Commands that scroll the conversation: by rows and pages, to its ends,
and from prompt to prompt.
"""

import asyncio

from codeloop.tui.state.open_sessions import OpenSessions
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.ui import Ui


async def scroll_page_up(ui: Ui, _words: str) -> None:
    """Scroll a page up; the first row stays visible as the last."""
    ui.tab.transcript.scroll_rows(1 - ui.tab.transcript.size.height)


async def scroll_page_down(ui: Ui, _words: str) -> None:
    """Scroll a page down; the last row stays visible as the first."""
    ui.tab.transcript.scroll_rows(ui.tab.transcript.size.height - 1)


async def scroll_half_up(ui: Ui, _words: str) -> None:
    """Scroll half a page up."""
    ui.tab.transcript.scroll_rows(-(ui.tab.transcript.size.height // 2))


async def scroll_half_down(ui: Ui, _words: str) -> None:
    """Scroll half a page down."""
    ui.tab.transcript.scroll_rows(ui.tab.transcript.size.height // 2)


async def scroll_line_up(ui: Ui, _words: str) -> None:
    """Scroll one row up."""
    ui.tab.transcript.scroll_rows(-1)


async def scroll_line_down(ui: Ui, _words: str) -> None:
    """Scroll one row down."""
    ui.tab.transcript.scroll_rows(1)


async def show_first_message(ui: Ui, _words: str) -> None:
    """Scroll to the first message; the messages in between are loaded afterwards."""
    view, sessions = ui.tab.view, ui.sessions
    # Loading all messages may take long: the first page is shown at once.
    if sessions is not None and view is not None and view.cursor is not None:
        await sessions.load_first(view)
        ui.start_task(_load_older_messages(ui, sessions, view))
    ui.draw()
    ui.tab.transcript.scroll_rows(-ui.tab.transcript.scroll_y)


async def _load_older_messages(ui: Ui, sessions: OpenSessions, view: SessionView) -> None:
    # A session that was closed meanwhile has no view any more, or another one.
    while view.cursor is not None and sessions.views.get(view.session.id) is view:
        await sessions.load_older(view)
        # Lets keys be handled between two pages.
        await asyncio.sleep(0)
    ui.draw()


async def show_last_message(ui: Ui, _words: str) -> None:
    """Scroll to the end, and stay there."""
    ui.tab.transcript.scroll_to_end()


async def show_previous_prompt(ui: Ui, _words: str) -> None:
    """Scroll to the prompt above."""
    _scroll_to_prompt(ui, -1)


async def show_next_prompt(ui: Ui, _words: str) -> None:
    """Scroll to the prompt below."""
    _scroll_to_prompt(ui, 1)


def _scroll_to_prompt(ui: Ui, step: int) -> None:
    """Scroll to the next (1) or the previous (-1) prompt, relative to the top of the screen."""
    view, transcript = ui.tab.view, ui.tab.transcript
    if view is None:
        return
    tops = [
        top
        for prompt in view.log.list_prompts()
        if (top := transcript.blocks.find_top_row(prompt.id)) is not None
    ]
    current_row = round(transcript.scroll_y)
    candidates = [top for top in tops if (top > current_row if step > 0 else top < current_row)]
    if candidates:
        transcript.scroll_rows(
            (min(candidates) if step > 0 else max(candidates)) - transcript.scroll_y
        )
    elif step > 0:
        transcript.scroll_to_end()


async def show_last_prompt(ui: Ui, _words: str) -> None:
    """Scroll to the last prompt."""
    prompts = ui.tab.view.log.list_prompts() if ui.tab.view is not None else []
    if prompts:
        scroll_to_item(ui, prompts[-1].id)


async def load_messages_until(ui: Ui, message_id: str) -> None:
    """Load older messages of the shown session until this one is loaded. Raises CodeloopError."""
    view, sessions = ui.tab.view, ui.sessions
    while (
        sessions is not None
        and view is not None
        and view.cursor
        and message_id not in view.log.messages
    ):
        await sessions.load_older(view)
    ui.draw()


def scroll_to_item(ui: Ui, key: str) -> None:
    """Scroll to an item of the conversation, by its key; an unknown one is ignored."""
    transcript = ui.tab.transcript
    if (top := transcript.blocks.find_top_row(key)) is not None:
        transcript.scroll_rows(top - transcript.scroll_y)
