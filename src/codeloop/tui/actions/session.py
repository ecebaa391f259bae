"""Commands that act on the shown session, such as stop, undo, rename and delete,
or that choose another one.
"""

from pathlib import Path

from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import ABORT, SUMMARIZE, Summarize
from codeloop.schema.api.session_requests import (
    SESSION_CHILDREN,
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_GET,
    SESSION_UPDATE,
    STOP_ALL,
    ForkSession,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import AssistantMessage, Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import TextPart
from codeloop.tui.actions.scrolling import load_messages_until, scroll_to_item
from codeloop.tui.actions.send import send_prompt
from codeloop.tui.actions.show_dialog import make_context, show_dialog
from codeloop.tui.dialogs.export import export_session
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.sessions import ChildPicker, ForkPicker, SessionPicker, describe_deletion
from codeloop.tui.dialogs.timeline import Timeline, TimelineStep
from codeloop.tui.settings.session_pins import SessionPins
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from codeloop.tui.widgets.prompt.queued_prompts import SEND_OFFER

_MAX_TITLE_LENGTH = 40
"""Characters of a session's title that a notice shows."""


async def interrupt_turn(ui: Ui, _words: str) -> None:
    """Stop the turn at the second press; without a turn, remove the notices below the conversation.

    Without a turn and with an empty prompt, the second press shows the earlier
    prompts to go back to.
    """
    view = ui.tab.view
    # Without a key it is run from the list of commands.
    key = ui.keymap.format_key("session_interrupt") or "Once"
    if view is None or not view.is_busy:
        ui.tab.clear_notices()
        ui.tab.sync()
        has_prompts = (
            view is not None and bool(view.log.list_prompts()) and not ui.tab.prompt.entry.text
        )
        if has_prompts and ui.repeated_key.confirm(f"{key} again to go back to a prompt"):
            await rewind_to_prompt(ui, "")
    elif ui.repeated_key.confirm(
        f"{key} again to stop the turn{SEND_OFFER if ui.tab.prompt.queue.has_prompts else ''}",
        f"{key} again to stop the turn",
    ):
        # Prompts that wait for the next step of the turn would be lost with it.
        prompt, waiting = ui.tab.prompt, [*ui.tab.prompt.queue.server_prompts]
        await ui.client.call(ABORT, SessionId(session_id=view.session.id))
        prompts_without_answer = [
            message for message in waiting if not view.log.list_answers(message.info.id)
        ]
        await prompt.queue.withdraw_unread(prompts_without_answer, to_editor=not prompt.entry.text)


async def send_waiting_prompt(ui: Ui, _words: str) -> None:
    """Stop the turn, and send the first of the prompts that wait for its next step or its end."""
    view, tab, queue = ui.tab.view, ui.tab, ui.tab.prompt.queue
    if view is None or not view.is_busy or not queue.has_prompts:
        ui.notify("No prompt waits for a turn.")
        return
    waiting = [*queue.server_prompts]
    await ui.client.call(ABORT, SessionId(session_id=view.session.id))
    unread = [message for message in waiting if not view.log.list_answers(message.info.id)]
    await queue.withdraw_unread(unread, to_editor=False)
    if (entry := queue.pop_next()) is not None:
        await send_prompt(ui, tab, entry, "steer")


async def take_over(ui: Ui, words: str) -> None:
    """Stop the session's turn, whichever terminal or server runs it, and go on here with `words`,
    if there are any.
    """
    session = ui.session
    if not await ui.client.call(ABORT, SessionId(session_id=session.id)):
        raise UsageProblem(
            "The turn of this session could not be stopped from here: stop it where it runs."
        )
    ui.tab.clear_notices()
    if words:
        ui.start_task(send_prompt(ui, ui.tab, PromptEntry(words), "steer"))
    else:
        ui.say("Nobody else works on this session now. Say how to go on.", "success")


async def stop_all(ui: Ui, _words: str) -> None:
    """Stop the running turns of all of this user's servers, terminals and runs."""
    result = await ui.client.call(STOP_ALL, NoArguments())
    if result.left:
        names = ", ".join(one_line(each.title, _MAX_TITLE_LENGTH) for each in result.left)
        ui.say(
            f"{_format_session_count(len(result.stopped))} stopped. Still running: {names}",
            "warning",
        )
    else:
        ui.say(
            f"{_format_session_count(len(result.stopped))} stopped."
            if result.stopped
            else "Nothing was running.",
            "success",
        )


def _format_session_count(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"


async def undo_turn(ui: Ui, _words: str) -> None:
    """Undo the last turn and its file changes, and put its prompt into the editor."""
    session = await ui.client.call(SESSION_GET, SessionId(session_id=ui.session.id))
    prompt_before, skipped_files = _find_undone_prompt(ui, session), list[str]()
    await undo_last(
        ui.client, session, dry_run=False, say=lambda _: None, warn=skipped_files.append
    )
    ui.tab.clear_notices()
    # The conversation itself shows what was undone, so only what was not is said.
    if skipped_files:
        ui.say("\n".join(skipped_files), "warning")
    if ui.tab.prompt.entry.text in {"", prompt_before}:
        await _edit_undone_prompt(ui)


async def redo_turn(ui: Ui, _words: str) -> None:
    """Redo the last turn that was undone."""
    session = await ui.client.call(SESSION_GET, SessionId(session_id=ui.session.id))
    prompt_before, lines = _find_undone_prompt(ui, session), list[str]()
    await redo_last(ui.client, session, dry_run=False, say=lines.append, warn=lines.append)
    ui.tab.clear_notices()
    if lines:
        ui.say("\n".join(lines), "success")
    # The prompt is empty if `/redo` itself was typed over the undone one.
    if prompt_before and ui.tab.prompt.entry.text in {"", prompt_before}:
        await _edit_undone_prompt(ui)


async def _edit_undone_prompt(ui: Ui) -> None:
    """Put the undone prompt into the editor, to be changed and sent again."""
    session = await ui.client.call(SESSION_GET, SessionId(session_id=ui.session.id))
    ui.tab.prompt.set_entry(PromptEntry(_find_undone_prompt(ui, session)), is_undone=True)


def _find_undone_prompt(ui: Ui, session: Session) -> str:
    """Return the text of the first prompt that is undone, or nothing."""
    view = ui.tab.view
    message = (
        view.log.messages.get(session.revert.message_id)
        if view is not None and session.revert
        else None
    )
    parts = message.parts.values() if message is not None else ()
    return "\n".join(
        part.text for part in parts if isinstance(part, TextPart) and not part.synthetic
    )


async def compact_session(ui: Ui, _words: str) -> None:
    """Replace the conversation by a summary."""
    session = ui.session
    model = ui.choices.require_model(ui.tab)
    request = Summarize(
        session_id=session.id, provider_id=model.provider_id, model_id=model.model_id
    )
    # In the background: keys typed after a command wait for its end, and this takes long.
    ui.start_task(ui.client.call(SUMMARIZE, request))


async def fork_session(ui: Ui, _words: str) -> None:
    """Copy the session, and show the copy."""
    copy = await ui.client.call(SESSION_FORK, ForkSession(session_id=ui.session.id))
    await ui.open_tab(copy)


async def copy_answer(ui: Ui, _words: str) -> None:
    """Copy the text of the last answer."""
    view = ui.tab.view
    messages = (
        [view.log.messages[message_id] for message_id in view.log.ids] if view is not None else []
    )
    answers = [message for message in messages if isinstance(message.info, AssistantMessage)]
    for answer in reversed(answers):
        text = "\n\n".join(
            part.text for part in answer.parts.values() if isinstance(part, TextPart)
        )
        # An answer may consist of tool calls alone.
        if text:
            ui.copy_to_clipboard(text)
            ui.notify("The last answer is copied.")
            return
    raise UsageProblem("There is no answer to copy yet.")


async def choose_session(ui: Ui, _words: str) -> None:
    """Choose a session to show."""
    current = ui.tab.session.id if ui.tab.session else ""
    session_id = await show_dialog(
        ui, SessionPicker(make_context(ui), SessionPins(ui.launch.state_folder), current)
    )
    if session_id:
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=session_id)))


async def choose_child(ui: Ui, session_id: str) -> None:
    """Show the session of a subagent: the given one, or one to choose."""
    child_id = session_id or await show_dialog(ui, ChildPicker(make_context(ui), ui.session.id))
    if child_id:
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=child_id)))


async def choose_fork(ui: Ui, _words: str) -> None:
    """Choose a session in the tree of forks around this one."""
    session_id = await show_dialog(ui, ForkPicker(make_context(ui), ui.session))
    if session_id:
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=session_id)))


async def show_timeline(ui: Ui, _words: str) -> None:
    """Show the timeline: scroll to a prompt, copy it, fork before it, or undo from it on."""
    await _apply_timeline_step(ui, await show_dialog(ui, Timeline(make_context(ui), ui.session.id)))


async def rewind_to_prompt(ui: Ui, _words: str) -> None:
    """Choose a prompt to rewind to: undo it and all later turns, and put it into the editor."""
    await _apply_timeline_step(
        ui, await show_dialog(ui, Timeline(make_context(ui), ui.session.id, goes_back=True))
    )


async def _apply_timeline_step(ui: Ui, step: TimelineStep | None) -> None:
    """Do what is left of the choice made in the timeline: that has already forked or undone."""
    if step is None:
        return
    if step.action == "jump":
        await load_messages_until(ui, step.message_id)
        scroll_to_item(ui, step.message_id)
    elif step.action == "copy":
        ui.copy_to_clipboard(step.text)
        ui.notify("The prompt is copied.")
    elif step.action == "fork":
        await ui.open_tab(await ui.client.call(SESSION_GET, SessionId(session_id=step.session_id)))
        ui.tab.prompt.set_entry(PromptEntry(step.text))
    elif step.action == "undo":
        # The prompt can be changed and sent again.
        ui.tab.prompt.set_entry(PromptEntry(step.text))


async def rename_session(ui: Ui, words: str) -> None:
    """Rename the session to the given words, or ask for a title."""
    session, title = ui.session, words.strip()
    if not title:
        answer = await show_dialog(
            ui, TextInput("Rename session", lambda: ui.appearance.styles, session.title)
        )
        title = (answer or "").strip()
    if title:
        await ui.client.call(SESSION_UPDATE, UpdateSession(session_id=session.id, title=title))
        ui.notify(f"The session is called “{one_line(title, 60)}”.", markup=False)


async def export_to_file(ui: Ui, _words: str) -> None:
    """Write the session to a file."""
    file = await export_session(make_context(ui), ui.session.id, Path(ui.launch.directory))
    if file is not None:
        ui.say(f"Written: {file}", "success")


async def delete_session(ui: Ui, _words: str) -> None:
    """Delete the session, after asking."""
    session = ui.session
    children = await ui.client.call(SESSION_CHILDREN, SessionId(session_id=session.id))
    text = describe_deletion(session.title, len(children))
    if await show_dialog(
        ui, Confirm("Delete session?", text, "delete", lambda: ui.appearance.styles)
    ):
        await ui.client.call(SESSION_DELETE, SessionId(session_id=session.id))
