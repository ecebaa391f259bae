"""Sends prompts, shell lines, commands and answers to the session of a tab;
the first prompt creates the session.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from codeloop.client.client import Client
from codeloop.client.slash.goal import describe_reached_goal, parse_goal
from codeloop.schema.api.answers import (
    PERMISSION_REPLY,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.api.session_inputs import (
    COMMAND,
    PROMPT,
    SESSION_SHELL,
    FilePartInput,
    Goal,
    InvokeCommand,
    MessageWithParts,
    Prompt,
    RunLimits,
    RunShell,
    TextPartInput,
)
from codeloop.schema.api.session_messages import MESSAGE_GET, MessageId
from codeloop.schema.api.session_requests import (
    SESSION_GET,
    SESSION_UPDATE,
    SessionId,
    UpdateSession,
)
from codeloop.schema.errors import CodeloopError, OperationError, UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session
from codeloop.schema.permission import PROFILE_KEY, PermissionRequest
from codeloop.tui.state.session_view import Request
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import Delivery, PromptEntry
from codeloop.tui.widgets.prompt.prompt_preparer import to_stored_prompt
from codeloop.tui.widgets.request_panel.form import FormAnswer
from codeloop.tui.widgets.session_tab import SessionTab

ATTENDED_LIMITS = RunLimits(attended=True)
"""Limits of turns that have a user to answer their questions."""
NOTHING_SENT_NOTE = (
    "Nothing was sent: no model can be used yet. /connect sets one up, then send the prompt again."
)
_GONE_REQUEST_ERRORS = {"PermissionNotFoundError", "QuestionNotFoundError"}
"""The kinds of errors that answer a request which was answered elsewhere, or withdrawn."""


async def send_goal(ui: Ui, words: str) -> None:
    """Have the model work until a goal is reached. Raises UsageProblem while a turn runs."""
    text, goal = parse_goal(words)
    tab = ui.tab
    if tab.view is not None and tab.view.is_busy:
        raise UsageProblem("A turn is running. Stop it, or wait for its end; then give the goal.")
    ui.start_task(send_prompt(ui, tab, PromptEntry(text), "steer", goal))


async def send_prompt(
    ui: Ui, tab: SessionTab, entry: PromptEntry, delivery: Delivery, goal: Goal | None = None
) -> None:
    """Send a prompt, or a line for the shell. Raises CodeloopError.

    `delivery`: while a turn runs, `queue` holds the prompt back until the end of the turn.
    """
    if delivery == "queue" and tab.view is not None and tab.view.is_busy:
        tab.prompt.queue.add(entry)
        return
    async with _keep_on_failure(ui, tab, entry) as message_id:
        session = await _find_or_create_session(ui, tab, entry)
        if session is None:
            return
        client, model, agent = (
            _get_client(ui, session),
            ui.choices.get_chosen_model(tab),
            ui.choices.find_agent(tab),
        )
        if entry.mode == "shell":
            shell = RunShell(session_id=session.id, command=entry.text, agent=agent, model=model)
            await client.call(SESSION_SHELL, shell)
            return
        parts = [TextPartInput(text=entry.text), *entry.files, *entry.agents]
        prompt = Prompt(
            session_id=session.id,
            parts=parts,
            message_id=message_id,
            model=model,
            agent=agent,
            variant=model.variant if model else None,
            limits=ATTENDED_LIMITS,
            goal=goal,
        )
        _show_stop_reason(ui, await client.call(PROMPT, prompt))


async def send_queued_prompt(ui: Ui, session_id: str) -> None:
    """Send the prompt queued for the end of a session's turn;
    after an error or a stop it stays queued.
    """
    tab = next(
        (tab for tab in ui.tabs if tab.session is not None and tab.session.id == session_id), None
    )
    if tab is None or tab.view is None:
        return
    await tab.prompt.queue.reload()
    # After an error or a stop the user decides how to go on.
    last = tab.view.log.last_answer
    if last is None or last.error is None:
        entry = tab.prompt.queue.pop_next()
        if entry is not None:
            await send_prompt(ui, tab, entry, "steer")


async def reload_queues(ui: Ui) -> None:
    """Reload the prompts that wait for the next step of running turns, in every tab."""
    for tab in ui.tabs:
        if tab.view is not None and tab.view.is_busy:
            await tab.prompt.queue.reload()


async def run_project_command(
    ui: Ui, tab: SessionTab, name: str, words: str, files: tuple[FilePartInput, ...]
) -> None:
    """Run a command of the project. Raises CodeloopError."""
    entry = PromptEntry(f"/{name} {words}".rstrip(), files=files)
    async with _keep_on_failure(ui, tab, entry) as message_id:
        session = await _find_or_create_session(ui, tab, entry)
        if session is None:
            return
        model = ui.choices.get_chosen_model(tab)
        command = InvokeCommand(
            session_id=session.id,
            command=name,
            arguments=words,
            message_id=message_id,
            model=f"{model.provider_id}/{model.model_id}" if model else None,
            agent=ui.choices.find_agent(tab),
            variant=model.variant if model else None,
            parts=list(files),
            limits=ATTENDED_LIMITS,
        )
        _show_stop_reason(ui, await _get_client(ui, session).call(COMMAND, command))


@asynccontextmanager
async def _keep_on_failure(ui: Ui, tab: SessionTab, entry: PromptEntry) -> AsyncGenerator[str]:
    """Yield a prompt's message id; if sending fails without storing it,
    the prompt returns to the editor.
    """
    message_id = new_id("msg")
    tab.unsent[message_id] = entry
    ui.show_unsent()
    try:
        yield message_id
    except CodeloopError:
        # The connection may break after the prompt was stored: sending it again
        # would start a second turn.
        if not await _is_stored(ui, tab, message_id):
            tab.prompt.draft_keeper.restore_unsent(to_stored_prompt(entry))
        raise
    finally:
        del tab.unsent[message_id]
        ui.show_unsent()


async def _is_stored(ui: Ui, tab: SessionTab, message_id: str) -> bool:
    if tab.session is None:
        return False
    try:
        ids = MessageId(session_id=tab.session.id, message_id=message_id)
        await _get_client(ui, tab.session).call(MESSAGE_GET, ids)
    except CodeloopError:
        return False
    return True


async def _find_or_create_session(ui: Ui, tab: SessionTab, entry: PromptEntry) -> Session | None:
    """Return a tab's session; a new one, if it has none.
    None: no model is usable, and the prompt is kept.
    """
    tab.clear_notices()
    # A second prompt waits for the session that the first one creates.
    async with tab.creation_lock:
        # The user can type and send while the project is still being opened.
        await ui.opened_event.wait()
        if not await _ensure_model(ui, tab, entry):
            ui.say(NOTHING_SENT_NOTE, "warning")
            return None
        if tab.session is None:
            session = await ui.launch.create_session(ui.client)
            if tab.profile:
                session = await set_profile(ui.client, session.id, tab.profile)
            await ui.open_tab(session, tab)
            return session
    tab.transcript.scroll_to_end()
    return tab.session


async def set_profile(client: Client, session_id: str, name: str) -> Session:
    """Set the permission profile of a session. Raises CodeloopError."""
    session = await client.call(SESSION_GET, SessionId(session_id=session_id))
    metadata = {**(session.metadata or {}), PROFILE_KEY: name}
    return await client.call(
        SESSION_UPDATE, UpdateSession(session_id=session_id, metadata=metadata)
    )


async def _ensure_model(ui: Ui, tab: SessionTab, entry: PromptEntry) -> bool:
    """Return whether a model can answer; if none can, offer to set one up first,
    with the prompt kept in the editor.
    """
    if ui.choices.resolve_model(tab) is not None:
        return True
    # A key or a local server may have been added since the models were loaded.
    await ui.choices.reload()
    if ui.choices.resolve_model(tab) is not None:
        return True
    # The prompt is in the editor while the dialog is open, so that cancelling does not lose it.
    tab.prompt.set_entry(entry)
    from codeloop.tui.actions.connections import choose_provider

    if not await choose_provider(ui):
        return False
    tab.prompt.clear()
    return True


def _get_client(ui: Ui, session: Session) -> Client:
    """Return the client of a session, which may be in another directory."""
    return ui.sessions.get_session_client(session) if ui.sessions is not None else ui.client


def _show_stop_reason(ui: Ui, answer: MessageWithParts) -> None:
    """Show why a turn ended, unless it is simply done or the conversation shows it."""
    stop = answer.stop
    if stop is not None and stop.goal is not None and stop.goal.status == "done":
        ui.say(describe_reached_goal(stop.goal), "success")
    elif stop is not None and stop.reason not in {"done", "aborted", "error"} and stop.message:
        ui.say(stop.message, "warning")


async def send_answer(client: Client, request: Request, answer: FormAnswer) -> bool:
    """Answer a request; return False if it is no longer waiting.
    Raises OperationError for other refusals.
    """
    try:
        if isinstance(request, PermissionRequest):
            always = None if answer.always is None else list(answer.always)
            reply = AnswerPermission(
                request_id=request.id,
                reply=answer.reply,
                message=answer.message,
                always=always,
                wider=answer.wider,
                scope=answer.scope,
            )
            await client.call(PERMISSION_REPLY, reply)
        elif answer.reply == "reject":
            await client.call(
                QUESTION_REJECT, RejectQuestion(request_id=request.id, message=answer.message)
            )
        else:
            answers = [list(each) for each in answer.answers]
            await client.call(
                QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers)
            )
    except OperationError as error:
        if error.kind not in _GONE_REQUEST_ERRORS:
            raise
        return False
    return True
