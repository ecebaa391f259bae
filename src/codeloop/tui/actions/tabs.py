"""Commands that open, close and switch tabs."""

from codeloop.client.slash.waiting_session import find_waiting_session
from codeloop.schema.api.session_requests import SESSION_CHILDREN, SESSION_GET, SessionId
from codeloop.schema.errors import UsageProblem
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry

MAX_TABS = 9
"""With so many tabs in use, no new session is begun;
sessions that exist are opened all the same.
"""


async def open_new_session(ui: Ui, words: str) -> None:
    """Show a new session, in a tab of its own if the shown one is in use;
    words are its first prompt.
    """
    await start_session(ui, PromptEntry(words))


async def start_session(ui: Ui, entry: PromptEntry) -> None:
    """Show a new session, and send its first prompt if that is not empty."""
    if len(ui.tabs) >= MAX_TABS and all(tab.view is not None for tab in ui.tabs):
        key = ui.keymap.format_key("tab_close")
        raise UsageProblem(
            f"There are {MAX_TABS} tabs already. Close one first{f' ({key})' if key else ''}."
        )
    tab = await ui.open_tab(None)
    if entry.text:
        tab.prompt.set_entry(entry)
        tab.prompt.submit("steer")


async def close_tab(ui: Ui, _words: str) -> None:
    """Close the shown tab; its session goes on."""
    await ui.close_tab(ui.tab)


async def close_deleted_session(ui: Ui, session_id: str) -> None:
    """Close the tab of a deleted session; its draft is stashed."""
    for tab in [tab for tab in ui.tabs if tab.session is not None and tab.session.id == session_id]:
        # What the user was typing there must not be lost.
        tab.prompt.draft_keeper.push_stash()
        await ui.close_tab(tab)


async def show_next_tab(ui: Ui, _words: str) -> None:
    """Show the next tab."""
    _move_to_tab(ui, 1)


async def show_previous_tab(ui: Ui, _words: str) -> None:
    """Show the previous tab."""
    _move_to_tab(ui, -1)


async def show_parent_session(ui: Ui, _words: str) -> None:
    """Show the parent session of the shown subagent."""
    session = ui.session
    if session.parent_id is None:
        raise UsageProblem("This session has no parent: no other session started it.")
    await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=session.parent_id)))


async def show_next_child(ui: Ui, _words: str) -> None:
    """Show the next subagent of the same session, or the first one of the session that is shown."""
    await _move_to_child(ui, 1)


async def show_previous_child(ui: Ui, _words: str) -> None:
    """Show the previous subagent."""
    await _move_to_child(ui, -1)


def _move_to_tab(ui: Ui, step: int) -> None:
    tabs = ui.tabs
    ui.show_tab(tabs[(tabs.index(ui.tab) + step) % len(tabs)])


async def _move_to_child(ui: Ui, step: int) -> None:
    session = ui.session
    parent = SessionId(session_id=session.parent_id or session.id)
    children = sorted(
        await ui.client.call(SESSION_CHILDREN, parent), key=lambda child: child.time.created
    )
    if not children:
        raise UsageProblem("No subagent was started here.")
    ids = [child.id for child in children]
    # From the parent, the first step leads to the first subagent, or backwards to the last one.
    parent_index = -1 if step > 0 else 0
    index = ids.index(session.id) if session.id in ids else parent_index
    # A subagent replaces another one in its tab; the parent session keeps its own tab.
    tab = ui.tab if session.parent_id is not None else None
    await ui.open_tab(children[(index + step) % len(ids)], tab)


async def show_waiting_session(ui: Ui, _words: str) -> None:
    """Show the next session that waits for the user: one of the tabs,
    else one that is not open here.
    """
    tabs = ui.tabs
    shown_index = tabs.index(ui.tab)
    # From the tab after the shown one on, so that repeated calls visit all of them.
    for tab in (*tabs[shown_index + 1 :], *tabs[:shown_index]):
        if tab.view is not None and tab.view.requests:
            ui.show_tab(tab)
            return
    open_ids = {tab.session.id for tab in tabs if tab.session is not None}
    await ui.open_tab(await find_waiting_session(ui.client, open_ids))
