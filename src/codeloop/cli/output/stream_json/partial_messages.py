"""`PartialMessages`: the `stream_event` lines of stream-json,
which show an answer while it is written.

Their events are those of Anthropic's API: `message_start`, `content_block_start`,
`content_block_delta` and so on.
"""

from msgspec import Struct

from codeloop.cli.output.stream_json.anthropic_message import make_message, make_usage
from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.live_events import PartDelta
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import ReasoningPart, TextPart, ToolPart, ToolStatePending
from codeloop.schema.wire import JSON, encode_json

# The format's words for the reasons that end a step; every other reason is `end_turn`.
STOP_REASONS = {"tool-calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}


class _Block(Struct):
    """A content block of an answer.

    `index`: its number within the message, from 0 on.
    `delta_type`: the `type` of its deltas, such as `text_delta`.
    `delta_key`: the key of the text in a delta. `shown_length`: characters that were shown.
    """

    message_id: str
    index: int
    delta_type: str
    delta_key: str
    shown_length: int = 0
    is_open: bool = True


class PartialMessages:
    """Converts the events of a session into events of a model's stream.

    A second `message_start` with the same id begins that answer anew,
    because a retry has discarded it.
    """

    def __init__(self) -> None:
        # The number of blocks of each message that is being written, by its id.
        self._block_counts: dict[str, int] = {}
        self._blocks: dict[str, _Block] = {}

    def handle_event(self, event: Event) -> list[JSON]:
        """Take in an event; return the events of the stream that it adds."""
        match event:
            case MessageUpdated(properties=p) if (
                isinstance(p.info, AssistantMessage) and not p.info.summary
            ):
                return self._take_message(p.info)
            case PartUpdated(properties=p) if p.part.message_id in self._block_counts:
                return self._take_part(p.part)
            case PartDelta(properties=p) if p.part_id in self._blocks:
                return self._append(p.part_id, p.delta)
            case PartRemoved(properties=p):
                return self._remove_block(p.part_id, p.message_id)
            case _:
                return []

    def _remove_block(self, part_id: str, message_id: str) -> list[JSON]:
        # A retry removes all parts of an answer; the first removal begins it anew.
        if self._blocks.pop(part_id, None) is None or not self._block_counts.get(message_id):
            return []
        self._block_counts[message_id] = 0
        return [_make_start_event(message_id, None)]

    def _take_message(self, info: AssistantMessage) -> list[JSON]:
        """Return the events of the start of a message, or of its end."""
        if info.time.completed is None:
            if info.id in self._block_counts:
                return []
            self._block_counts[info.id] = 0
            return [_make_start_event(info.id, info)]
        if self._block_counts.pop(info.id, None) is None:
            return []
        self._blocks = {
            name: block for name, block in self._blocks.items() if block.message_id != info.id
        }
        reason = STOP_REASONS.get(info.finish or "", "end_turn")
        ending: JSON = {"stop_reason": reason, "stop_sequence": None}
        return [
            {"type": "message_delta", "delta": ending, "usage": make_usage(info.tokens)},
            {"type": "message_stop"},
        ]

    def _take_part(self, part: object) -> list[JSON]:
        """Return the events that show what is new in a part."""
        match part:
            case TextPart(synthetic=None | False):
                empty_block: JSON = {"type": "text", "text": ""}
                events = self._begin_block(
                    part.id, part.message_id, empty_block, "text_delta", "text"
                )
                return [
                    *events,
                    *self._catch_up(part.id, part.text, is_over=bool(part.time and part.time.end)),
                ]
            case ReasoningPart():
                empty_block = {"type": "thinking", "thinking": "", "signature": ""}
                events = self._begin_block(
                    part.id, part.message_id, empty_block, "thinking_delta", "thinking"
                )
                return [
                    *events,
                    *self._catch_up(part.id, part.text, is_over=part.time.end is not None),
                ]
            case ToolPart():
                empty_block = {
                    "type": "tool_use",
                    "id": part.call_id,
                    "name": part.tool,
                    "input": {},
                }
                events = self._begin_block(
                    part.id, part.message_id, empty_block, "input_json_delta", "partial_json"
                )
                # The arguments are shown at once, when they are complete.
                if isinstance(part.state, ToolStatePending):
                    return events
                arguments = encode_json(part.state.input).decode()
                return [*events, *self._catch_up(part.id, arguments, is_over=True)]
            case _:
                return []

    def _begin_block(
        self, part_id: str, message_id: str, empty_block: JSON, delta_type: str, delta_key: str
    ) -> list[JSON]:
        """Return the event of the start of a part's block; no event if it has begun already."""
        if part_id in self._blocks:
            return []
        index = self._block_counts[message_id]
        self._block_counts[message_id] = index + 1
        self._blocks[part_id] = _Block(message_id, index, delta_type, delta_key)
        return [{"type": "content_block_start", "index": index, "content_block": empty_block}]

    def _catch_up(self, part_id: str, text: str, *, is_over: bool) -> list[JSON]:
        """Return the deltas for the part's text that was not shown,
        and the end of its block if it `is_over`.
        """
        block = self._blocks[part_id]
        if not block.is_open:
            return []
        events = self._append(part_id, text[block.shown_length :])
        if is_over:
            block.is_open = False
            events.append({"type": "content_block_stop", "index": block.index})
        return events

    def _append(self, part_id: str, text: str) -> list[JSON]:
        """Return the event that adds a text to a part's block."""
        block = self._blocks[part_id]
        if not text:
            return []
        block.shown_length += len(text)
        delta: JSON = {"type": block.delta_type, block.delta_key: text}
        return [{"type": "content_block_delta", "index": block.index, "delta": delta}]


def _make_start_event(message_id: str, info: AssistantMessage | None) -> JSON:
    return {"type": "message_start", "message": make_message(message_id, info, [])}
