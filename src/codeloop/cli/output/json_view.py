"""`JsonView`: the view for `--format json`, which writes a turn as JSON Lines.
The last line is always a result.
"""

from typing import Any

from codeloop.cli.output.finished_parts import FinishedPart, FinishedParts
from codeloop.cli.output.result import Outcome
from codeloop.cli.output.streams import OutputStream
from codeloop.kit.text.terminal_text import escape_json_controls
from codeloop.schema.event import Event
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import Retry, SessionErrored, StatusChanged
from codeloop.schema.wire import encode_json, replace


class JsonView:
    """Writes finished parts, errors and retries as lines: `{"type", "timestamp" (ms), "sessionID",
    ...}`.

    The last key is `part`, `error` or `status`.
    """

    def __init__(self, answer: OutputStream, progress: OutputStream, session_id: str) -> None:
        self._answer = answer
        self._progress = progress
        self._session_id = session_id
        self._finished_parts = FinishedParts()
        self.is_live = False

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        self._show_parts(self._finished_parts.handle_event(event))
        match event:
            case SessionErrored(properties=p):
                self._write_event("error", now_ms(), error=p.error)
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                self._write_event("retry", now_ms(), status=p.status)
            case _:
                pass

    def show_subagent(self, event: Event, title: str) -> None:
        """Do nothing: the format shows the session alone."""

    def tick(self) -> None:
        """Do nothing: there is no animation to redraw."""

    def note(self, text: str) -> None:
        """Write a line to stderr: stdout holds JSON alone."""
        self._progress.write(text + "\n")

    def finish(self, outcome: Outcome) -> None:
        """Write the result as the last line."""
        # No retry can discard the text of a turn that has ended.
        self._show_parts(self._finished_parts.release())
        self._write_line(replace(outcome, context=None))

    def _show_parts(self, parts: list[FinishedPart]) -> None:
        for kind, part, time in parts:
            self._write_event(kind, time, part=part)

    def _write_event(self, kind: str, time: int, **fields: Any) -> None:
        self._write_line({"type": kind, "timestamp": time, "sessionID": self._session_id, **fields})

    def _write_line(self, line: Any) -> None:
        self._answer.write(escape_json_controls(encode_json(line).decode()) + "\n")
