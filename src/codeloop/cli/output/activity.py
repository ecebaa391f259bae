"""A progress line: what a turn waits for, and for how long, on the last line of a terminal."""

import time

from codeloop.cli.follow.subagents import works_in_background
from codeloop.cli.output.streams import Output
from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.output.tool_call import heading
from codeloop.client.numbers import cut_to
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated, SessionCreated, SessionUpdated
from codeloop.schema.live_events import Busy, Idle, Retry, SessionIdle, StatusChanged
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    ReasoningPart,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolStatePending,
    ToolStateRunning,
)

MODEL = "model"
"""The key of the model's work; a call's key is the id of its part."""


class Activity:
    """What is going on: the model's work, and the calls that run. `output`: the terminal that shows it."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._labels: dict[str, str] = {}
        self._details: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._sessions: dict[str, str] = {}
        """The keys of the calls that wait for subagents, by the subagents' sessions."""
        self._background: set[str] = set()

    def take(self, event: Event) -> None:
        """Take in an event of the session."""
        match event:
            case StatusChanged(properties=p) if isinstance(p.status, Idle):
                self._remove_foreground()
            case StatusChanged(properties=p) if isinstance(p.status, Busy | Retry):
                self.begin(MODEL, "Waiting to retry" if isinstance(p.status, Retry) else "Waiting for the model")
            case SessionIdle():
                self._remove_foreground()
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage) and p.info.summary:
                self.begin(MODEL, "Summarizing the conversation")
            case PartUpdated(properties=p):
                self._show_part(p.part)
            case PartRemoved(properties=p):
                self._labels.pop(p.part_id, None)
            case _:
                pass

    def take_subagent(self, event: Event) -> None:
        """Take in an event of a subagent's session."""
        match event:
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart):
                key = self._sessions.get(p.session_id, p.session_id)
                self._details[key] = heading(p.part) if isinstance(p.part.state, ToolStateRunning) else ""
            case SessionCreated(properties=p) | SessionUpdated(properties=p):
                if works_in_background(p.info):
                    self.begin(p.info.id, one_line(p.info.title, 80))
                    self._background.add(p.info.id)
                else:
                    self.end(p.info.id)
            case _:
                pass

    def begin(self, key: str, label: str) -> None:
        """Add something that is waited for; its time counts from its last change of label."""
        if self._labels.get(key) != label:
            self._labels[key] = label
            self._since[key] = time.monotonic()
            self._details[key] = ""

    def end(self, key: str) -> None:
        """Remove it."""
        self._labels.pop(key, None)

    def _remove_foreground(self) -> None:
        """Remove all but background work."""
        self._labels = {key: label for key, label in self._labels.items() if key in self._background}

    def _show_part(self, part: object) -> None:
        match part:
            case StepStartPart():
                self.begin(MODEL, "Waiting for the model")
            case ReasoningPart():
                self.begin(MODEL, "Thinking")
            case TextPart(time=span):
                self.begin(MODEL, "Writing" if span is None or span.end is None else "Waiting for the model")
            case ToolPart(state=ToolStatePending()):
                self.begin(MODEL, f"Preparing a call of {one_line(part.tool, 40)}")
            case ToolPart(state=ToolStateRunning(metadata=metadata, title=title)):
                self.end(MODEL)
                self.begin(part.id, heading(part))
                if child := (metadata or {}).get("sessionId"):
                    self._sessions[str(child)] = part.id
                elif output := str((metadata or {}).get("output", "")).strip():
                    self._details[part.id] = escape_controls(output.splitlines()[-1])
                elif title and "progress" in (metadata or {}):  # of an MCP server's tool
                    self._details[part.id] = one_line(title, 200)
            case ToolPart():
                self.end(part.id)
            case StepFinishPart():
                self.end(MODEL)
            case _:
                pass

    def line(self, room: int) -> str:
        """Return the latest running call in at most `room` columns, with the number of others; "" for none."""
        if not self._labels:
            return ""
        key = next(reversed(self._labels))
        others = f" (+{len(self._labels) - 1})" if len(self._labels) > 1 else ""
        elapsed = _format_seconds(int(time.monotonic() - self._since[key]))
        detail = f"  {' '.join(self._details[key].split())}" if self._details.get(key) else ""
        return cut_to(f"… {cut_to(self._labels[key], max(room // 2, 20))}{others}  {elapsed}{detail}", room)

    def draw(self) -> None:
        """Show what is going on on the last line of the terminal, until something else is written."""
        line = self.line(self._output.columns - 1)
        self._output.overlay(paint(line, "dim", colour=has_colour(self._output.stream)))


def _format_seconds(seconds: int) -> str:
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"
