"""Commands that do something to the session that is shown."""

from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.schema.api.session_inputs import Summarize
from codeloop.schema.api.session_requests import ForkSession, SessionId, UpdateSession
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import AssistantMessage
from codeloop.schema.operation import ABORT, SESSION_FORK, SESSION_GET, SESSION_UPDATE, SUMMARIZE
from codeloop.schema.part import TextPart
from codeloop.tui.ui import Ui


async def interrupt(ui: Ui, _words: str) -> None:
    """Stop the turn, when the key is pressed a second time."""
    view = ui.tab.view
    if view is not None and view.is_busy and ui.again(f"{ui.keys.shown('session_interrupt')} again to stop the turn"):
        await ui.client.call(ABORT, SessionId(session_id=view.session.id))


async def undo(ui: Ui, _words: str) -> None:
    """Undo the last turn and what it did to files."""
    session = await ui.client.call(SESSION_GET, SessionId(session_id=ui.session.id))
    lines: list[str] = []
    await undo_last(ui.client, session, dry_run=False, say=lines.append, warn=lines.append)
    ui.say("\n".join(lines), "success")


async def redo(ui: Ui, _words: str) -> None:
    """Redo the last turn that was undone."""
    session = await ui.client.call(SESSION_GET, SessionId(session_id=ui.session.id))
    lines: list[str] = []
    await redo_last(ui.client, session, dry_run=False, say=lines.append, warn=lines.append)
    ui.say("\n".join(lines), "success")


async def compact(ui: Ui, _words: str) -> None:
    """Put a summary in the place of the conversation."""
    session = ui.session
    model = ui.choices.model_of(ui.tab)
    if model is None:
        raise UsageProblem("There is nothing to summarize yet.")
    asked = Summarize(session_id=session.id, provider_id=model.provider_id, model_id=model.model_id)
    await ui.client.call(SUMMARIZE, asked)


async def fork(ui: Ui, _words: str) -> None:
    """Copy the session, and show the copy."""
    copy = await ui.client.call(SESSION_FORK, ForkSession(session_id=ui.session.id))
    await ui.open_tab(copy)


async def rename(ui: Ui, words: str) -> None:
    """Give the session another title."""
    title = words.strip()
    if not title:
        raise UsageProblem("Usage: /rename TITLE")
    await ui.client.call(SESSION_UPDATE, UpdateSession(session_id=ui.session.id, title=title))


async def copy_answer(ui: Ui, _words: str) -> None:
    """Copy the text of the last answer."""
    view = ui.tab.view
    for message_id in reversed(view.log.ids if view is not None else []):
        known = view.log.messages[message_id] if view is not None else None
        if known is None or not isinstance(known.info, AssistantMessage):
            continue
        if text := "\n\n".join(part.text for part in known.parts.values() if isinstance(part, TextPart)):
            ui.copy_to_clipboard(text)
            ui.notify("The last answer is copied.")
            return
    raise UsageProblem("There is no answer to copy yet.")
