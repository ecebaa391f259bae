"""Reads answers of Anthropic's messages API, streamed or whole, as model events."""

from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import FinishReason, UsageUpdate
from codeloop.model.protocols.anthropic.request import METADATA_KEY
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.model.wire.tool_calls import format_arguments
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import JSON, bound_depth

FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    # The service wants to be asked again for the rest.
    "pause_turn": "length",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "refusal": "content-filter",
}


class AnthropicDelta(msgspec.Struct, gc=False):
    """An addition to a block, or to the message."""

    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    signature: Any = None
    stop_reason: Any = None


class AnthropicEvent(msgspec.Struct, gc=False):
    """One event of the stream, of any type, or a whole message that did not stream."""

    type: str = ""
    index: int = 0
    delta: AnthropicDelta | None = None
    content_block: Any = None
    content: Any = None
    message: Any = None
    usage: Any = None
    error: Any = None
    stop_reason: Any = None


class AnthropicReader(ResponseReader):
    """Reads one answer. Blocks keep the numbers that the service sends."""

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(AnthropicEvent).decode)
        self._usage: JSON = {}

    def _read_document(self, body: bytes) -> None:
        """Take an answer that did not stream: the message itself."""
        message = self._decode(body)
        if message.type == "error" or message.error is not None:
            self._set_error({"error": message.error})
            return
        self._add_usage(message.usage)
        for index, block in enumerate(list_objects(message.content)):
            self._begin_block(index, block)
            self._blocks.end_block(index)
        if reason := read_text(message.stop_reason):
            self._set_reason(reason)

    def _read_event(self, payload: bytes) -> None:
        event = self._decode(payload)
        # Nearly all events are of this type, so it is tested first.
        if event.type == "content_block_delta" and event.delta is not None:
            self._add_delta(event.index, event.delta)
        else:
            self._handle_event(event)

    def _add_delta(self, index: int, delta: AnthropicDelta) -> None:
        if delta.text:
            self._blocks.add_text("text", index, read_text(delta.text))
        elif delta.partial_json:
            self._blocks.add_arguments(index, read_text(delta.partial_json))
        elif delta.thinking:
            self._blocks.add_text("reasoning", index, read_text(delta.thinking))
        elif delta.signature:
            self._blocks.add_metadata(
                index, {METADATA_KEY: {"signature": read_text(delta.signature)}}
            )

    def _handle_event(self, event: AnthropicEvent) -> None:
        match event.type:
            case "content_block_start":
                self._begin_block(event.index, event.content_block)
            case "content_block_stop":
                self._blocks.end_block(event.index)
            case "message_start":
                if is_object(event.message):
                    self._add_usage(event.message.get("usage"))
                    self._blocks.events.append(UsageUpdate(self.tokens))
            case "message_delta":
                self._add_usage(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._set_reason(read_text(event.delta.stop_reason))
            case "message_stop":
                self.is_done = self.has_ended = True
            case _:
                if event.error is not None:
                    self._set_error({"error": event.error})

    def _begin_block(self, index: int, block: Any) -> None:
        if not is_object(block):
            return
        self._blocks.flush()
        match block.get("type"):
            case "text":
                self._blocks.add_text("text", index, read_text(block.get("text")))
            case "thinking":
                self._blocks.add_text("reasoning", index, read_text(block.get("thinking")))
                if signature := read_text(block.get("signature")):
                    self._blocks.add_metadata(index, {METADATA_KEY: {"signature": signature}})
            case "redacted_thinking":
                self._blocks.add_metadata(
                    index, {METADATA_KEY: {"redacted": read_text(block.get("data"))}}
                )
            case "tool_use":
                self._blocks.start_call(
                    index, read_text(block.get("id")), read_text(block.get("name"))
                )
                if arguments := block.get("input"):
                    self._blocks.add_arguments(index, format_arguments(arguments))
            case _:
                return

    def _add_usage(self, usage: Any) -> None:
        """Take counts; those of later events are totals and replace earlier ones."""
        if is_object(usage):
            self._usage.update({name: value for name, value in usage.items() if value is not None})
            self.tokens = parse_usage(self._usage)


def parse_usage(usage: JSON) -> Tokens:
    """Return the counts of a `usage` object; what it lacks is 0.
    The service's input count excludes cached tokens.
    """
    fresh, output = read_count(usage, "input_tokens"), read_count(usage, "output_tokens")
    cache_read, cache_write = (
        read_count(usage, "cache_read_input_tokens"),
        read_count(usage, "cache_creation_input_tokens"),
    )
    if not any((fresh, output, cache_read, cache_write)):
        return NO_TOKENS
    reasoning = read_count(usage, "output_tokens_details", "thinking_tokens")
    total = fresh + output + cache_read + cache_write
    hour = min(read_count(usage, "cache_creation", "ephemeral_1h_input_tokens"), cache_write)
    cache = CacheTokens(read=cache_read, write=cache_write, hour_write=hour)
    # `priority` is paid for beforehand: its tokens cost the same.
    tier = "batch" if usage.get("service_tier") == "batch" else ""
    return Tokens(
        input=fresh, output=output, reasoning=reasoning, cache=cache, total=total, tier=tier
    )
