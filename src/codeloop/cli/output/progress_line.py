"""`ProgressLine`: draws on the last line of a terminal what a turn waits for, and for how long."""

import time

from codeloop.cli.follow.subagents import works_in_background
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.output.tool_call import format_heading
from codeloop.client.formatting import cut_to_width
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.event import (
    Event,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    SessionCreated,
    SessionUpdated,
)
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

# The key of the request to the model among the running work;
# the key of a call is the id of its part.
MODEL_KEY = "model"


class ProgressLine:
    """Keeps the running work of a session (the request to the model, tool calls,
    subagents in the background).

    Draws the work that began last on `output`.
    """

    def __init__(self, output: OutputStream) -> None:
        self._output = output
        self._labels: dict[str, str] = {}
        self._details: dict[str, str] = {}
        self._start_times: dict[str, float] = {}
        # The keys of the calls that wait for subagents, by the subagents' sessions.
        self._call_keys: dict[str, str] = {}
        self._background: set[str] = set()

    def handle_event(self, event: Event) -> None:
        """Take in an event of the session."""
        match event:
            case StatusChanged(properties=p) if isinstance(p.status, Idle):
                self._remove_foreground()
            case StatusChanged(properties=p) if isinstance(p.status, Busy | Retry):
                self.add_work(
                    MODEL_KEY,
                    "Waiting to retry" if isinstance(p.status, Retry) else "Waiting for the model",
                )
            case SessionIdle():
                self._remove_foreground()
            case MessageUpdated(properties=p) if (
                isinstance(p.info, AssistantMessage) and p.info.summary
            ):
                self.add_work(MODEL_KEY, "Summarizing the conversation")
            case PartUpdated(properties=p):
                self._take_part(p.part)
            case PartRemoved(properties=p):
                self._labels.pop(p.part_id, None)
            case _:
                pass

    def handle_subagent_event(self, event: Event) -> None:
        """Take in an event of a subagent's session."""
        match event:
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart):
                # A subagent in the background has no call that waits for it;
                # its key is its session.
                key = self._call_keys.get(p.session_id, p.session_id)
                self._details[key] = (
                    format_heading(p.part) if isinstance(p.part.state, ToolStateRunning) else ""
                )
            case SessionCreated(properties=p) | SessionUpdated(properties=p):
                if works_in_background(p.info):
                    self.add_work(p.info.id, one_line(p.info.title, 80))
                    self._background.add(p.info.id)
                else:
                    self.remove_work(p.info.id)
            case _:
                pass

    def add_work(self, key: str, label: str) -> None:
        """Add running work, or change its label;
        its time counts from the last change of the label.
        """
        if self._labels.get(key) != label:
            self._labels[key] = label
            self._start_times[key] = time.monotonic()
            self._details[key] = ""

    def remove_work(self, key: str) -> None:
        """Remove work that has ended."""
        self._labels.pop(key, None)

    def _remove_foreground(self) -> None:
        """Remove all but background work."""
        self._labels = {
            key: label for key, label in self._labels.items() if key in self._background
        }

    def _take_part(self, part: object) -> None:
        """Add or remove the work that a part shows to have begun or ended."""
        match part:
            case StepStartPart():
                self.add_work(MODEL_KEY, "Waiting for the model")
            case ReasoningPart():
                self.add_work(MODEL_KEY, "Thinking")
            case TextPart(time=times):
                is_complete = times is not None and times.end is not None
                self.add_work(MODEL_KEY, "Waiting for the model" if is_complete else "Writing")
            case ToolPart(state=ToolStatePending()):
                self.add_work(MODEL_KEY, f"Preparing a call of {one_line(part.tool, 40)}")
            case ToolPart(state=ToolStateRunning(metadata=metadata, title=title)):
                self.remove_work(MODEL_KEY)
                self.add_work(part.id, format_heading(part))
                if child := (metadata or {}).get("sessionId"):
                    self._call_keys[str(child)] = part.id
                elif output := str((metadata or {}).get("output", "")).strip():
                    self._details[part.id] = escape_controls(output.splitlines()[-1])
                elif title and "progress" in (metadata or {}):
                    # Tools of MCP servers report their progress as the title.
                    self._details[part.id] = one_line(title, 200)
            case ToolPart():
                self.remove_work(part.id)
            case StepFinishPart():
                self.remove_work(MODEL_KEY)
            case _:
                pass

    def format_line(self, columns: int) -> str:
        """Return the latest work in at most `columns` columns, with the number of others;
        "" if nothing runs.
        """
        if not self._labels:
            return ""
        key = next(reversed(self._labels))
        others = f" (+{len(self._labels) - 1})" if len(self._labels) > 1 else ""
        elapsed = _format_seconds(int(time.monotonic() - self._start_times[key]))
        detail = f"  {' '.join(self._details[key].split())}" if self._details.get(key) else ""
        # The label gets half of the line at most, so that there is room for the details.
        label = cut_to_width(self._labels[key], max(columns // 2, 20))
        return cut_to_width(f"… {label}{others}  {elapsed}{detail}", columns)

    def draw(self) -> None:
        """Draw the line, which stays until something else is written."""
        line = self.format_line(self._output.columns - 1)
        self._output.overlay(paint(line, "dim", colour=has_colour(self._output.stream)))


def _format_seconds(seconds: int) -> str:
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"
