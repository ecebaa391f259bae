"""One session in an editor: its prompts, and what happens in it as `session/update` notifications."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

import msgspec

from codeloop.acp.connection import AUTH_REQUIRED, RpcError
from codeloop.acp.conversation import ShownConversation
from codeloop.acp.options import AvailableChoices, SessionChoices, state_of
from codeloop.acp.params import PromptBlock
from codeloop.acp.prompts import OWN_COMMANDS, files_of, parts_of, run_own_command, text_of
from codeloop.acp.questions import Asker, ConnectedEditor
from codeloop.acp.turns import SessionStates, SessionTurns, stop_reason
from codeloop.client.client import Client, works_for
from codeloop.client.slash.names import is_command
from codeloop.schema.api.command import Command
from codeloop.schema.api.session_inputs import InvokeCommand, MessageWithParts, Prompt
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.errors import CodeloopError, get_error_message
from codeloop.schema.event import (
    Event,
    MessageUpdated,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionUpdated,
    TodoUpdated,
    get_session_id,
)
from codeloop.schema.ids import new_id
from codeloop.schema.live_events import Idle, PartDelta, Retry, SessionIdle, StatusChanged, ToastShown
from codeloop.schema.message import Message, Session, UserMessage
from codeloop.schema.operation import (
    COMMAND,
    COMMAND_LIST,
    PROMPT,
    SESSION_MESSAGES,
    SESSION_TODO,
    NoArguments,
)
from codeloop.schema.part import StepFinishPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON


class EditorSession:
    """A session that the editor has open."""

    def __init__(self, link: ConnectedEditor, client: Client, session: Session, available: AvailableChoices) -> None:
        self.client = client
        self.session = session
        self.available = available
        self.choices = SessionChoices()
        session_features = link.capabilities.session
        self._link = link
        self._states = SessionStates(self._update) if link.version.is_prompt_answered_at_once else None
        self._turns = SessionTurns(client, session.id, self._states)
        shows_compaction = session_features is not None and session_features.compaction is not None
        self._conversation = ShownConversation(self._update, session.directory, link, shows_compaction=shows_compaction)
        note_open = self._states.note_questions if self._states is not None else None
        self._asker = Asker(
            link, client, session.id, note_open=note_open, note_call=self._conversation.note_permission_request
        )
        self._state_sent: JSON = {}
        """The modes and options that the editor knows."""
        self._commands: list[Command] = []
        self._last_step: StepFinishPart | None = None

    def state(self) -> JSON:
        """Return the session's modes and options, in the editor's version."""
        return self._link.version.session_state(state_of(self.session, self.choices, self.available))

    async def announce(self) -> None:
        """Send the editor the commands that there are, and how full the context of an older session is."""
        self._state_sent = state_of(self.session, self.choices, self.available)
        self._commands = await self.client.call(COMMAND_LIST, NoArguments())
        rows: list[JSON] = [{"name": name, "description": text} for name, text in OWN_COMMANDS.items()]
        for command in self._commands:
            row: JSON = {"name": command.name, "description": command.description or f"Runs /{command.name}."}
            rows.append({**row, "input": {"hint": " ".join(command.hints)}} if command.hints else row)
        self._update({"sessionUpdate": "available_commands_update", "availableCommands": rows})
        if self.session.time.updated > self.session.time.created:
            newest = await self.client.call(SESSION_MESSAGES, ListMessages(session_id=self.session.id, limit=1))
            steps = [part for message in newest for part in message.parts if isinstance(part, StepFinishPart)]
            if steps:
                self._last_step = steps[-1]
                self._send_usage()

    async def replay(self) -> None:
        """Send the conversation so far."""
        messages = await self.client.call(SESSION_MESSAGES, ListMessages(session_id=self.session.id))
        undone = self.session.revert.message_id if self.session.revert is not None else None
        for message in messages:
            if message.info.id == undone:
                break
            self._conversation.take_message(message.info)
            for part in message.parts:
                self._conversation.take_part(part)
            self._conversation.end_message(message.info)
        if todos := await self.client.call(SESSION_TODO, SessionId(session_id=self.session.id)):
            self._conversation.take_todos(todos)

    async def prompt(self, blocks: list[PromptBlock]) -> JSON:
        """Carry a prompt out and return why its turn ended; in version 2, that it is stored.

        Raises RpcError, CodeloopError.
        """
        message_id = new_id("msg")
        work = self._work_on(blocks, message_id)

        def show() -> None:
            self._update(
                {"sessionUpdate": "user_message", "messageId": message_id, "content": msgspec.to_builtins(blocks)}
            )

        return await self._turns.answer(work, message_id, show)

    def _work_on(self, blocks: list[PromptBlock], message_id: str) -> Coroutine[Any, Any, str]:
        """Return the work on a prompt, which returns why it ended. Raises RpcError for a prompt that can't be sent."""
        text, parts = text_of(blocks), parts_of(blocks)
        name, _, arguments = text.removeprefix("/").partition(" ")
        model = self.choices.model_of(self.session, self.available)
        if is_command(text) and name.strip() in OWN_COMMANDS:
            return self._answer_with(run_own_command(self.client, self.session.id, name.strip(), model), message_id)
        command = next((each for each in self._commands if each.name == name.strip()), None)
        if is_command(text) and command is None and text.startswith("/"):
            names = ", ".join(f"/{each}" for each in (*OWN_COMMANDS, *(each.name for each in self._commands)))
            answer = f"There is no command /{name.strip()}. There are: {names}."
            return self._answer_with(asyncio.sleep(0, answer), message_id)
        if model is None:
            raise RpcError(AUTH_REQUIRED, "No model can be used yet. Sign in: run `codeloop auth login` in a terminal.")
        agent = self.choices.agent
        self._conversation.own_prompts.add(message_id)
        if is_command(text) and command is not None:
            model_name = f"{model.provider_id}/{model.model_id}" if self.choices.model is not None else None
            call = self.client.call(
                COMMAND,
                InvokeCommand(
                    session_id=self.session.id,
                    command=command.name,
                    arguments=arguments.strip(),
                    agent=agent,
                    model=model_name,
                    message_id=message_id,
                    parts=files_of(blocks),
                ),
            )
        else:
            call = self.client.call(
                PROMPT,
                Prompt(
                    session_id=self.session.id,
                    parts=parts,
                    message_id=message_id,
                    model=self.choices.model,
                    variant=model.variant,
                    agent=agent,
                ),
            )
        return self._wait_for(call)

    async def cancel(self) -> None:
        """Stop what the session does, and wait until that is stored."""
        self._asker.stop()
        await self._turns.stop()

    async def close(self) -> None:
        """Stop the turn that runs, and ask the user nothing more."""
        if self._turns.are_running:
            await self.cancel()
        self._asker.stop()

    async def take(self, event: Event) -> None:
        """Take in an event of any session, and send the editor what it means for this one."""
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self._ask(request)
                return
            case PermissionReplied(properties=p) | QuestionReplied(properties=p) | QuestionRejected(properties=p):
                self._asker.withdraw(p.request_id)
                return
            case ToastShown(properties=toast):
                if get_session_id(event) in {None, self.session.id}:
                    self.notify(toast.variant, toast.title or toast.message, toast.message if toast.title else "")
                return
            case _:
                if get_session_id(event) == self.session.id:
                    self._take_own(event)

    def notify(self, severity: str, title: str, description: str = "") -> None:
        """Show the user something that is no part of the conversation, where the editor can."""
        session_features = self._link.capabilities.session
        if session_features is not None and session_features.notices is not None:
            severity = severity if severity in {"info", "warning", "error"} else "info"
            more = {"description": description} if description else {}
            self._update({"sessionUpdate": "notice", "severity": severity, "title": title, **more})

    def report_options(self) -> None:
        """Send the editor the modes and options of the session, if they have changed since it was last sent them."""
        state = state_of(self.session, self.choices, self.available)
        if state == self._state_sent:
            return
        self._state_sent = state
        self._update({"sessionUpdate": "config_option_update", "configOptions": state["configOptions"]})
        if (modes := state.get("modes")) is not None:
            self._update({"sessionUpdate": "current_mode_update", "currentModeId": modes["currentModeId"]})

    def _take_own(self, event: Event) -> None:
        match event:
            case MessageUpdated(properties=p):
                self._take_message(p.info)
            case PartUpdated(properties=p):
                self._conversation.take_part(p.part)
                if isinstance(p.part, StepFinishPart):
                    self._last_step = p.part
                    self._send_usage()
            case PartDelta(properties=p):
                self._conversation.take_delta(p)
            case TodoUpdated(properties=p):
                self._conversation.take_todos(p.todos)
            case SessionUpdated(properties=p):
                self._take_session(p.info)
            case StatusChanged(properties=p):
                if isinstance(p.status, Idle):
                    self._turns.note_idle()
                if self._states is not None:
                    self._states.note_busy(is_busy=not isinstance(p.status, Idle))
                if isinstance(p.status, Retry):
                    self.notify("warning", f"Trying again ({p.status.attempt}): {p.status.message}")
            case SessionIdle():
                self._turns.note_idle()
            case _:
                pass

    def _take_message(self, message: Message) -> None:
        self._conversation.take_message(message)
        self._conversation.end_message(message)
        self._turns.accept(message.id)
        if isinstance(message, UserMessage) or message.error is None or message.time.completed is None:
            return
        if not self._turns.are_running:  # a prompt's own error is its answer
            self.notify("error", get_error_message(message.error))

    def _take_session(self, session: Session) -> None:
        before, self.session = self.session, session
        if session.title != before.title:
            at = datetime.fromtimestamp(session.time.updated / 1000, UTC).isoformat()
            self._update({"sessionUpdate": "session_info_update", "title": session.title, "updatedAt": at})
        if session.cost != before.cost:
            self._send_usage()
        if (session.agent, session.model, session.metadata) != (before.agent, before.model, before.metadata):
            self.report_options()

    def _send_usage(self) -> None:
        """Send how full the context was in the last step, and what the session has cost."""
        part = self._last_step
        if part is None:
            return
        details = self.available.find_model(self.choices.model_of(self.session, self.available))
        if details is None or not details.limit.context:
            return
        usage: JSON = {"used": part.tokens.all, "size": int(details.limit.context)}
        if self.session.cost is not None:
            usage["cost"] = {"amount": self.session.cost, "currency": "USD"}
        self._update({"sessionUpdate": "usage_update", **usage})

    async def _ask(self, request: PermissionRequest | QuestionRequest) -> None:
        """Ask the user what this session or one of its subagents asks."""
        try:
            is_ours = await works_for(self.client, request.session_id, self.session.id)
        except CodeloopError:
            return  # the session is gone, and its question with it
        if is_ours:
            tool = request.tool
            call_id = self._conversation.find_call(tool.message_id, tool.call_id) if tool is not None else None
            self._asker.ask(request, call_id, self.session.directory)

    async def _wait_for(self, call: Coroutine[Any, Any, MessageWithParts]) -> str:
        """Wait for the end of a turn and until it is shown, and return why it ended."""
        answer = await self._turns.wait_for(call)
        stop = answer.stop
        if stop is not None and stop.reason in {"limit", "loop", "filtered"} and stop.message:
            self.notify("warning", stop.message)
        return stop_reason(answer)

    async def _answer_with(self, words: Coroutine[Any, Any, str], message_id: str) -> str:
        """Send the text that `words` returns as the answer, without a turn."""
        self._turns.accept(message_id)
        self._say(await words)
        return "end_turn"

    def _say(self, text: str) -> None:
        self._update(
            {
                "sessionUpdate": "agent_message_chunk",
                "messageId": new_id("prt"),
                "content": {"type": "text", "text": text},
            }
        )

    def _update(self, update: JSON) -> None:
        update_sent = self._link.version.convert_update(update)
        if update_sent is not None:
            self._link.connection.notify("session/update", {"sessionId": self.session.id, "update": update_sent})
