"""Runs one turn for `codeloop run`: opens the project and the session, runs the turn,
and shows its result.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from codeloop.cli import exit_codes
from codeloop.cli.follow.subagents import BackgroundPolicy
from codeloop.cli.option_values import Options
from codeloop.cli.output.result import Outcome, make_unfinished
from codeloop.cli.output.streams import OutputQueue, can_ask_user, open_standard_streams
from codeloop.cli.output.view import View, ViewAbovePrompt, make_view
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.prompter import QuestionPrompter
from codeloop.cli.questions.trust_prompt import make_trust_prompt
from codeloop.cli.run.message import (
    RunMessage,
    is_stdin_unread,
    make_outgoing_message,
    parse_command,
    send_message,
)
from codeloop.cli.run.signals import SignalHandlers
from codeloop.cli.run.turn import RunTurn
from codeloop.cli.target.open_target import OpenTarget
from codeloop.cli.target.selection import (
    check_agent,
    choose_session,
    parse_model,
    prepare_session,
    resolve_model,
)
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_DELETE, SessionId
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.wire import JSON, replace

NO_OUTPUT_MESSAGE = "The turn ended without the output that --schema asks for."
UNREAD_NOTE = "codeloop: stdout was closed before the answer was read."


async def run_one_shot(options: Options, message: RunMessage, open_target: OpenTarget) -> int:
    """Run one turn with these options, and return the exit code.
    A result is shown also when the turn fails.
    """
    output = OutputQueue(asyncio.get_running_loop())
    try:
        return await _run_and_show(options, message, open_target, output)
    finally:
        # A reader that has stopped reading must not keep the process from ending.
        output.abandon()


async def _run_and_show(
    options: Options, message: RunMessage, open_target: OpenTarget, output: OutputQueue
) -> int:
    start = time.monotonic()
    task = asyncio.current_task()
    signals = SignalHandlers(
        task.cancel if task is not None else lambda: False, output.shorten_waits
    )
    one_shot = OneShot(options, open_target, signals, output)
    one_shot.stdout.watch(asyncio.get_running_loop())
    try:
        outcome = await one_shot.run(message)
    except CodeloopError as error:
        outcome = make_unfinished(
            "error", exit_codes.choose_error_code(error), str(error), session_id=one_shot.session_id
        )
    except asyncio.CancelledError:
        # Only a signal cancels the task; a second one ends the process without
        # waiting for anything.
        if not signals.name or signals.is_second:
            raise
        outcome = make_unfinished(
            "interrupted",
            exit_codes.INTERRUPTED,
            f"Interrupted ({signals.name}).",
            session_id=one_shot.session_id,
        )
    if not outcome.duration_ms:
        outcome = replace(outcome, duration_ms=int((time.monotonic() - start) * 1000))
    # The turn is over, so a signal has nothing to stop; only a slow reader of stdout is waited for.
    signals.on_first = lambda: None
    one_shot.view.finish(outcome)
    if options.detached:
        from codeloop.cli.run.background import notify_of_end

        notify_of_end(outcome)
    await output.drain()
    # The result is written: a signal must not make the exit code contradict it.
    signals.is_over = True
    if not one_shot.stdout.has_lost:
        return outcome.exit_code
    if signals.name:
        return exit_codes.INTERRUPTED
    if outcome.exit_code == exit_codes.DONE:
        # stderr may still have a reader.
        one_shot.view.note(
            f"{UNREAD_NOTE} Show it with: codeloop session show {outcome.session_id}"
        )
        await output.drain()
    return outcome.exit_code or exit_codes.ERROR


class OneShot:
    """One run. `view`: shows it. `session_id`: "" until the session is known."""

    def __init__(
        self,
        options: Options,
        open_target: OpenTarget,
        signals: SignalHandlers,
        output: OutputQueue,
    ) -> None:
        self._options = options
        self._open_target = open_target
        self._signals = signals
        self.stdout, self._stderr = open_standard_streams(output)
        self._terminal = self._stderr if can_ask_user() else None
        self._answer_format: JSON | None = None
        self.session_id = ""
        self._prompt_id = new_id("msg")
        self.view = self._make_view()

    async def run(self, message: RunMessage) -> Outcome:
        """Open the project and the session, run the turn, and return its outcome.
        Raises CodeloopError.
        """
        # Checked before anything is opened or asked.
        if self._options.schema is not None:
            from codeloop.cli.run.output_schema import read_answer_format

            self._answer_format = await read_answer_format(self._options.schema)
        async with self._open_target(self._options, make_trust_prompt(self._terminal)) as target:
            if target.connection is not None:
                target.connection.on_report = lambda text: self.view.note(f"codeloop: {text}")
            for note in target.notes:
                self.view.note(note)
            if is_stdin_unread(self._options):
                self.view.note("codeloop: stdin was not read. Add `-` to the message to read it.")
            try:
                return await self._run_turn(message, target)
            finally:
                for problem in target.list_problems():
                    self.view.note(f"codeloop: {problem}")

    def _check_command(self, command: str, *, has_session: bool) -> None:
        # Imported late: most prompts are not commands.
        from codeloop.extend.commands import COMPACT_COMMAND

        if command == COMPACT_COMMAND.name and self._answer_format is not None:
            raise UsageProblem("`compact` gives no answer. Leave --schema out.")
        if command == COMPACT_COMMAND.name and not has_session:
            raise UsageProblem(
                "`compact` summarizes a session: choose one with --continue or --session ID."
            )

    async def _run_turn(self, message: RunMessage, target: Target) -> Outcome:
        # Raises for an invalid name before a session is created.
        options = replace(
            self._options, model=await resolve_model(target.client, self._options.model)
        )
        attachments = [target.attach_file(path) for path in options.files]
        parse_model(options.model)
        chosen_session = await choose_session(target, options)
        client = (
            target.client if chosen_session is None else target.get_session_client(chosen_session)
        )
        await check_agent(client, options.agent)
        command, arguments = await parse_command(client, options, message.words)
        if command is not None:
            self._check_command(command, has_session=chosen_session is not None)
        try:
            session = await prepare_session(client, options, chosen_session)
            self.session_id = session.id
            # The lines of a JSON view have the session's id.
            self.view = self._make_view()
            prompter = QuestionPrompter(self._stderr)
            answerer = Answerer(
                prompter if self._terminal is not None else None,
                auto=options.auto,
                leave_open=_find_notifier(session.id) if options.detached else None,
            )
            background = BackgroundPolicy(
                waits=not options.no_wait, on_server=options.attach is not None
            )
            attach_flag = f" --attach {options.attach}" if options.attach is not None else ""
            turn = RunTurn(
                client,
                session,
                ViewAbovePrompt(self.view, prompter),
                answerer,
                stdout=self.stdout,
                resume_command=f"codeloop run{attach_flag} --session {session.id}",
                background=background,
            )
            outgoing = await make_outgoing_message(
                client,
                options,
                message,
                (command, arguments),
                attachments,
                self._answer_format,
                note=lambda text: self.view.note(f"codeloop: {text}"),
            )
            send = partial(send_message, client, session.id, self._prompt_id, options, outgoing)
            outcome = await turn.run(self._prompt_id, send, options.timeout, self._signals)
            return outcome if self._answer_format is None else check_structured_output(outcome)
        finally:
            if await delete_unused_session(client, self.session_id):
                self.session_id = ""

    def _make_view(self) -> View:
        options = self._options
        return make_view(
            options.format,
            self.stdout,
            self._stderr,
            self.session_id,
            thinking=options.thinking,
            prompt_id=self._prompt_id,
            as_data=options.schema is not None,
        )


def _find_notifier(session_id: str) -> Callable[[str], object]:
    """Return a function that notifies the user of a run in the background
    that waits for an answer.
    """
    from codeloop.cli.run.background import notify_of_question

    return partial(notify_of_question, session_id)


async def delete_unused_session(client: Client, session_id: str) -> bool:
    """Delete a session if it has no message, because its prompt was never stored;
    return whether it was deleted.
    """
    # The error that kept the prompt from being stored is what the user needs;
    # an error of this clean-up would hide it.
    with suppress(CodeloopError):
        if session_id and not await client.call(
            SESSION_MESSAGES, ListMessages(session_id=session_id, limit=1)
        ):
            await client.call(SESSION_DELETE, SessionId(session_id=session_id))
            return True
    return False


def check_structured_output(outcome: Outcome) -> Outcome:
    """Return the outcome, or that of an error if a turn for `--schema` is done
    without structured output.
    """
    if outcome.structured is not None or outcome.exit_code != exit_codes.DONE:
        return outcome
    return replace(
        outcome, reason="error", exit_code=exit_codes.UNSTRUCTURED, message=NO_OUTPUT_MESSAGE
    )
