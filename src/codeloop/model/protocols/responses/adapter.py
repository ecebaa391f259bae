"""Models behind OpenAI's Responses protocol: OpenAI itself, Azure, xAI,
GitHub Copilot and some gateways.
"""

from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import (
    FinishReason,
    ModelInfo,
    ReasoningDelta,
    TextDelta,
)
from codeloop.model.protocols.responses.patch_grammar import PATCH_ARGUMENT
from codeloop.model.protocols.responses.request import (
    METADATA_KEY,
    ResponsesRequestEncoder,
)
from codeloop.model.quirks import OPENAI_QUIRKS, Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.http_model import HttpModel
from codeloop.model.wire.json_values import list_objects, read_count, read_text
from codeloop.model.wire.response_reader import ResponseReader, read_tier
from codeloop.model.wire.tool_calls import OpenCall, format_arguments
from codeloop.schema.message import NO_TOKENS, CacheTokens, Tokens
from codeloop.schema.wire import JSON, bound_depth

FINISH_REASONS: dict[str, FinishReason] = {
    "completed": "stop",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content-filter",
}
SUMMARY_SEPARATOR = "\n\n"


class ResponsesEvent(msgspec.Struct, gc=False):
    """One event of the stream, of any type."""

    type: str = ""
    output_index: int = 0
    delta: Any = None
    item: Any = None
    response: Any = None
    summary_index: Any = None
    error: Any = None
    code: Any = None
    message: Any = None
    output: Any = None
    status: Any = None
    usage: Any = None
    incomplete_details: Any = None


class OpenOutputItem(msgspec.Struct):
    """An output item that has begun.

    `has_text`: a part of its content was streamed; `summary_index`: of the part of
    the summary that comes now.
    """

    kind: str
    call: OpenCall | None = None
    has_text: bool = False
    summary_index: int = 0


class ResponsesReader(ResponseReader):
    """Reads one answer. Blocks have the numbers of the output items."""

    finish_reasons = FINISH_REASONS

    def __init__(self) -> None:
        super().__init__()
        self._decode = bound_depth(msgspec.json.Decoder(ResponsesEvent).decode)
        self._open_items: dict[int, OpenOutputItem] = {}

    def _read_document(self, body: bytes) -> None:
        """Take an answer that did not stream: the response itself."""
        self._end_answer(msgspec.to_builtins(self._decode(body)))

    def _read_event(self, payload: bytes) -> None:
        event = self._decode(payload)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                self._add_text("text", event.output_index, read_text(event.delta))
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                self._add_arguments(event.output_index, read_text(event.delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._add_thinking(event)
            case "response.output_item.added":
                self._begin_item(event.output_index, event.item)
            case "response.output_item.done":
                self._end_item(event.output_index, event.item)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end_answer(event.response)
            case "error":
                data = (
                    event.error
                    if is_object(event.error)
                    else {"code": event.code, "message": event.message}
                )
                self._set_error({"error": data})
            case _:
                return

    def _end_answer(self, response: Any) -> None:
        """Take the response at its end: its counts, why it ended,
        and the items that no event reported.
        """
        if not is_object(response):
            self._set_error({"message": "the last event holds no response"})
            return
        self.tokens = parse_usage(response.get("usage"), read_tier(response.get("service_tier")))
        if is_object(error := response.get("error")):
            self._set_error({"error": error})
            return
        # The items come only here in an answer that did not stream,
        # and from some services also in one that did.
        if not self._open_items:
            for index, item in enumerate(list_objects(response.get("output"))):
                self._begin_item(index, item)
                self._end_item(index, item)
        self._blocks.flush()
        details = response.get("incomplete_details")
        reason = details.get("reason") if is_object(details) else None
        self._reason = read_text(reason or response.get("status"))
        if self._reason in {"failed", "cancelled"}:
            self._set_error(
                {"message": f"the service ended the answer ({self._reason}) and gave no reason"}
            )
        self.is_done = self.has_ended = True

    def _begin_item(self, index: int, item: Any) -> None:
        if not is_object(item):
            return
        kind = read_text(item.get("type"))
        open_item = self._open_items[index] = OpenOutputItem(kind)
        if kind in {"function_call", "custom_tool_call"}:
            self._blocks.flush()
            open_item.call, events = self._blocks.calls.open_call(
                read_text(item.get("call_id")), read_text(item.get("name"))
            )
            self._blocks.events += events
            if kind == "custom_tool_call":
                # The plain text of a free-form call becomes the one argument of the tool, as JSON.
                self._blocks.events += self._blocks.calls.add_arguments(
                    open_item.call, f'{{"{PATCH_ARGUMENT}":"'
                )

    def _end_item(self, index: int, item: Any) -> None:
        """End an item; its full content is used only if no part of it was streamed."""
        open_item = self._open_items.get(index)
        if open_item is None or not is_object(item):
            return
        match open_item.kind:
            case "message":
                self._end_message(index, open_item, item)
            case "reasoning":
                self._end_thought(index, open_item, item)
            case "function_call" | "custom_tool_call":
                self._end_call(index, open_item, item)
            case _:
                return

    def _end_message(self, index: int, open_item: OpenOutputItem, item: JSON) -> None:
        if not open_item.has_text:
            for part in list_objects(item.get("content")):
                self._add_text(
                    "text", index, read_text(part.get("text")) or read_text(part.get("refusal"))
                )
        if phase := read_text(item.get("phase")):
            self._blocks.flush()
            self._blocks.events.append(TextDelta("", index, {METADATA_KEY: {"phase": phase}}))

    def _end_thought(self, index: int, open_item: OpenOutputItem, item: JSON) -> None:
        if not open_item.has_text:
            parts = [
                read_text(part.get("text"))
                for part in list_objects(item.get("summary")) or list_objects(item.get("content"))
            ]
            self._add_text("reasoning", index, SUMMARY_SEPARATOR.join(filter(None, parts)))
        if content := read_text(item.get("encrypted_content")):
            self._blocks.flush()
            reasoning = {"id": read_text(item.get("id")), "encrypted_content": content}
            self._blocks.events.append(ReasoningDelta("", index, {METADATA_KEY: reasoning}))

    def _end_call(self, index: int, open_item: OpenOutputItem, item: JSON) -> None:
        if open_item.call is None:
            return
        if not open_item.has_text:
            self._add_arguments(
                index, format_arguments(item.get("arguments")) or read_text(item.get("input"))
            )
        if item.get("status") == "incomplete":
            return
        if open_item.kind == "custom_tool_call":
            self._blocks.events += self._blocks.calls.add_arguments(open_item.call, '"}')
        self._blocks.events += self._blocks.calls.complete_call(open_item.call)

    def _add_arguments(self, index: int, text: str) -> None:
        open_item = self._open_items.get(index)
        if open_item is None or open_item.call is None or not text:
            return
        open_item.has_text = True
        if open_item.kind == "custom_tool_call":
            # Escaped for the JSON string that `_begin_item` opened.
            text = msgspec.json.encode(text).decode()[1:-1]
        self._blocks.events += self._blocks.calls.add_arguments(open_item.call, text)

    def _add_thinking(self, event: ResponsesEvent) -> None:
        open_item = self._open_items.setdefault(event.output_index, OpenOutputItem("reasoning"))
        if isinstance(event.summary_index, int) and event.summary_index > open_item.summary_index:
            open_item.summary_index = event.summary_index
            self._add_text("reasoning", event.output_index, SUMMARY_SEPARATOR)
        self._add_text("reasoning", event.output_index, read_text(event.delta))

    def _add_text(self, kind: str, index: int, words: str) -> None:
        if not words:
            return
        if kind != self._blocks.kind or index != self._blocks.number:
            self._blocks.flush()
            self._blocks.kind, self._blocks.number = kind, index
            if (open_item := self._open_items.get(index)) is not None:
                open_item.has_text = True
        self._blocks.pieces.append(words)


def parse_usage(usage: Any, tier: str = "") -> Tokens:
    """Return the counts of a `usage` object; what it lacks is 0.
    Cached tokens are taken off the input.
    """
    if not is_object(usage):
        return NO_TOKENS
    prompt, output = read_count(usage, "input_tokens"), read_count(usage, "output_tokens")
    cache_read = read_count(usage, "input_tokens_details", "cached_tokens")
    cache_write = read_count(usage, "input_tokens_details", "cache_write_tokens")
    reasoning = read_count(usage, "output_tokens_details", "reasoning_tokens")
    fresh = max(prompt - cache_read - cache_write, 0)
    total = fresh + output + cache_read + cache_write
    cache = CacheTokens(read=cache_read, write=cache_write)
    return Tokens(
        input=fresh, output=output, reasoning=reasoning, cache=cache, total=total, tier=tier
    )


class ResponsesModel(HttpModel):
    """A model at an endpoint; `/responses` is added to the base URL, which mostly ends in /v1."""

    encoder_type = ResponsesRequestEncoder
    reader_type = ResponsesReader

    def __init__(self, info: ModelInfo, endpoint: Endpoint, quirks: Quirks = OPENAI_QUIRKS) -> None:
        key_headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        super().__init__(info, endpoint, quirks, "/responses", key_headers)
