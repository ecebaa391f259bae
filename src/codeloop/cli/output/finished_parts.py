"""Collects the finished parts of a session's answers from its events,
for the JSON output formats.
"""

from typing import NamedTuple

from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    Part,
    ReasoningPart,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)

# The kinds of parts that a retry of the model's request discards and writes again.
RETRIED_KINDS = {"text", "reasoning"}


class FinishedPart(NamedTuple):
    """A part that does not change any more.

    `kind`: the `type` of its line in `--format json`.
    `time`: when it was finished, in ms since the epoch.
    """

    kind: str
    part: Part
    time: int


class FinishedParts:
    """Collects the finished parts of a session.

    Text and reasoning are held back until no retry can discard them: until their message continues
    with another part, or ends.
    """

    def __init__(self) -> None:
        self._users: set[str] = set()
        self._summaries: set[str] = set()
        # Finished parts that a retry may still discard, by the part's id.
        self._retriable: dict[str, FinishedPart] = {}

    def handle_event(self, event: Event) -> list[FinishedPart]:
        """Take in an event; return the parts that are final because of it."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                self._users.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                if p.info.summary:
                    self._summaries.add(p.info.id)
                elif p.info.time.completed is not None:
                    return self.release(p.info.id)
            case PartRemoved(properties=p):
                self._retriable.pop(p.part_id, None)
            case PartUpdated(properties=p) if p.part.message_id not in self._users:
                kind = _classify_part(p.part)
                if kind in RETRIED_KINDS and p.part.message_id not in self._summaries:
                    self._retriable[p.part.id] = FinishedPart(kind, p.part, now_ms())
                elif kind is not None:
                    # A text that gets here is that of a summary, which is not an answer.
                    finished = FinishedPart(
                        "compaction" if kind == "text" else kind, p.part, now_ms()
                    )
                    return [*self.release(p.part.message_id), finished]
            case _:
                pass
        return []

    def release(self, message_id: str | None = None) -> list[FinishedPart]:
        """Return the parts of a message that are held back, and now final;
        None: those of all messages.
        """
        final_parts = [
            row for row in self._retriable.values() if message_id in {None, row.part.message_id}
        ]
        for row in final_parts:
            del self._retriable[row.part.id]
        return final_parts


def _classify_part(part: object) -> str | None:
    """Return the kind of a finished part; None for a part that is not finished, or has no line."""
    match part:
        case StepStartPart():
            return "step_start"
        case TextPart(time=time, synthetic=synthetic) if (
            not synthetic and time is not None and time.end is not None
        ):
            return "text"
        case ReasoningPart(time=time) if time.end is not None:
            return "reasoning"
        case ToolPart(state=ToolStateCompleted() | ToolStateError()):
            return "tool_use"
        case StepFinishPart():
            return "step_finish"
        case _:
            return None
