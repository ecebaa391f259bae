"""One session in an editor: its prompts, and what happens in it as `session/update` notifications."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from codeloop.acp.connection import AUTH_REQUIRED, INTERNAL, EditorConnection, RpcError
from codeloop.acp.conversation import ShownConversation
from codeloop.acp.options import AvailableChoices, SessionChoices, modes_of, options_of
from codeloop.acp.params import ClientCapabilities, PromptBlock
from codeloop.acp.prompts import files_of, parts_of, text_of
from codeloop.acp.questions import Asker
from codeloop.client.client import Client, works_for
from codeloop.client.slash.names import is_command
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.schema.api.command import Command
from codeloop.schema.api.session_inputs import InvokeCommand, MessageWithParts, Prompt, Summarize
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.errors import CodeloopError, ProviderAuthError, error_message
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
    session_of,
)
from codeloop.schema.ids import new_id
from codeloop.schema.limits import TURN_SETTLE
from codeloop.schema.live_events import Idle, PartDelta, Retry, SessionIdle, StatusChanged, ToastShown
from codeloop.schema.message import AssistantMessage, Message, Session, UserMessage
from codeloop.schema.operation import (
    ABORT,
    COMMAND,
    COMMAND_LIST,
    PROMPT,
    SESSION_GET,
    SESSION_MESSAGES,
    SESSION_TODO,
    SUMMARIZE,
    NoArguments,
)
from codeloop.schema.part import StepFinishPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON

_ABORT_AGAIN = 0.01
"""Seconds between two tries to stop a prompt: while it is being stored, there is no turn to stop yet."""
_STOP_REASONS = {
    "length": "max_tokens",
    "limit": "max_turn_requests",
    "loop": "max_turn_requests",
    "filtered": "refusal",
    "aborted": "cancelled",
}
"""By why a turn ended; every other one ended by itself."""
_OWN_COMMANDS = {
    "compact": "Put a summary in the place of the conversation so far.",
    "undo": "Undo the last turn, with its changes of files.",
    "redo": "Redo the turn that was undone.",
}


class EditorSession:
    """A session that the editor has open."""

    def __init__(
        self,
        connection: EditorConnection,
        client: Client,
        session: Session,
        available: AvailableChoices,
        capabilities: ClientCapabilities,
    ) -> None:
        self.client = client
        self.session = session
        self.available = available
        self.choices = SessionChoices()
        shown = capabilities.session
        self._shows_notices = shown is not None and shown.notices is not None
        elicitation = capabilities.elicitation
        shows_forms = elicitation is not None and elicitation.form is not None
        self._connection = connection
        self._asker = Asker(connection, client, session.id, shows_forms=shows_forms)
        self._shown = ShownConversation(self._update, session.directory)
        self._told: JSON = {}
        """The modes and options that the editor knows."""
        self._commands: list[Command] = []
        self._idle = asyncio.Event()
        self._turns: set[asyncio.Task[MessageWithParts]] = set()

    def state(self) -> JSON:
        """Return the session's modes and options."""
        found: JSON = {"configOptions": options_of(self.session, self.choices, self.available)}
        modes = modes_of(self.session, self.choices, self.available)
        return found if modes is None else {**found, "modes": modes}

    async def announce(self) -> None:
        """Send the editor the commands that there are."""
        self._told = self.state()
        self._commands = await self.client.call(COMMAND_LIST, NoArguments())
        rows: list[JSON] = [{"name": name, "description": text} for name, text in _OWN_COMMANDS.items()]
        for command in self._commands:
            row: JSON = {"name": command.name, "description": command.description or f"Runs /{command.name}."}
            rows.append({**row, "input": {"hint": " ".join(command.hints)}} if command.hints else row)
        self._update("available_commands_update", availableCommands=rows)

    async def replay(self) -> None:
        """Send the conversation so far."""
        messages = await self.client.call(SESSION_MESSAGES, ListMessages(session_id=self.session.id))
        undone = self.session.revert.message_id if self.session.revert is not None else None
        for message in messages:
            if message.info.id == undone:
                break
            self._shown.take_message(message.info)
            for part in message.parts:
                self._shown.take_part(part)
        if todos := await self.client.call(SESSION_TODO, SessionId(session_id=self.session.id)):
            self._shown.take_todos(todos)

    async def prompt(self, blocks: list[PromptBlock]) -> JSON:
        """Carry a prompt out and return why its turn ended. Raises RpcError, CodeloopError."""
        text, parts = text_of(blocks), parts_of(blocks)
        name, _, arguments = text.removeprefix("/").partition(" ")
        if is_command(text) and name.strip() in _OWN_COMMANDS:
            await self._carry_out(name.strip())
            return {"stopReason": "end_turn"}
        known = next((each for each in self._commands if each.name == name.strip()), None)
        if is_command(text) and known is None and text.startswith("/"):
            names = ", ".join(f"/{each}" for each in (*_OWN_COMMANDS, *(each.name for each in self._commands)))
            self._say(f"There is no command /{name.strip()}. There are: {names}.")
            return {"stopReason": "end_turn"}
        model = self.choices.model_of(self.session, self.available)
        if model is None:
            raise RpcError(AUTH_REQUIRED, "No model can be used yet. Sign in: run `codeloop auth login` in a terminal.")
        message_id, agent = new_id("msg"), self.choices.agent
        self._shown.own_prompts.add(message_id)
        self._idle.clear()
        if is_command(text) and known is not None:
            named = f"{model.provider_id}/{model.model_id}" if self.choices.model is not None else None
            call = self.client.call(
                COMMAND,
                InvokeCommand(
                    session_id=self.session.id,
                    command=known.name,
                    arguments=arguments.strip(),
                    agent=agent,
                    model=named,
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
        return self._ending(await self._wait_for(call))

    async def cancel(self) -> None:
        """Stop what the session does, and wait until that is stored."""
        self._asker.stop()
        while True:
            with suppress(CodeloopError):
                await self.client.call(ABORT, SessionId(session_id=self.session.id))
            if not self._turns:
                return
            await asyncio.wait(self._turns, timeout=_ABORT_AGAIN)

    async def close(self) -> None:
        """Stop it and ask no more."""
        if self._turns:
            await self.cancel()
        self._asker.stop()

    async def take(self, event: Event) -> None:
        """Take in an event, of this session or another, and tell the editor what concerns it."""
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self._ask(request)
                return
            case PermissionReplied(properties=p) | QuestionReplied(properties=p) | QuestionRejected(properties=p):
                self._asker.withdraw(p.request_id)
                return
            case ToastShown(properties=toast):
                if session_of(event) in {None, self.session.id}:
                    self.notify(toast.variant, toast.title or toast.message, toast.message if toast.title else "")
                return
            case _:
                if session_of(event) == self.session.id:
                    self._take_own(event)

    def notify(self, severity: str, title: str, description: str = "") -> None:
        """Show the user something that is no part of the conversation, where the editor can."""
        if self._shows_notices:
            severity = severity if severity in {"info", "warning", "error"} else "info"
            self._update(
                "notice", severity=severity, title=title, **({"description": description} if description else {})
            )

    def report_options(self) -> None:
        """Send the editor what is chosen now, where that is not what it knows."""
        state = self.state()
        if state == self._told:
            return
        self._told = state
        self._update("config_option_update", configOptions=state["configOptions"])
        if (modes := state.get("modes")) is not None:
            self._update("current_mode_update", currentModeId=modes["currentModeId"])

    def _take_own(self, event: Event) -> None:
        match event:
            case MessageUpdated(properties=p):
                self._take_message(p.info)
            case PartUpdated(properties=p):
                self._shown.take_part(p.part)
                if isinstance(p.part, StepFinishPart):
                    self._send_usage(p.part)
            case PartDelta(properties=p):
                self._shown.take_delta(p)
            case TodoUpdated(properties=p):
                self._shown.take_todos(p.todos)
            case SessionUpdated(properties=p):
                self._take_session(p.info)
            case StatusChanged(properties=p):
                if isinstance(p.status, Idle):
                    self._idle.set()
                elif isinstance(p.status, Retry):
                    self.notify("warning", f"Trying again ({p.status.attempt}): {p.status.message}")
            case SessionIdle():
                self._idle.set()
            case _:
                pass

    def _take_message(self, message: Message) -> None:
        self._shown.take_message(message)
        if isinstance(message, UserMessage) or message.error is None or message.time.completed is None:
            return
        if not self._turns:  # a prompt's own error is its answer
            self.notify("error", error_message(message.error))

    def _take_session(self, session: Session) -> None:
        before, self.session = self.session, session
        if session.title != before.title:
            at = datetime.fromtimestamp(session.time.updated / 1000, UTC).isoformat()
            self._update("session_info_update", title=session.title, updatedAt=at)
        if (session.agent, session.model, session.metadata) != (before.agent, before.model, before.metadata):
            self.report_options()

    def _send_usage(self, part: StepFinishPart) -> None:
        details = self.available.find_model(self.choices.model_of(self.session, self.available))
        if details is None or not details.limit.context:
            return
        found: JSON = {"used": part.tokens.all, "size": int(details.limit.context)}
        if self.session.cost is not None:
            found["cost"] = {"amount": self.session.cost, "currency": "USD"}
        self._update("usage_update", **found)

    async def _ask(self, request: PermissionRequest | QuestionRequest) -> None:
        """Ask the user what this session or one of its subagents asks."""
        try:
            is_ours = await works_for(self.client, request.session_id, self.session.id)
        except CodeloopError:
            return  # the session is gone, and its question with it
        if is_ours:
            tool = request.tool
            call_id = self._shown.find_call(tool.message_id, tool.call_id) if tool is not None else None
            self._asker.ask(request, call_id, self.session.directory)

    async def _wait_for(self, call: Coroutine[Any, Any, MessageWithParts]) -> MessageWithParts:
        """Wait for the end of a turn and until it is shown; cancelled, the turn is stopped."""
        turn = asyncio.create_task(call)
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)
        try:
            answer = await asyncio.shield(turn)
            with suppress(TimeoutError):
                async with asyncio.timeout(TURN_SETTLE.seconds):
                    await self._idle.wait()
        except asyncio.CancelledError:
            await self.cancel()
            raise
        return answer

    def _ending(self, answer: MessageWithParts) -> JSON:
        reason = answer.stop.reason if answer.stop is not None else "done"
        error = answer.info.error if isinstance(answer.info, AssistantMessage) else None
        if reason == "error":
            code = AUTH_REQUIRED if isinstance(error, ProviderAuthError) else INTERNAL
            message = answer.stop.message if answer.stop is not None else ""
            raise RpcError(code, message or (error_message(error) if error is not None else "The turn failed."))
        if reason in {"limit", "loop", "filtered"} and answer.stop is not None and answer.stop.message:
            self.notify("warning", answer.stop.message)
        return {"stopReason": _STOP_REASONS.get(reason, "end_turn")}

    async def _carry_out(self, name: str) -> None:
        """Carry out a command of the program's own, and say what came of it."""
        lines: list[str] = []
        session = await self.client.call(SESSION_GET, SessionId(session_id=self.session.id))
        move: Callable[..., Coroutine[Any, Any, int]] = redo_last if name == "redo" else undo_last
        if name == "compact":
            model = self.choices.model_of(session, self.available)
            if model is None:
                raise RpcError(AUTH_REQUIRED, "No model can be used yet, so nothing can be summarized.")
            asked = Summarize(session_id=session.id, provider_id=model.provider_id, model_id=model.model_id)
            await self.client.call(SUMMARIZE, asked)
            lines.append("The conversation goes on from a summary.")
        else:
            await move(self.client, session, dry_run=False, say=lines.append, warn=lines.append)
        self._say("\n".join(lines))

    def _say(self, text: str) -> None:
        self._update("agent_message_chunk", content={"type": "text", "text": text})

    def _update(self, name: str, /, **fields: Any) -> None:
        params: JSON = {"sessionId": self.session.id, "update": {"sessionUpdate": name, **fields}}
        self._connection.notify("session/update", params)
