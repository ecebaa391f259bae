"""`EditorSession`: one session in an editor: its prompts,
and its events as `session/update` notifications.
"""

from collections.abc import Coroutine
from typing import Any

import msgspec

from codeloop.acp.connected_editor import ConnectedEditor
from codeloop.acp.connection import AUTH_REQUIRED, RpcError
from codeloop.acp.conversation_updates import ConversationUpdates
from codeloop.acp.editor_turns import EditorTurns, StateReporter, find_stop_reason
from codeloop.acp.options import AvailableChoices, SessionChoices, build_state, choose_value
from codeloop.acp.params import PromptBlock
from codeloop.acp.prompts import (
    BUILT_IN_COMMANDS,
    build_parts,
    explain_unknown_command,
    join_text,
    list_files,
    run_built_in_command,
)
from codeloop.acp.question_forwarder import QuestionForwarder
from codeloop.acp.session_updates import (
    build_commands_update,
    build_notice,
    build_option_updates,
    build_text_update,
    build_title_update,
    build_usage_update,
    read_last_step,
)
from codeloop.client.client import Client, belongs_to
from codeloop.client.slash.commands import is_command
from codeloop.schema.api.agents import COMMAND_LIST, Command
from codeloop.schema.api.session_inputs import (
    COMMAND,
    PROMPT,
    InvokeCommand,
    MessageWithParts,
    Prompt,
    RunLimits,
)
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_TODO, SessionId
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
from codeloop.schema.live_events import (
    Idle,
    PartDelta,
    Retry,
    SessionIdle,
    StatusChanged,
    ToastShown,
)
from codeloop.schema.message import Message, Session, UserMessage
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import StepFinishPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON


class EditorSession:
    """A session that is open in the editor."""

    def __init__(
        self, editor: ConnectedEditor, client: Client, session: Session, available: AvailableChoices
    ) -> None:
        self.client = client
        self.session = session
        self.available = available
        self.choices = SessionChoices()
        session_features = editor.capabilities.session
        self._editor = editor
        self._state_reporter = (
            StateReporter(self._send_update) if editor.version.is_prompt_answered_at_once else None
        )
        self._turns = EditorTurns(client, session.id, self._state_reporter)
        shows_compaction = session_features is not None and session_features.compaction is not None
        self._conversation = ConversationUpdates(
            self._send_update, session.directory, editor, shows_compaction=shows_compaction
        )
        on_open_count = (
            self._state_reporter.note_questions if self._state_reporter is not None else None
        )
        self._questions = QuestionForwarder(
            editor,
            client,
            session.id,
            on_open_count=on_open_count,
            on_call_change=self._conversation.note_permission_request,
        )
        self._sent_state: JSON = {}
        """The modes and options as they were last sent."""
        self._commands: list[Command] = []
        self._last_step: StepFinishPart | None = None

    def build_state(self) -> JSON:
        """Build the session's modes and options, in the form of the editor's version."""
        return self._editor.version.convert_session_state(
            build_state(self.session, self.choices, self.available)
        )

    async def announce(self) -> None:
        """Send the available commands; for a session with messages,
        also how full its context is.
        """
        self._sent_state = build_state(self.session, self.choices, self.available)
        self._commands = await self.client.call(COMMAND_LIST, NoArguments())
        self._send_update(build_commands_update(self._commands))
        if self.session.time.updated > self.session.time.created:
            step = await read_last_step(self.client, self.session.id)
            if step is not None:
                self._last_step = step
                self._send_usage()

    async def replay(self) -> None:
        """Send the conversation so far, without undone messages."""
        messages = await self.client.call(
            SESSION_MESSAGES, ListMessages(session_id=self.session.id)
        )
        undone = self.session.revert.message_id if self.session.revert is not None else None
        for message in messages:
            if message.info.id == undone:
                break
            self._conversation.begin_message(message.info)
            for part in message.parts:
                self._conversation.send_part(part)
            self._conversation.end_message(message.info)
        if todos := await self.client.call(SESSION_TODO, SessionId(session_id=self.session.id)):
            self._conversation.send_todos(todos)

    async def prompt(self, blocks: list[PromptBlock]) -> JSON:
        """Send a prompt. Returns the reason why its turn ended;
        in version 2, the id of the stored message.

        Raises RpcError, CodeloopError.
        """
        message_id = new_id("msg")
        work = self._prepare_work(blocks, message_id)

        def show() -> None:
            self._send_update(
                {
                    "sessionUpdate": "user_message",
                    "messageId": message_id,
                    "content": msgspec.to_builtins(blocks),
                }
            )

        return await self._turns.answer_prompt(work, message_id, show)

    def _prepare_work(self, blocks: list[PromptBlock], message_id: str) -> Coroutine[Any, Any, str]:
        """Return a coroutine that carries out a prompt and returns its stop reason.
        Raises RpcError.
        """
        text, parts = join_text(blocks), build_parts(blocks)
        model = self.choices.resolve_model(self.session, self.available)
        command: Command | None = None
        # Editors send commands as the text of a prompt.
        words = text.removeprefix("/").split(maxsplit=1)
        if is_command(text):
            name = words[0]
            if name in BUILT_IN_COMMANDS:
                return self._answer_without_turn(
                    run_built_in_command(self.client, self.session.id, name, model), message_id
                )
            command = next((each for each in self._commands if each.name == name), None)
            # The model would take a mistyped command for a task.
            if command is None and text.startswith("/"):
                return self._answer_without_turn(
                    explain_unknown_command(name, self._commands), message_id
                )
        if model is None:
            raise RpcError(
                AUTH_REQUIRED,
                "No model can be used yet. Sign in: run `codeloop auth login` in a terminal.",
            )
        self._conversation.own_prompts.add(message_id)
        limits = (
            RunLimits(directories=self.choices.directories) if self.choices.directories else None
        )
        if command is not None:
            invoke_command = InvokeCommand(
                session_id=self.session.id,
                command=command.name,
                arguments="".join(words[1:]).strip(),
                agent=self.choices.agent,
                model=f"{model.provider_id}/{model.model_id}"
                if self.choices.model is not None
                else None,
                variant=model.variant,
                message_id=message_id,
                parts=list_files(blocks),
                limits=limits,
            )
            return self._run_turn(self.client.call(COMMAND, invoke_command))
        prompt = Prompt(
            session_id=self.session.id,
            parts=parts,
            message_id=message_id,
            model=self.choices.model,
            variant=model.variant,
            agent=self.choices.agent,
            limits=limits,
        )
        return self._run_turn(self.client.call(PROMPT, prompt))

    async def cancel(self) -> None:
        """Stop the session's turns, and wait until their ends are stored."""
        self._questions.stop()
        await self._turns.stop()

    async def close(self) -> None:
        """Stop the running turn, and withdraw open questions."""
        if self._turns.is_running:
            await self.cancel()
        self._questions.stop()

    async def handle_event(self, event: Event) -> None:
        """Handle an event of any session: send the updates that follow from it for this session."""
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self._forward_question(request)
                return
            case (
                PermissionReplied(properties=p)
                | QuestionReplied(properties=p)
                | QuestionRejected(properties=p)
            ):
                self._questions.withdraw(p.request_id)
                return
            case ToastShown(properties=toast):
                if get_session_id(event) in {None, self.session.id}:
                    self.notify(
                        toast.variant,
                        toast.title or toast.message,
                        toast.message if toast.title else "",
                    )
                return
            case _:
                if get_session_id(event) == self.session.id:
                    self._handle_session_event(event)

    def notify(self, severity: str, title: str, description: str = "") -> None:
        """Show a notice beside the conversation, if the editor supports notices."""
        session_features = self._editor.capabilities.session
        if session_features is not None and session_features.notices is not None:
            self._send_update(build_notice(severity, title, description))

    async def choose_value(self, option: str, value: str) -> None:
        """Set an option, and send the changes to the editor.
        Raises RpcError if the option or value is not offered.
        """
        self.session = await choose_value(
            self.client, self.session, self.choices, self.available, option, value
        )
        self.report_options()

    def report_options(self) -> None:
        """Send the session's modes and options, if they have changed since they were last sent."""
        state = build_state(self.session, self.choices, self.available)
        if state == self._sent_state:
            return
        self._sent_state = state
        for update in build_option_updates(state):
            self._send_update(update)

    def _handle_session_event(self, event: Event) -> None:
        match event:
            case MessageUpdated(properties=p):
                self._handle_message(p.info)
            case PartUpdated(properties=p):
                self._conversation.send_part(p.part)
                if isinstance(p.part, StepFinishPart):
                    self._last_step = p.part
                    self._send_usage()
            case PartDelta(properties=p):
                self._conversation.send_delta(p)
            case TodoUpdated(properties=p):
                self._conversation.send_todos(p.todos)
            case SessionUpdated(properties=p):
                self._handle_session(p.info)
            case StatusChanged(properties=p):
                if isinstance(p.status, Idle):
                    self._turns.note_idle()
                if self._state_reporter is not None:
                    self._state_reporter.note_busy(is_busy=not isinstance(p.status, Idle))
                if isinstance(p.status, Retry):
                    self.notify("warning", f"Trying again ({p.status.attempt}): {p.status.message}")
            case SessionIdle():
                self._turns.note_idle()
            case _:
                pass

    def _handle_message(self, message: Message) -> None:
        self._conversation.begin_message(message)
        self._conversation.end_message(message)
        self._turns.confirm_stored(message.id)
        if (
            isinstance(message, UserMessage)
            or message.error is None
            or message.time.completed is None
        ):
            return
        # A prompt's own error is its answer.
        if not self._turns.is_running:
            self.notify("error", get_error_message(message.error))

    def _handle_session(self, session: Session) -> None:
        before, self.session = self.session, session
        # What the user chose has been used by now, or an approved plan is carried
        # out by another agent.
        if session.agent != before.agent:
            self.choices.agent = None
        if session.title != before.title:
            self._send_update(build_title_update(session))
        if session.cost != before.cost:
            self._send_usage()
        if (session.agent, session.model, session.metadata) != (
            before.agent,
            before.model,
            before.metadata,
        ):
            self.report_options()

    def _send_usage(self) -> None:
        """Send how full the context is after the last step, and the cost of the session."""
        part = self._last_step
        if part is None:
            return
        details = self.available.find_model(
            self.choices.resolve_model(self.session, self.available)
        )
        # Without the size of the window there is nothing to compare the tokens with.
        if details is None or not details.limit.context:
            return
        window = int(details.limit.context)
        self._send_update(build_usage_update(part, window, self.session.cost))

    async def _forward_question(self, request: PermissionRequest | QuestionRequest) -> None:
        """Show the user a question of this session or of one of its subagents."""
        try:
            is_ours = await belongs_to(self.client, request.session_id, self.session.id)
        except CodeloopError:
            # The session is gone, and its question with it.
            return
        if is_ours:
            tool = request.tool
            call_id = (
                self._conversation.find_call_id(tool.message_id, tool.call_id)
                if tool is not None
                else None
            )
            self._questions.ask(request, call_id, self.session.directory)

    async def _run_turn(self, call: Coroutine[Any, Any, MessageWithParts]) -> str:
        """Run a turn until it has ended and is shown; return its stop reason."""
        answer = await self._turns.run_turn(call)
        stop = answer.stop
        if stop is not None and stop.reason in {"limit", "loop", "filtered"} and stop.message:
            self.notify("warning", stop.message)
        return find_stop_reason(answer)

    async def _answer_without_turn(
        self, make_text: Coroutine[Any, Any, str], message_id: str
    ) -> str:
        """Send the text that a coroutine returns as the answer to a prompt,
        and return the stop reason.
        """
        # Such a prompt is never stored, so that nothing else confirms it.
        self._turns.confirm_stored(message_id)
        text = await make_text
        self._send_update(build_text_update(text))
        return "end_turn"

    def _send_update(self, update: JSON) -> None:
        """Send an update, which is given in the form of version 1."""
        converted_update = self._editor.version.convert_update(update)
        if converted_update is not None:
            self._editor.connection.notify(
                "session/update", {"sessionId": self.session.id, "update": converted_update}
            )
