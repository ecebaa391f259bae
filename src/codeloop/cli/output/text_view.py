"""The view for `--format text`: the answer on stdout;
calls, notes, progress and costs on stderr.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from codeloop.cli.output.result import FinalAnswer, Outcome, format_summary
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import can_redraw, has_colour, paint
from codeloop.client.formatting import format_duration
from codeloop.kit.text.terminal_text import (
    escape_answer_controls,
    escape_controls,
    escape_json_controls,
    one_line,
)
from codeloop.schema.event import Event, MessageUpdated, PartUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import PartDelta, Retry, StatusChanged, ToastShown
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    STRUCTURED_OUTPUT_TOOL,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import encode_json

# Characters of a subagent's title before its calls.
SUBAGENT_TITLE_CHARS = 40
COMPACTED_NOTE = "The conversation so far was replaced with a summary ({} characters)."


class FinalText:
    """Writes the answer once it is complete, for a pipe, whose reader wants nothing else.

    `output`: where to write it; None: nowhere, because the answer is data. `narrate`: called with
    the other texts of the model. `prompt_id`: the prompt to answer; None: any prompt.
    """

    def __init__(
        self, output: OutputStream | None, narrate: Callable[[str], object], prompt_id: str | None
    ) -> None:
        self._output = output
        self._narrate = narrate
        self._answer = FinalAnswer(prompt_id)
        # The number of characters of each message that were shown.
        self._shown_lengths: dict[str, int] = {}

    def show(self, event: Event) -> None:
        """Write the answer that an event completes, or pass on text that is not an answer."""
        is_answer = self._answer.handle_event(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._shown_lengths.setdefault(p.info.id, 0)
                if is_answer:
                    self._write_answer(self._take_unshown_text(p.info.id))
                elif p.info.time.completed is not None:
                    self._narrate_rest(p.info.id)
            case PartUpdated(properties=p) if (
                isinstance(p.part, ToolPart) and p.part.message_id in self._shown_lengths
            ):
                self._narrate_rest(p.part.message_id)
            case _:
                pass

    def finish(self) -> None:
        """Pass on the rest of the texts, which have not become an answer."""
        for message_id in self._shown_lengths:
            self._narrate_rest(message_id)

    def _write_answer(self, text: str) -> None:
        if text and self._output is not None:
            self._output.write(escape_answer_controls(text) + "\n")

    def _narrate_rest(self, message_id: str) -> None:
        if text := self._take_unshown_text(message_id).strip("\n"):
            self._narrate(text)

    def _take_unshown_text(self, message_id: str) -> str:
        """Return the text of a message that was not shown yet, and note that it is."""
        text = self._answer.get_text(message_id)
        start, self._shown_lengths[message_id] = self._shown_lengths[message_id], len(text)
        return text[start:].removeprefix("\n") if start else text


class AnswerWriter(Protocol):
    """Shows the texts of the model: `FinalText` for a pipe, `LiveText` for a terminal."""

    def show(self, event: Event) -> None:
        """Show the text that an event adds."""
        ...

    def finish(self) -> None:
        """Show the text that is held back."""
        ...


class TextView:
    """Shows the turns of a session as text.

    `thinking`: show the model's reasoning, too. `prompt_id`: the prompt whose answer a pipe gets;
    None: any prompt.
    `as_data`: the answer is shown at the end, as JSON,
    and all texts of the model are only narrated.
    """

    def __init__(
        self,
        answer: OutputStream,
        progress: OutputStream,
        *,
        thinking: bool = False,
        prompt_id: str | None = None,
        as_data: bool = False,
    ) -> None:
        self._answer = answer
        self._progress = progress
        self._thinking = thinking
        self._as_data = as_data
        self._colour = has_colour(progress.stream)
        self._terminal = next(
            (output for output in (progress, answer) if can_redraw(output.stream)), None
        )
        self._progress_line = None
        if self._terminal is not None:
            from codeloop.cli.output.progress_line import ProgressLine

            self._progress_line = ProgressLine(self._terminal)
        self._answer_writer: AnswerWriter
        if as_data:
            self._answer_writer = FinalText(None, self._narrate, prompt_id)
        elif answer.stream.isatty():
            # A pipe needs no renderer of Markdown.
            from codeloop.cli.output.live_text import LiveText

            self._answer_writer = LiveText(answer, self.note)
        else:
            self._answer_writer = FinalText(answer, self._narrate, prompt_id)
        # By the ids of messages whose text is not an answer: whether the message is a summary,
        # or else a prompt.
        self._is_summary: dict[str, bool] = {}
        # The number of characters of each reasoning part that were shown.
        self._thinking_lengths: dict[str, int] = {}
        self._shown_parts: set[str] = set()
        # The agent and the model that were shown last.
        self._shown_agent_and_model = ""

    @property
    def is_live(self) -> bool:
        """Whether `tick` draws: there is a terminal that can show progress."""
        return self._progress_line is not None

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        if self._progress_line is not None and not isinstance(event, PartDelta):
            self._progress_line.handle_event(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                # A prompt is updated once more when its turn ends.
                if p.info.id not in self._is_summary:
                    self._show_agent_and_model(p.info)
                self._is_summary[p.info.id] = False
                self._answer_writer.show(event)
            case MessageUpdated(properties=p) if (
                isinstance(p.info, AssistantMessage) and p.info.summary
            ):
                self._is_summary[p.info.id] = True
            case PartUpdated(properties=p) if p.part.message_id in self._is_summary:
                if isinstance(p.part, TextPart) and self._is_summary[p.part.message_id]:
                    self._show_summary(p.part)
            case PartUpdated(properties=p):
                self._show_part(event, p.part)
            case PartDelta(properties=p) if p.part_id in self._thinking_lengths:
                self._show_thinking(p.part_id, p.delta)
            case ToastShown(properties=p):
                self.note(escape_controls(p.message))
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                retry_note = ""
                if p.status.attempt:
                    wait_ms = max(0, p.status.next - now_ms())
                    retry_note = (
                        f" Retrying in {format_duration(wait_ms)} (attempt {p.status.attempt})."
                    )
                self.note(f"{escape_controls(p.status.message)}{retry_note}")
            case _:
                self._clear_progress()
                self._answer_writer.show(event)

    def show_subagent(self, event: Event, title: str) -> None:
        """Show a finished call of a subagent on one line."""
        if self._progress_line is not None:
            self._progress_line.handle_subagent_event(event)
        part = event.properties.part if isinstance(event, PartUpdated) else None
        if isinstance(part, ToolPart) and isinstance(
            part.state, ToolStateCompleted | ToolStateError
        ):
            if part.id not in self._shown_parts:
                from codeloop.cli.output.tool_call import format_call

                self._shown_parts.add(part.id)
                subagent = paint(
                    f"  {one_line(title, SUBAGENT_TITLE_CHARS)}:", "dim", colour=self._colour
                )
                self._write_line(f"{subagent} {format_call(part, colour=self._colour)[0]}")
        elif isinstance(event, StatusChanged) and isinstance(event.properties.status, Retry):
            self.note(
                f"  {one_line(title, SUBAGENT_TITLE_CHARS)}: {one_line(event.properties.status.message, 200)}"
            )

    def tick(self) -> None:
        """Show what is going on, unless a line of the answer is being written."""
        if (
            self._progress_line is not None
            and self._answer.is_at_start
            and self._progress.is_at_start
        ):
            self._progress_line.draw()

    def note(self, text: str) -> None:
        """Write a line to stderr."""
        self._write_line(paint(text, "yellow", colour=self._colour))

    def finish(self, outcome: Outcome) -> None:
        """Write the sums, and why the turn ended if it is not simply done."""
        self._answer_writer.finish()
        if outcome.structured is not None:
            self._clear_progress()
            self._answer.write(
                _format_json(outcome.structured, indent=2 if self._answer.stream.isatty() else -1)
                + "\n"
            )
        if outcome.message:
            style = "red" if outcome.exit_code else "yellow"
            self._write_line(
                paint(f"codeloop: {escape_controls(outcome.message)}", style, colour=self._colour)
            )
        if outcome.session_id:
            self._write_line(paint(format_summary(outcome), "dim", colour=self._colour))

    def _show_agent_and_model(self, prompt: UserMessage) -> None:
        """Show the agent and the model that answer, if they have changed."""
        agent_and_model = f"{prompt.agent} · {prompt.model.provider_id}/{prompt.model.model_id}"
        if agent_and_model != self._shown_agent_and_model:
            self._shown_agent_and_model = agent_and_model
            self._write_line(paint(escape_controls(agent_and_model), "dim", colour=self._colour))

    def _show_part(self, event: Event, part: object) -> None:
        match part:
            case TextPart() if not part.synthetic:
                self._clear_progress()
                self._answer_writer.show(event)
            case ReasoningPart() if self._thinking:
                self._show_thinking(part.id, part.text[self._thinking_lengths.get(part.id, 0) :])
                if part.time.end is not None and not self._progress.is_at_start:
                    self._progress.write("\n")
            case ToolPart():
                # Before the call is shown, the writer has to narrate the text that precedes it.
                self._answer_writer.show(event)
                if (
                    isinstance(part.state, ToolStateCompleted | ToolStateError)
                    and part.id not in self._shown_parts
                ):
                    self._shown_parts.add(part.id)
                    from codeloop.cli.output.tool_call import format_call

                    call_lines = format_call(part, colour=self._colour)
                    # The arguments of an accepted answer are shown as the answer itself.
                    is_answer = self._as_data and part.tool == STRUCTURED_OUTPUT_TOOL
                    is_accepted = is_answer and isinstance(part.state, ToolStateCompleted)
                    self._write_line("\n".join(call_lines[:1] if is_accepted else call_lines))
            case _:
                pass

    def _show_summary(self, part: TextPart) -> None:
        if part.text and part.id not in self._shown_parts:
            self._shown_parts.add(part.id)
            self.note(COMPACTED_NOTE.format(len(part.text)))
            if self._thinking:
                self._narrate(part.text)

    def _show_thinking(self, part_id: str, text: str) -> None:
        """Write the next piece of a reasoning part."""
        self._thinking_lengths[part_id] = self._thinking_lengths.get(part_id, 0) + len(text)
        self._clear_progress()
        line = text.rstrip("\n")
        self._progress.write(
            paint(escape_controls(line), "dim", colour=self._colour) + text[len(line) :]
        )

    def _narrate(self, text: str) -> None:
        self._write_line(paint(escape_controls(text), "dim", colour=self._colour))

    def _write_line(self, text: str) -> None:
        """Write whole lines to stderr, below the text that the terminal shows."""
        self._clear_progress()
        if not self._progress.is_at_start:
            self._progress.write("\n")
        self._progress.write(text + "\n")

    def _clear_progress(self) -> None:
        """Remove the progress line before something is written to the other stream."""
        if self._terminal is not None:
            self._terminal.overlay("")


def _format_json(value: Any, indent: int) -> str:
    """Return JSON that is safe to show in a terminal. `indent`: -1 for one line without spaces."""
    return escape_json_controls(msgspec.json.format(encode_json(value), indent=indent).decode())
