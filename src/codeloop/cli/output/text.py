"""A turn as text: the answer on stdout, everything about it on stderr."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import msgspec

from codeloop.cli.output.result import FinalAnswer, Outcome, summary
from codeloop.cli.output.streams import Output
from codeloop.cli.output.style import has_colour, has_redraw, paint
from codeloop.client.numbers import format_duration
from codeloop.kit.terminal_text import escape_answer_controls, escape_controls, escape_json_controls, one_line
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


class FinalText:
    """Writes the answer once it is complete, as a pipe gets it; other text of the model goes to `narrate`.

    `output`: None when the answer is not to be written as text.
    """

    def __init__(self, output: Output | None, narrate: Callable[[str], object], prompt_id: str | None) -> None:
        self._output = output
        self._narrate = narrate
        self._answer = FinalAnswer(prompt_id)
        self._shown_lengths: dict[str, int] = {}
        """How many characters of each message were shown."""

    def show(self, event: Event) -> None:
        """Show what an event completes."""
        is_answer = self._answer.take(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._shown_lengths.setdefault(p.info.id, 0)
                if is_answer:
                    self._write(self._unshown_text(p.info.id))
                elif p.info.time.completed is not None:
                    self._narrate_rest(p.info.id)
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart) and p.part.message_id in self._shown_lengths:
                self._narrate_rest(p.part.message_id)
            case _:
                pass

    def finish(self) -> None:
        """Show what did not become an answer."""
        for message_id in self._shown_lengths:
            self._narrate_rest(message_id)

    def _write(self, text: str) -> None:
        if text and self._output is not None:
            self._output.write(escape_answer_controls(text) + "\n")

    def _narrate_rest(self, message_id: str) -> None:
        if text := self._unshown_text(message_id).strip("\n"):
            self._narrate(text)

    def _unshown_text(self, message_id: str) -> str:
        text = self._answer.of(message_id)
        start, self._shown_lengths[message_id] = self._shown_lengths[message_id], len(text)
        return text[start:].removeprefix("\n") if start else text


TITLE = 40
"""Characters of a subagent's title."""
COMPACTED = "The conversation so far was replaced with a summary ({} characters)."


class Speech(Protocol):
    """Shows what the model says."""

    def show(self, event: Event) -> None:
        """Show what an event adds."""
        ...

    def finish(self) -> None:
        """Show what is held back."""
        ...


class TextView:
    """Shows a session's turns; `prompt_id`: the message whose answer a pipe gets, None: all.

    `as_data`: the answer is shown at the end, as JSON, and all text is about it.
    """

    def __init__(
        self,
        answer: Output,
        progress: Output,
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
        self._terminal = next((each for each in (progress, answer) if has_redraw(each.stream)), None)
        self._activity = None
        if self._terminal is not None:
            from codeloop.cli.output.activity import Activity

            self._activity = Activity(self._terminal)
        is_streamed = answer.stream.isatty() and not as_data
        final_text = partial(FinalText, None if as_data else answer, self._narrate, prompt_id)
        self._speech = self._open_speech() if is_streamed else final_text()
        self._not_answers: dict[str, bool] = {}
        """Messages whose text is not an answer, prompts and summaries; whether each is a summary."""
        self._thoughts: dict[str, int] = {}
        """How many characters of each reasoning part were shown."""
        self._shown_parts: set[str] = set()
        self._answering = ""

    def _open_speech(self) -> Speech:
        from codeloop.cli.output.live_text import LiveText

        return LiveText(self._answer, self.note)

    @property
    def is_live(self) -> bool:
        """Whether there is a terminal that shows progress."""
        return self._activity is not None

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        if self._activity is not None and not isinstance(event, PartDelta):
            self._activity.take(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                self._not_answers[p.info.id] = False
                self._head(p.info)
                self._speech.show(event)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage) and p.info.summary:
                self._not_answers[p.info.id] = True
            case PartUpdated(properties=p) if p.part.message_id in self._not_answers:
                if isinstance(p.part, TextPart) and self._not_answers[p.part.message_id]:
                    self._summary(p.part)
            case PartUpdated(properties=p):
                self._show_part(event, p.part)
            case PartDelta(properties=p) if p.part_id in self._thoughts:
                self._think(p.part_id, p.delta)
            case ToastShown(properties=p):
                self.note(escape_controls(p.message))
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                wait = max(0, p.status.next - now_ms())
                reason = escape_controls(p.status.message)
                then = f" Retrying in {format_duration(wait)} (attempt {p.status.attempt})." if p.status.attempt else ""
                self.note(f"{reason}{then}")
            case _:
                self._clear()
                self._speech.show(event)

    def show_subagent(self, event: Event, title: str) -> None:
        """Show a finished call of a subagent on one line."""
        if self._activity is not None:
            self._activity.take_subagent(event)
        part = event.properties.part if isinstance(event, PartUpdated) else None
        if isinstance(part, ToolPart) and isinstance(part.state, ToolStateCompleted | ToolStateError):
            if part.id not in self._shown_parts:
                from codeloop.cli.output.tool_call import lines

                self._shown_parts.add(part.id)
                who = paint(f"  {one_line(title, TITLE)}:", "dim", colour=self._colour)
                self._line(f"{who} {lines(part, colour=self._colour)[0]}")
        elif isinstance(event, StatusChanged) and isinstance(event.properties.status, Retry):
            self.note(f"  {one_line(title, TITLE)}: {one_line(event.properties.status.message, 200)}")

    def tick(self) -> None:
        """Show what is going on, unless a line of the answer is being written."""
        if self._activity is not None and self._answer.is_at_start and self._progress.is_at_start:
            self._activity.draw()

    def note(self, text: str) -> None:
        """Write a line to stderr."""
        self._line(paint(text, "yellow", colour=self._colour))

    def finish(self, outcome: Outcome) -> None:
        """Write the sums, and why the turn ended if it is not simply done."""
        self._speech.finish()
        if outcome.structured is not None:
            self._clear()
            self._answer.write(_as_json(outcome.structured, indent=2 if self._answer.stream.isatty() else -1) + "\n")
        if outcome.message:
            look = "red" if outcome.exit_code else "yellow"
            self._line(paint(f"codeloop: {escape_controls(outcome.message)}", look, colour=self._colour))
        if outcome.session_id:
            self._line(paint(summary(outcome), "dim", colour=self._colour))

    def _head(self, prompt: UserMessage) -> None:
        """Show which agent and model answer, if they changed."""
        answering = f"{prompt.agent} · {prompt.model.provider_id}/{prompt.model.model_id}"
        if answering != self._answering:
            self._answering = answering
            self._line(paint(escape_controls(answering), "dim", colour=self._colour))

    def _show_part(self, event: Event, part: object) -> None:
        match part:
            case TextPart() if not part.synthetic:
                self._clear()
                self._speech.show(event)
            case ReasoningPart() if self._thinking:
                self._think(part.id, part.text[self._thoughts.get(part.id, 0) :])
                if part.time.end is not None and not self._progress.is_at_start:
                    self._progress.write("\n")
            case ToolPart():
                self._speech.show(event)
                if isinstance(part.state, ToolStateCompleted | ToolStateError) and part.id not in self._shown_parts:
                    self._shown_parts.add(part.id)
                    from codeloop.cli.output.tool_call import lines

                    call_lines = lines(part, colour=self._colour)
                    is_answer = self._as_data and part.tool == STRUCTURED_OUTPUT_TOOL
                    is_accepted = is_answer and isinstance(part.state, ToolStateCompleted)
                    self._line("\n".join(call_lines[:1] if is_accepted else call_lines))
            case _:
                pass

    def _summary(self, part: TextPart) -> None:
        if part.text and part.id not in self._shown_parts:
            self._shown_parts.add(part.id)
            self.note(COMPACTED.format(len(part.text)))
            if self._thinking:
                self._narrate(part.text)

    def _think(self, part_id: str, more: str) -> None:
        self._thoughts[part_id] = self._thoughts.get(part_id, 0) + len(more)
        self._clear()
        line = more.rstrip("\n")
        self._progress.write(paint(escape_controls(line), "dim", colour=self._colour) + more[len(line) :])

    def _narrate(self, text: str) -> None:
        self._line(paint(escape_controls(text), "dim", colour=self._colour))

    def _line(self, text: str) -> None:
        """Write whole lines to stderr, below what the terminal shows."""
        self._clear()
        if not self._progress.is_at_start:
            self._progress.write("\n")
        self._progress.write(text + "\n")

    def _clear(self) -> None:
        """Remove the progress line before something is written to the other stream."""
        if self._terminal is not None:
            self._terminal.overlay("")


def _as_json(value: Any, indent: int) -> str:
    """Return JSON that is safe to show; `indent`: -1 for one line without spaces."""
    return escape_json_controls(msgspec.json.format(msgspec.json.encode(value), indent=indent).decode())
