"""A turn as JSON Lines for machines; the last line is always a result."""

from typing import Any

import msgspec

from codeloop.cli.outcome import Outcome
from codeloop.cli.output import Output
from codeloop.kit.plain import inert_json
from codeloop.schema.event import Event, MessageUpdated, PartUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.live import Retry, SessionErrored, StatusChanged
from codeloop.schema.message import UserMessage
from codeloop.schema.part import (
    ReasoningPart,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolCompleted,
    ToolError,
    ToolPart,
)


class JsonView:
    """Writes each finished part as one line: `{"type", "timestamp" (ms), "sessionID", "part" | "error"}`."""

    def __init__(self, answer: Output, progress: Output, session_id: str) -> None:
        self._answer = answer
        self._progress = progress
        self._session_id = session_id
        self._users: set[str] = set()

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                self._users.add(p.info.id)
            case PartUpdated(properties=p) if p.part.message_id not in self._users:
                kind = _kind(p.part)
                if kind is not None:
                    self._line(kind, part=p.part)
            case SessionErrored(properties=p):
                self._line("error", error=p.error)
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                self._line("retry", status=p.status)
            case _:
                pass

    def note(self, text: str) -> None:
        """Write a line to stderr: stdout holds JSON alone."""
        self._progress.write(text + "\n")

    def finish(self, outcome: Outcome) -> None:
        """Write the result."""
        self._write(outcome)

    def _line(self, kind: str, **rest: Any) -> None:
        self._write({"type": kind, "timestamp": now_ms(), "sessionID": self._session_id, **rest})

    def _write(self, line: Any) -> None:
        self._answer.write(inert_json(msgspec.json.encode(line).decode()) + "\n")


def _kind(part: object) -> str | None:
    """Give the name of a finished part's line, or None while it is not finished."""
    match part:
        case StepStartPart():
            return "step_start"
        case TextPart(time=time, synthetic=synthetic) if not synthetic and time is not None and time.end is not None:
            return "text"
        case ReasoningPart(time=time) if time.end is not None:
            return "reasoning"
        case ToolPart(state=ToolCompleted() | ToolError()):
            return "tool_use"
        case StepFinishPart():
            return "step_finish"
        case _:
            return None
