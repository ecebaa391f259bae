"""The `stream_event` lines of stream-json: an answer while it is written, as events of the API of Anthropic.

They are `message_start`, `content_block_start`, `content_block_delta` and so on. Used by `stream_json.py`, as are the
functions that make a message and its token counts.
"""

import msgspec
from msgspec import Struct

from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.live_events import PartDelta
from codeloop.schema.message import AssistantMessage, Tokens
from codeloop.schema.part import ReasoningPart, TextPart, ToolPart, ToolStatePending
from codeloop.schema.wire import JSON

# The format's words for the reasons that end a step; every other reason is `end_turn`.
STOP_REASONS = {"tool-calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}


class _Block(Struct):
    """A content block of an answer.

    `delta`: the `type` of its deltas. `field`: the key of the text in a delta. `shown_length`: characters that were
    shown.
    """

    message_id: str
    index: int
    delta: str
    field: str
    shown_length: int = 0
    is_open: bool = True


class PartialMessages:
    """Converts the events of a session into events of a model's stream.

    A second `message_start` with the same id begins that answer anew, because a retry has discarded it.
    """

    def __init__(self) -> None:
        # The number of blocks of each message that is being written, by its id.
        self._block_counts: dict[str, int] = {}
        self._blocks: dict[str, _Block] = {}

    def handle_event(self, event: Event) -> list[JSON]:
        """Take in an event; return the events of the stream that it adds."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage) and not p.info.summary:
                return self._take_message(p.info)
            case PartUpdated(properties=p) if p.part.message_id in self._block_counts:
                return self._take_part(p.part)
            case PartDelta(properties=p) if p.part_id in self._blocks:
                return self._append(p.part_id, p.delta)
            # A retry removes all parts of an answer; the first removal begins it anew.
            case PartRemoved(properties=p) if self._blocks.pop(p.part_id, None) and self._block_counts.get(
                p.message_id
            ):
                self._block_counts[p.message_id] = 0
                return [_make_start_event(p.message_id, None)]
            case _:
                return []

    def _take_message(self, info: AssistantMessage) -> list[JSON]:
        if info.time.completed is None:
            if info.id in self._block_counts:
                return []
            self._block_counts[info.id] = 0
            return [_make_start_event(info.id, info)]
        if self._block_counts.pop(info.id, None) is None:
            return []
        self._blocks = {name: block for name, block in self._blocks.items() if block.message_id != info.id}
        reason = STOP_REASONS.get(info.finish or "", "end_turn")
        ending: JSON = {"stop_reason": reason, "stop_sequence": None}
        return [{"type": "message_delta", "delta": ending, "usage": make_usage(info.tokens)}, {"type": "message_stop"}]

    def _take_part(self, part: object) -> list[JSON]:
        match part:
            case TextPart(synthetic=None | False):
                events = self._begin_block(part.id, part.message_id, "text", {"type": "text", "text": ""})
                return [*events, *self._catch_up(part.id, part.text, is_over=bool(part.time and part.time.end))]
            case ReasoningPart():
                empty: JSON = {"type": "thinking", "thinking": "", "signature": ""}
                events = self._begin_block(part.id, part.message_id, "thinking", empty)
                return [*events, *self._catch_up(part.id, part.text, is_over=part.time.end is not None)]
            case ToolPart():
                empty = {"type": "tool_use", "id": part.call_id, "name": part.tool, "input": {}}
                events = self._begin_block(part.id, part.message_id, "input_json", empty, field="partial_json")
                # The arguments are shown at once, when they are complete.
                if isinstance(part.state, ToolStatePending):
                    return events
                arguments = msgspec.json.encode(part.state.input).decode()
                return [*events, *self._catch_up(part.id, arguments, is_over=True)]
            case _:
                return []

    def _begin_block(self, part_id: str, message_id: str, kind: str, empty: JSON, field: str = "") -> list[JSON]:
        if part_id in self._blocks:
            return []
        index = self._block_counts[message_id]
        self._block_counts[message_id] = index + 1
        self._blocks[part_id] = _Block(message_id, index, f"{kind}_delta", field or kind)
        return [{"type": "content_block_start", "index": index, "content_block": empty}]

    def _catch_up(self, part_id: str, text: str, *, is_over: bool) -> list[JSON]:
        """Return the deltas for the part's text that was not shown, and the end of its block if it `is_over`."""
        block = self._blocks[part_id]
        if not block.is_open:
            return []
        events = self._append(part_id, text[block.shown_length :])
        if is_over:
            block.is_open = False
            events.append({"type": "content_block_stop", "index": block.index})
        return events

    def _append(self, part_id: str, more: str) -> list[JSON]:
        block = self._blocks[part_id]
        if not more:
            return []
        block.shown_length += len(more)
        return [
            {"type": "content_block_delta", "index": block.index, "delta": {"type": block.delta, block.field: more}}
        ]


def make_usage(tokens: Tokens | None) -> JSON:
    """Return token counts by the names that the format has for them. `tokens`: None while they are not known."""
    return {
        "input_tokens": tokens.input if tokens else 0,
        "cache_creation_input_tokens": tokens.cache.write if tokens else 0,
        "cache_read_input_tokens": tokens.cache.read if tokens else 0,
        "output_tokens": tokens.output if tokens else 0,
    }


def make_message(message_id: str, info: AssistantMessage | None, content: list[JSON]) -> JSON:
    """Return a message of the model in the form of the format. `info`: None if it is not known."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "" if info is None else f"{info.provider_id}/{info.model_id}",
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": make_usage(None if info is None else info.tokens),
    }


def _make_start_event(message_id: str, info: AssistantMessage | None) -> JSON:
    return {"type": "message_start", "message": make_message(message_id, info, [])}
