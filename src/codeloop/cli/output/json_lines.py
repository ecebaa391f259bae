"""A turn as JSON Lines for machines; the last line is always a result."""

from typing import Any

import msgspec

from codeloop.cli.output.result import Outcome
from codeloop.cli.output.streams import Output
from codeloop.kit.terminal_text import inert_json
from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import Retry, SessionErrored, StatusChanged
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    ReasoningPart,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import JSON, replace

RETRIED = {"text", "reasoning"}
"""What a retry starts again."""


class JsonView:
    """Writes each finished part as one line: `{"type", "timestamp" (ms), "sessionID", "part" | "error"}`."""

    def __init__(self, answer: Output, progress: Output, session_id: str) -> None:
        self._answer = answer
        self._progress = progress
        self._session_id = session_id
        self._users: set[str] = set()
        self._summaries: set[str] = set()
        self._held: dict[str, tuple[str, JSON]] = {}
        """Text that a retry may still discard, by part: its message and its line."""
        self.is_live = False

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                self._users.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                if p.info.summary:
                    self._summaries.add(p.info.id)
                elif p.info.time.completed is not None:
                    self._release(p.info.id)
            case PartRemoved(properties=p):
                self._held.pop(p.part_id, None)
            case PartUpdated(properties=p) if p.part.message_id not in self._users:
                kind = _kind(p.part)
                if kind in RETRIED and p.part.message_id not in self._summaries:
                    self._held[p.part.id] = (p.part.message_id, self._make(kind, part=p.part))
                elif kind is not None:
                    self._release(p.part.message_id)
                    self._line("compaction" if kind == "text" else kind, part=p.part)
            case SessionErrored(properties=p):
                self._line("error", error=p.error)
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                self._line("retry", status=p.status)
            case _:
                pass

    def show_subagent(self, event: Event, title: str) -> None:
        """Show nothing: the lines are those of the session alone."""

    def tick(self) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Write a line to stderr: stdout holds JSON alone."""
        self._progress.write(text + "\n")

    def finish(self, outcome: Outcome) -> None:
        """Write the result."""
        for message_id in [message_id for message_id, _ in self._held.values()]:
            self._release(message_id)
        self._write(replace(outcome, context=None))

    def _line(self, kind: str, **rest: Any) -> None:
        self._write(self._make(kind, **rest))

    def _make(self, kind: str, **rest: Any) -> JSON:
        return {"type": kind, "timestamp": now_ms(), "sessionID": self._session_id, **rest}

    def _release(self, message_id: str) -> None:
        """Write what was held of a message: it is final."""
        lines = {part_id: line for part_id, (of, line) in self._held.items() if of == message_id}
        for part_id, line in lines.items():
            del self._held[part_id]
            self._write(line)

    def _write(self, line: Any) -> None:
        self._answer.write(inert_json(msgspec.json.encode(line).decode()) + "\n")


def _kind(part: object) -> str | None:
    """Return the name of a finished part's line, or None while it is not finished."""
    match part:
        case StepStartPart():
            return "step_start"
        case TextPart(time=time, synthetic=synthetic) if not synthetic and time is not None and time.end is not None:
            return "text"
        case ReasoningPart(time=time) if time.end is not None:
            return "reasoning"
        case ToolPart(state=ToolStateCompleted() | ToolStateError()):
            return "tool_use"
        case StepFinishPart():
            return "step_finish"
        case _:
            return None
